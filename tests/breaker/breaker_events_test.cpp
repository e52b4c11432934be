// Events: in order, with a snapshot each, outside every lock.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "breaker_fixture.hpp"

namespace trinco::test {
namespace {

std::string line(const event& e) {
    return std::string(text_of(e.kind)) + " " + std::string(text_of(e.from)) + ">" +
           std::string(text_of(e.to)) + " " + e.reason;
}

using lines = std::vector<std::string>;

TEST(BreakerEvents, FollowTheTransitionsInOrder) {
    timed_breaker b(quick());
    lines seen;
    const auto s = b->on_event([&](const event& e) { seen.push_back(line(e)); });
    b.fail(4);
    b.pass(1s);
    b.fail(1);
    b.pass(2s);
    b.succeed(2);
    EXPECT_EQ(
        seen,
        (lines{"state_changed closed>open failure rate", "state_changed open>half_open probing",
               "state_changed half_open>open probes failed", "state_changed open>half_open probing",
               "state_changed half_open>closed probes succeeded"}));
}

TEST(BreakerEvents, CarryASnapshotOfTheirMoment) {
    timed_breaker b(quick());
    std::vector<snapshot> seen;
    const auto s = b->on_event([&](const event& e) { seen.push_back(e.now); });
    b.fail(4);
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].state, breaker_state::open);
    EXPECT_EQ(seen[0].totals.failure, 4U);
    EXPECT_EQ(seen[0].retry_after, 1s);
    EXPECT_EQ(seen[0].transitions, 1U);
}

TEST(BreakerEvents, TellOverridesAndTheirEnd) {
    timed_breaker b;
    lines seen;
    const auto s = b->on_event([&](const event& e) {
        seen.push_back(std::string(text_of(e.kind)) + " " + std::string(text_of(e.now.over)) + " " +
                       e.reason);
    });
    EXPECT_FALSE(b->force_open("incident 7", 10s));
    b.pass(10s);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(seen, (lines{"override_changed forced_open incident 7", "override_changed none "}));
}

TEST(BreakerEvents, TellWhyAnOperatorResumed) {
    timed_breaker b;
    lines seen;
    const auto s = b->on_event([&](const event& e) { seen.push_back(line(e)); });
    EXPECT_FALSE(b->disable(""));
    EXPECT_FALSE(b->resume("quiet again"));
    EXPECT_EQ(seen, (lines{"override_changed closed>closed disabled",
                           "override_changed closed>closed quiet again"}));
}

TEST(BreakerEvents, NoneAfterTheSubscriptionHasEnded) {
    timed_breaker b(quick());
    int seen = 0;
    auto s = b->on_event([&](const event&) { ++seen; });
    b.fail(4);
    s = {};
    (void)b->reset("test");
    EXPECT_EQ(seen, 1);
}

TEST(BreakerEvents, ASubscriptionMayEndItselfAndOutliveTheBreaker) {
    subscription s;
    int seen = 0;
    {
        timed_breaker b(quick());
        s = b->on_event([&](const event&) {
            ++seen;
            s = {};
        });
        b.fail(4);
        (void)b->reset("test");
        s = b->on_event([](const event&) {});
    }
    EXPECT_EQ(seen, 1);
    s = {};
}

TEST(BreakerEvents, EverySubscriberGetsEveryEvent) {
    timed_breaker b(quick());
    lines seen;
    const auto one = b->on_event([&](const event& e) { seen.push_back("one " + line(e)); });
    const auto two = b->on_event([&](const event& e) { seen.push_back("two " + line(e)); });
    b.fail(4);
    EXPECT_EQ(seen, (lines{"one state_changed closed>open failure rate",
                           "two state_changed closed>open failure rate"}));
}

// A callback that does not return holds up the others, but not the breaker, nor its memory.
TEST(BreakerEvents, AHangingCallbackMissesTheOldest) {
    timed_breaker b(quick());
    std::vector<std::uint64_t> order;
    std::uint64_t missed = 0;
    const auto s = b->on_event([&](const event& e) {
        order.push_back(e.now.transitions);
        missed += e.missed;
        if (order.size() > 1) return;
        for (int i = 0; i < 1'000; ++i) {  // as other threads would meanwhile
            (void)b->reset("test");
            (void)b->trip("test", 1s);
        }
    });
    (void)b->trip("test", 1s);
    (void)b->reset("test");
    // 1 was delivered, then 2,000 came, of which the first 1,000 went; the last came by itself.
    EXPECT_EQ(missed, 1'000U);
    ASSERT_EQ(order.size(), b->snapshot().transitions - missed);
    EXPECT_EQ(order[1], 1'002U);
    EXPECT_EQ(order.back(), b->snapshot().transitions);
}

TEST(BreakerEvents, AnEmptyCallbackIsNone) {
    timed_breaker b(quick());
    const auto s = b->on_event(nullptr);
    b.fail(4);
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(BreakerEvents, OneAtATimeAndInOrderAcrossThreads) {
    timed_breaker b(quick());
    std::atomic<int> inside{0};
    std::atomic<bool> overlapped{false};
    std::vector<std::uint64_t> order;
    const auto s = b->on_event([&](const event& e) {
        if (inside.fetch_add(1) != 0) overlapped = true;
        order.push_back(e.now.transitions);
        inside.fetch_sub(1);
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                (void)b->trip("test", 1s);
                (void)b->reset("test");
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_FALSE(overlapped);
    ASSERT_EQ(order.size(), b->snapshot().transitions);
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i + 1);
}

}  // namespace
}  // namespace trinco::test
