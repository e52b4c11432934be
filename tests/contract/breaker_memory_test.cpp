#include "sim/world.hpp"
#include "store/memory/memory_breakers.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

constexpr store_time first_moment = std::chrono::hours(24) * 365 * 50;

// memory: on virtual time. The store's clock is the world's, on another calendar.
class memory_fixture : public breaker_store_fixture {
public:
    std::unique_ptr<breaker_store> make_store(breaker_identity who) override {
        return std::make_unique<memory_breakers>(node_, server_, std::move(who));
    }
    loop& on() override { return node_; }
    void pass(milliseconds d) override { world_.run_for(d); }
    bool run_until(const std::function<bool()>& done, milliseconds limit) override {
        world_.run_for(0ms);
        for (milliseconds t{0}; t < limit && !done(); t += 1ms) world_.run_for(1ms);
        return done();
    }
    faults can() override {
        faults f;
        f.lose_data = [this] { server_->clear(); };
        f.miss_messages = [this] { server_->announce_gap(); };
        f.breakers_kept = [this] { return server_->size(); };
        return f;
    }

    [[nodiscard]] memory_breaker_server& server() { return *server_; }

private:
    sim::world world_{1};
    sim::node& node_ = world_.add_node("here");
    std::shared_ptr<memory_breaker_server> server_ =
        std::make_shared<memory_breaker_server>([this] {
            return first_moment +
                   std::chrono::duration_cast<store_time>(world_.now().time_since_epoch());
        });
};

INSTANTIATE_BREAKER_STORE_SUITE(memory, [] { return std::make_unique<memory_fixture>(); });

TEST(MemoryBreakersTest, ADumpBringsBackWhatWasAndTellsSubscribers) {
    memory_fixture f;
    member a(f, "a-1", "a");
    a.report("payments", calls(3, 0));
    const auto dump = f.server().snapshot();
    a.report("payments", calls(4, 0));
    a.report("other", calls(1, 0));
    a.subscribe();
    f.server().restore(dump);
    f.pass(1ms);
    ASSERT_EQ(a.heard.size(), 1U);
    EXPECT_EQ(a.heard[0].kind, notice::kind_t::new_server);
    EXPECT_EQ(f.server().size(), 1U);
    EXPECT_EQ(f.server().record_of("payments").totals, calls(3, 0));
}

TEST(MemoryBreakersTest, ACallOverTheBoundIsBusy) {
    memory_fixture f;
    member a(f, "a-1", "a");
    std::vector<op> waiting;
    int answered = 0;
    int busy = 0;
    for (int i = 0; i < 1'030; ++i) {
        waiting.push_back(
            a.store().inspect("", "", 1, f.on().now() + 1s, [&](std::error_code ec, const page&) {
                ++answered;
                if (ec == errc::busy) ++busy;
            }));
    }
    f.pass(1ms);
    EXPECT_EQ(answered, 1'030);
    EXPECT_EQ(busy, 6);
    EXPECT_FALSE(a.inspect("").error);
}

TEST(MemoryBreakersTest, WhatRanOutIsRemovedByTheTrafficOfOthers) {
    memory_fixture f;
    member a(f, "a-1", "a");
    for (int i = 0; i < 50; ++i) a.report("old" + std::to_string(i), calls(1, 0));
    f.pass(21s);
    for (int i = 0; i < 60; ++i) a.report("busy", calls(1, 0));
    EXPECT_EQ(f.server().snapshot().size(), 1U);
}

TEST(MemoryBreakersTest, TheSystemsClockIsTheDefault) {
    memory_breaker_server server;
    news n;
    n.breaker = "payments";
    n.options = to_text(suite_policy());
    const auto before = std::chrono::system_clock::now().time_since_epoch();
    const verdict v = server.exchange({"a-1", "a"}, n);
    const auto after = std::chrono::system_clock::now().time_since_epoch();
    const std::chrono::microseconds stamp(v.own_stamp);
    EXPECT_GE(stamp, std::chrono::floor<std::chrono::microseconds>(before));
    EXPECT_LE(stamp, after + 2us);
}

}  // namespace
}  // namespace trinco::detail::test
