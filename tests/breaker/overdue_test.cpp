// Calls that hang: seen before they return.

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "breaker/overdue.hpp"
#include "breaker_fixture.hpp"

namespace trinco::test {
namespace {

std::vector<permit> take(timed_breaker& b, int n) {
    std::vector<permit> out;
    for (int i = 0; i < n; ++i) out.push_back(b->try_acquire());
    return out;
}

breaker_options slow_at(std::chrono::milliseconds after) {
    auto o = quick();
    o.slow_call_after = after;
    return o;
}

TEST(Overdue, CallsStillOutCountAsSlowNow) {
    timed_breaker b(slow_at(100ms));
    const auto hanging = take(b, 4);
    b.pass(99ms);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.pass(1ms);
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().reason, "slow call rate");
}

TEST(Overdue, CallsAreStillOutAfterTheyHaveOpenedIt) {
    timed_breaker b(slow_at(100ms));
    auto hanging = take(b, 4);
    b.pass(100ms);
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().overdue, 4U);
    hanging[0].success();
    EXPECT_EQ(b->snapshot().overdue, 3U);
    b.pass(1s);
    b.succeed(2);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(b->snapshot().overdue, 3U);
    b.succeed(4);  // those three belong to another era and are not judged
    EXPECT_EQ(b->state(), breaker_state::closed);
    hanging.clear();
    EXPECT_EQ(b->snapshot().overdue, 0U);
}

TEST(Overdue, OneOfAnOlderEraIsFoundToo) {
    auto o = slow_at(100ms);
    o.call_timeout = 500ms;
    timed_breaker b(o);
    const auto hanging = take(b, 1);
    b.fail(4);
    b.pass(100ms);
    EXPECT_EQ(b->snapshot().overdue, 1U);
    b.pass(400ms);  // failed, for whoever still counts it
    EXPECT_EQ(b->snapshot().overdue, 0U);
}

TEST(Overdue, TheNextCallerFindsThem) {
    timed_breaker b(slow_at(100ms));
    const auto hanging = take(b, 4);
    b.pass(100ms);
    EXPECT_EQ(b->try_acquire().refusal().reason, refusal_reason::open);
}

TEST(Overdue, OneThatReturnsIsCountedByItsOutcome) {
    timed_breaker b(slow_at(100ms));
    b.succeed(7);
    auto p = b->try_acquire();
    b.pass(200ms);
    EXPECT_EQ(b->snapshot().overdue, 1U);
    p.failure();
    const auto s = b->snapshot();
    EXPECT_EQ(s.overdue, 0U);
    EXPECT_EQ(s.window.failure, 1U);
    EXPECT_EQ(s.window.slow_failure, 1U);
    EXPECT_EQ(s.state, breaker_state::closed);
}

TEST(Overdue, OneThatIsIgnoredCountsNoMore) {
    auto o = slow_at(100ms);
    o.slow_call_rate = 0.5;
    timed_breaker b(o);
    b.succeed(2);
    {
        const auto p = b->try_acquire();
        b.pass(100ms);
        EXPECT_EQ(b->snapshot().overdue, 1U);
    }
    EXPECT_EQ(b->snapshot().overdue, 0U);
    b.succeed(1);
    auto p = b->try_acquire();
    b.pass(100ms);  // one of four: were the ignored one still there, it would be two of five
    EXPECT_EQ(b->state(), breaker_state::closed);
    p.success();
    EXPECT_EQ(b->state(), breaker_state::closed);
}

TEST(Overdue, OffUnlessAskedFor) {
    timed_breaker b(quick());
    const auto hanging = take(b, 10);
    b.pass(24h);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(b->snapshot().overdue, 0U);
}

TEST(Overdue, CallTimeoutIsAFailureAndTheLateResultHasNoEffect) {
    auto o = quick();
    o.call_timeout = 500ms;
    timed_breaker b(o);
    auto hanging = take(b, 4);
    b.pass(499ms);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.pass(1ms);
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().totals.failure, 4U);
    for (auto& p : hanging) p.success();
    const auto s = b->snapshot();
    EXPECT_EQ(s.totals, (counts{.failure = 4}));
    EXPECT_EQ(s.stale, 0U);
}

TEST(Overdue, CallTimeoutHoldsWhenNobodyLooked) {
    auto o = quick();
    o.call_timeout = 500ms;
    timed_breaker b(o);
    auto p = b->try_acquire();
    b.pass(600ms);
    p.success();
    EXPECT_EQ(b->snapshot().totals, (counts{.failure = 1}));
}

TEST(Overdue, AProbeBeyondCallTimeoutHasFailed) {
    auto o = quick();
    o.half_open_probes = 1;
    o.call_timeout = 500ms;
    timed_breaker b(o);
    b.fail(4);
    b.pass(1s);
    auto probe = b->try_acquire();
    b.pass(500ms);
    probe.success();
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(Overdue, FirstSlowThenFailed) {
    auto o = quick();
    o.overdue_after = 100ms;
    o.call_timeout = 500ms;
    o.slow_call_rate = 1.0;
    timed_breaker b(o);
    b.succeed(4);
    auto hanging = take(b, 3);
    b.pass(100ms);
    EXPECT_EQ(b->snapshot().overdue, 3U);
    b.pass(400ms);
    const auto s = b->snapshot();
    EXPECT_EQ(s.overdue, 0U);
    EXPECT_EQ(s.window.failure, 3U);
    EXPECT_EQ(s.window.slow_failure, 3U);
    EXPECT_EQ(s.window.success, 4U);
}

TEST(Overdue, CallsOfAnOlderEraAreNotCountedAgain) {
    timed_breaker b(slow_at(100ms));
    auto hanging = take(b, 4);
    b.pass(100ms);
    EXPECT_EQ(b->state(), breaker_state::open);
    (void)b->reset("test");
    b.pass(1s);
    EXPECT_EQ(b->snapshot().overdue, 4U);  // are out, but not judged
    EXPECT_EQ(b->state(), breaker_state::closed);
    hanging.clear();
    EXPECT_EQ(b->snapshot().overdue, 0U);
    EXPECT_EQ(b->snapshot().stale, 4U);
}

TEST(Overdue, ManyCallsAtOnceAllHaveAPlace) {
    auto o = slow_at(100ms);
    o.minimum_calls = 5000;
    timed_breaker b(o);
    auto hanging = take(b, 5000);
    b.pass(100ms);
    EXPECT_EQ(b->snapshot().state, breaker_state::open);
    (void)b->reset("test");
    hanging = take(b, 4999);
    b.pass(100ms);
    EXPECT_EQ(b->snapshot().overdue, 4999U);
    for (auto& p : hanging) p.success();
    EXPECT_EQ(b->snapshot().overdue, 0U);
}

// One caller does not pay for all who hang: each finds a bounded number, and nothing gets lost.
TEST(Overdue, ManyTimeoutsAreCountedByManyCallers) {
    auto o = quick();
    o.minimum_calls = 100'000;
    o.call_timeout = 500ms;
    timed_breaker b(o);
    const auto hanging = take(b, 3000);
    b.pass(500ms);
    b.succeed(1);
    EXPECT_LE(b->snapshot().totals.failure, 2 * detail::overdue_table::most_timed_out);
    b.succeed(1);
    EXPECT_EQ(b->snapshot().totals.failure, 3000U);
}

// The time of a scan grows with the calls that are out, so it must not come with each call of a
// crowd that becomes late one by one.
TEST(Overdue, ScansOfManyCallsLieApart) {
    detail::overdue_table table(150ms, 0ms, 1);
    std::vector<detail::overdue_table::late_call> found;
    std::chrono::nanoseconds now = 24h;
    for (int i = 0; i < 100'000; ++i) {
        ASSERT_NE(table.enter(0, now, 1), 0U);
        now += 1us;
    }
    table.scan(now, found);
    EXPECT_TRUE(found.empty());
    std::size_t scans = 0;
    for (const auto end = now + 150ms; now < end; now += 1us) {
        if (!table.due(now)) continue;
        table.scan(now, found);
        ++scans;
    }
    EXPECT_LE(scans, 10U);
    now += 50ms;
    EXPECT_TRUE(table.due(now));
    table.scan(now, found);
    EXPECT_EQ(found.size(), 100'000U);
}

// A place is found without looking at all those that are taken, wherever these are.
TEST(Overdue, PlacesAreFoundAmongManyThatHang) {
    detail::overdue_table table(100ms, 0ms, 1);
    std::vector<std::uint64_t> held;
    for (int i = 0; i < 100'000; ++i) held.push_back(table.enter(0, 24h, 1));
    // Each second one ends and another begins: were a search to begin at the first place each time,
    // these would look at thousands of millions of places.
    for (std::size_t i = 0; i < 400'000; ++i) {
        auto& h = held[(i * 7919) % held.size()];
        EXPECT_EQ(table.leave(h), detail::overdue_table::mark::in_time);
        h = table.enter(0, 24h, 1);
        ASSERT_NE(h, 0U);
    }
    std::set<std::uint64_t> places(held.begin(), held.end());
    EXPECT_EQ(places.size(), held.size());
}

TEST(Overdue, OffWhenSetToZeroThoughDurationsAreJudged) {
    auto o = slow_at(100ms);
    o.overdue_after = 0ms;
    timed_breaker b(o);
    auto hanging = take(b, 4);
    b.pass(200ms);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(b->snapshot().overdue, 0U);
    for (auto& p : hanging) p.success();
    EXPECT_EQ(b->snapshot().reason, "slow call rate");
}

}  // namespace
}  // namespace trinco::test
