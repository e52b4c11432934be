// memory: in a real process, where each store object may live on a loop, and a thread, of its own.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/breaker/policy.hpp"
#include "net/event_loop.hpp"
#include "store/memory/memory_breakers.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t rounds = 400;

// One instance: exchanges again and again, each upon the answer to the last, and listens.
class talker {
public:
    talker(const std::shared_ptr<memory_breaker_server>& server, const std::string& name)
        : store_(on_, server, {name, name}) {
        subscription_ = store_.subscribe([this](const notice& n) { hear(n); });
        on_.start();
        on_.post([this] { say(); });
    }
    void wait() { done_.get_future().wait(); }
    // Ends the loop first: what the store posted is destroyed on the loop's thread.
    void end() {
        const auto error = run_and_wait(on_, 5s, [this] {
            subscription_.cancel();
            waiting_.cancel();
            ordered_.clear();
        });
        EXPECT_FALSE(error) << error.message();
        on_.stop(5s);
    }
    [[nodiscard]] bool in_order() const { return in_order_; }
    [[nodiscard]] std::size_t heard() const { return heard_; }

private:
    void hear(const notice& n) {
        in_order_ = in_order_ && n.fleet.newer_than(last_);
        last_ = n.fleet;
        ++heard_;
    }
    void say() {
        if (seq_ == rounds) return done_.set_value();
        news n;
        n.breaker = "payments";
        n.mine = mine_;
        n.seq = ++seq_;
        n.slices.push_back({{1, 0, 0, 0, 0, 0}, 0ms});
        if (seq_ % 50 == 0) operate();
        const std::array batch{n};
        waiting_ = store_.exchange(batch, on_.now() + 10s,
                                   [this](std::error_code, std::vector<verdict> v) {
                                       mine_ = v.at(0).fleet;
                                       say();
                                   });
    }
    void operate() {
        control_request c;
        c.id = on_.random() | 1;
        c.breaker = "payments";
        c.verb = control_verb::reset;
        ordered_.push_back(store_.control(c, on_.now() + 10s, [](std::error_code, const view&) {}));
    }

    event_loop on_;
    memory_breakers store_;
    op subscription_;
    op waiting_;
    std::vector<op> ordered_;
    view mine_;
    view last_;
    std::uint64_t seq_ = 0;
    std::size_t heard_ = 0;
    bool in_order_ = true;
    std::promise<void> done_;
};

TEST(MemoryBreakersThreads, CountsAreExactAndNoticesInOrderOnManyLoops) {
    auto server = std::make_shared<memory_breaker_server>();
    std::vector<std::unique_ptr<talker>> fleet;
    for (int i = 0; i < 4; ++i) {
        fleet.push_back(std::make_unique<talker>(server, "i" + std::to_string(i)));
    }
    for (const auto& t : fleet) t->wait();
    for (const auto& t : fleet) t->end();
    for (const auto& t : fleet) {
        EXPECT_TRUE(t->in_order());
        EXPECT_GE(t->heard(), rounds / 50);
    }
    EXPECT_EQ(server->record_of("payments").totals.success, 4 * rounds);
}

}  // namespace
}  // namespace trinco::detail
