// Threads that wait for the store's answer, and give up before it comes.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine_fleet_fixture.hpp"

namespace trinco::detail {
namespace {

// The node's loop for a breaker whose callers wait on threads of their own: what they post runs
// when the test says so.
class held_loop final : public loop {
public:
    explicit held_loop(loop& on) : on_(on) {}
    [[nodiscard]] boot_clock::time_point now() override { return on_.now(); }
    [[nodiscard]] std::uint64_t random() override { return on_.random(); }
    [[nodiscard]] op at(deadline when, unique_function<void()> f) override {
        return on_.at(when, std::move(f));
    }
    void post(unique_function<void()> f) override {
        const std::lock_guard hold(m_);
        posted_.push_back(std::move(f));
        some_.notify_one();
    }
    // All that has been posted, at least one.
    void turn() {
        std::vector<unique_function<void()>> now;
        {
            std::unique_lock hold(m_);
            some_.wait(hold, [this] { return !posted_.empty(); });
            now.swap(posted_);
        }
        for (auto& f : now) f();
    }

private:
    loop& on_;
    std::mutex m_;
    std::condition_variable some_;
    std::vector<unique_function<void()>> posted_;
};

class WaitingCaller : public testing::Test {
protected:
    WaitingCaller() {
        f.core->leave_fleet();
        f.core->join_fleet(held, *f.sync);
        f.run(300ms);
        f.publish(open_view(100, 100ms));
        f.run(100ms);
    }
    ~WaitingCaller() override { f.core->leave_fleet(); }

    static breaker_options impatient() {
        auto o = calm();
        o.store_timeout = 20ms;
        return o;
    }
    fleet_engine f{impatient()};
    held_loop held{f.node};
};

// Refused once and counted once; the lease goes back, and the next caller gets one.
TEST_F(WaitingCaller, AProbeGrantedTooLateIsGivenBack) {
    permit p;
    std::thread caller([&] { p = f.core->acquire(); });
    held.turn();  // the question is on its way
    caller.join();
    EXPECT_EQ(p.refusal().reason, refusal_reason::store_late);
    f.run(10ms);  // the grant
    held.turn();  // what it posts
    f.run(10ms);
    ASSERT_EQ(f.store.probes.size(), 2U);
    EXPECT_EQ(f.store.probes[1].request.step, probe_step::give_back);
    const auto s = f.core->snapshot();
    EXPECT_EQ(s.totals, (counts{.rejected = 1}));
    EXPECT_EQ(s.probes_in_flight, 0U);
    EXPECT_TRUE(f.acquire()->is_probe());
}

TEST_F(WaitingCaller, ARefusalThatComesTooLateCountsOnce) {
    f.store.on_probe = [&](const probe_request& r) {
        return probe_reply{
            .granted = false, .retry_after = 15ms, .fleet = f.store.truth[r.breaker], .live = 1};
    };
    permit p;
    std::thread caller([&] { p = f.core->acquire(); });
    held.turn();
    caller.join();
    f.run(10ms);
    EXPECT_EQ(p.refusal().reason, refusal_reason::store_late);
    EXPECT_EQ(f.core->snapshot().totals, (counts{.rejected = 1}));
    EXPECT_EQ(f.core->acquire().refusal().reason, refusal_reason::no_probe_left);
}

TEST_F(WaitingCaller, WhoGaveUpBeforeTheLoopsTurnAsksForNothing) {
    permit p;
    std::thread caller([&] { p = f.core->acquire(); });
    caller.join();
    held.turn();
    f.run(10ms);
    EXPECT_EQ(p.refusal().reason, refusal_reason::store_late);
    EXPECT_TRUE(f.store.probes.empty());
    EXPECT_EQ(f.core->snapshot().totals, (counts{.rejected = 1}));
    EXPECT_TRUE(f.acquire()->is_probe());
}

}  // namespace
}  // namespace trinco::detail
