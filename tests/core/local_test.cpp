#include "core/breaker/local.hpp"

#include <gtest/gtest.h>

#include "tests/core/local_fixture.hpp"

namespace trinco::test {
namespace {

using detail::view;

driven_breaker opened(const detail::local_rules& rules = small_rules()) {
    driven_breaker d(rules);
    d.calls(4, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::open);
    return d;
}

driven_breaker half_open(const detail::local_rules& rules = small_rules()) {
    auto d = opened(rules);
    d.pass(1s);
    const auto probe = d.begin();
    EXPECT_TRUE(probe);
    d.end(*probe, outcome::ignored);
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    return d;
}

view fleet(breaker_state state, std::chrono::milliseconds remaining, std::uint8_t level = 0) {
    view v;
    v.state = state;
    v.remaining = remaining;
    v.backoff_level = level;
    return v;
}

TEST(LocalClosed, OpensAtTheThresholdAndSaysWhy) {
    driven_breaker d(small_rules());
    EXPECT_EQ(d.calls(2, outcome::success), 2);
    EXPECT_EQ(d.calls(1, outcome::failure), 1);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    d.calls(1, outcome::failure);
    ASSERT_EQ(d.changes.size(), 1U);
    EXPECT_EQ(d.changes[0].from, breaker_state::closed);
    EXPECT_EQ(d.changes[0].to, breaker_state::open);
    EXPECT_EQ(d.changes[0].reason, trip_reason::failure_rate);
    EXPECT_EQ(d.changes[0].lasts, 1s);
    EXPECT_EQ(d.changes[0].era, 2U);
    EXPECT_EQ(d.b.reason(), trip_reason::failure_rate);
}

TEST(LocalClosed, OpensAfterFailuresInARow) {
    auto rules = small_rules();
    rules.shared.minimum_calls = 1000;
    rules.consecutive_failures = 3;
    driven_breaker d(rules);
    EXPECT_FALSE(d.b.sees_every_outcome());
    d.calls(2, outcome::failure);
    EXPECT_TRUE(d.b.sees_every_outcome());
    d.calls(5, outcome::ignored);
    d.calls(1, outcome::success);
    EXPECT_FALSE(d.b.sees_every_outcome());
    d.calls(2, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::closed) << "a success breaks the row";
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.reason(), trip_reason::consecutive_failures);
}

TEST(LocalClosed, JudgesItsCountWindowInsteadOfTheTime) {
    auto rules = small_rules();
    rules.count_window = 4;
    driven_breaker d(rules);
    EXPECT_TRUE(d.b.sees_every_outcome());
    d.calls(2, outcome::success);
    d.calls(1, outcome::failure);
    d.pass(1h);
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.reason(), trip_reason::failure_rate) << "the last 4, however old";
}

TEST(LocalClosed, OpensBySlowCalls) {
    auto rules = small_rules();
    rules.shared.slow_calls = true;
    driven_breaker d(rules);
    d.calls(4, outcome::success, true);
    EXPECT_EQ(d.b.reason(), trip_reason::slow_call_rate);
}

TEST(LocalOpen, RefusesUntilItsTimeIsOver) {
    auto d = opened();
    d.pass(999'999'999ns);
    EXPECT_FALSE(d.b.probing_due(d.now));
    EXPECT_EQ(d.b.remaining(d.now), 1ms);
    EXPECT_EQ(d.calls(10, outcome::success), 0);
    EXPECT_EQ(d.retry_after, 1ms);
    d.pass(1ns);
    EXPECT_TRUE(d.b.probing_due(d.now));
    EXPECT_EQ(d.b.state(), breaker_state::open) << "time alone changes nothing";
    EXPECT_TRUE(d.begin());
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
}

TEST(LocalOpen, JitterMakesItLongerByARandomShare) {
    auto rules = small_rules();
    rules.shared.jitter = 0.5;
    driven_breaker d(rules);
    d.random = 0.5;
    d.calls(4, outcome::failure);
    EXPECT_EQ(d.b.remaining(d.now), 1'250ms);
}

TEST(LocalHalfOpen, ClosesWhenAllProbesSettledUnderTheThreshold) {
    auto d = half_open();
    EXPECT_EQ(d.b.probes_left(), 3U);
    d.calls(1, outcome::success);
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    EXPECT_EQ(d.b.probes_left(), 1U);
    d.calls(1, outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    EXPECT_TRUE(d.window().empty()) << "probes are not carried into the window";
}

TEST(LocalHalfOpen, OpensAsSoonAsClosingIsImpossible) {
    auto d = half_open();
    d.calls(2, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_EQ(d.b.reason(), trip_reason::probes_failed);
    EXPECT_EQ(d.b.backoff_level(), 1);
    EXPECT_EQ(d.b.remaining(d.now), 2s);
}

TEST(LocalHalfOpen, SlowProbesKeepItOpenByTheSlowRate) {
    auto rules = small_rules();
    rules.shared.slow_calls = true;
    rules.shared.slow_call_rate = 0.6;
    auto d = half_open(rules);
    d.calls(1, outcome::success, true);
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    d.calls(1, outcome::success, true);
    EXPECT_EQ(d.b.state(), breaker_state::open);
}

TEST(LocalHalfOpen, RetryAfterIsTheFirstDeadline) {
    auto d = half_open();
    ASSERT_TRUE(d.begin());
    d.pass(100ms);
    ASSERT_TRUE(d.begin());
    ASSERT_TRUE(d.begin());
    EXPECT_EQ(d.b.next_deadline(), d.now + 400ms);
    EXPECT_FALSE(d.begin());
    EXPECT_EQ(d.retry_after, 400ms);
}

TEST(LocalBackoff, GrowsWithReopeningsAndDecaysWithHealth) {
    auto d = opened();
    for (const auto lasts : {1000ms, 2000ms, 4000ms, 8000ms, 10'000ms, 10'000ms}) {
        EXPECT_EQ(d.b.remaining(d.now), lasts);
        d.pass(lasts);
        d.calls(2, outcome::failure);
    }
    d.pass(10s);
    d.calls(3, outcome::success);
    ASSERT_EQ(d.b.state(), breaker_state::closed);
    d.pass(9'999ms);
    d.calls(4, outcome::failure);
    EXPECT_EQ(d.b.remaining(d.now), 10s) << "opened again before open_max of health";
    d.pass(10s);
    d.calls(3, outcome::success);
    d.pass(10s);
    d.calls(4, outcome::failure);
    EXPECT_EQ(d.b.backoff_level(), 0);
    EXPECT_EQ(d.b.remaining(d.now), 1s);
}

TEST(LocalRamp, GrowsFromATenthToAll) {
    auto rules = small_rules();
    rules.shared.recovery_ramp = 10s;
    auto d = half_open(rules);
    d.calls(3, outcome::success);
    ASSERT_EQ(d.b.state(), breaker_state::closed);
    EXPECT_EQ(d.changes.back().lasts, 10s);
    EXPECT_TRUE(d.b.ramping(d.now));
    EXPECT_DOUBLE_EQ(d.b.admitted_share(d.now), 0.1);
    EXPECT_DOUBLE_EQ(d.b.admitted_share(d.now + 5s), 0.55);
    EXPECT_EQ(d.b.remaining(d.now + 4s), 6s);
    EXPECT_FALSE(d.b.ramping(d.now + 10s));
    EXPECT_DOUBLE_EQ(d.b.admitted_share(d.now + 10s), 1.0);
}

TEST(LocalOperator, TripOpensForTheGivenTimeAndRecoversAsUsual) {
    driven_breaker d(small_rules());
    const auto c = d.b.trip(3s, d.now);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->reason, trip_reason::operator_trip);
    EXPECT_EQ(d.b.remaining(d.now), 3s);
    d.pass(3s);
    EXPECT_EQ(d.calls(3, outcome::success), 3);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    d.trip();
    EXPECT_EQ(d.b.remaining(d.now), 1s);
}

TEST(LocalOperator, ResetClosesWithNothingRemembered) {
    auto rules = small_rules();
    rules.shared.recovery_ramp = 10s;
    auto d = half_open(rules);
    d.calls(2, outcome::failure);
    ASSERT_EQ(d.b.backoff_level(), 1);
    d.reset();
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    EXPECT_FALSE(d.b.ramping(d.now));
    d.calls(4, outcome::failure);
    EXPECT_EQ(d.b.remaining(d.now), 1s) << "the backoff starts anew";
}

TEST(LocalOperator, ResetOfAClosedOneEmptiesItsWindow) {
    driven_breaker d(small_rules());
    d.calls(3, outcome::failure);
    d.reset();
    EXPECT_TRUE(d.window().empty());
    EXPECT_TRUE(d.changes.empty()) << "no change of state";
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

TEST(LocalSuspended, StandsStillAndIsCleanAfterwards) {
    driven_breaker d(small_rules());
    d.calls(3, outcome::failure);
    const auto call = *d.begin();
    d.suspend();
    EXPECT_TRUE(d.b.suspended());
    EXPECT_FALSE(d.begin());
    d.end(call, outcome::failure);
    d.resume();
    EXPECT_FALSE(d.b.suspended());
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::closed) << "nothing from before counts";
}

TEST(LocalSuspended, GoesOnWhenItWasOpenItself) {
    auto d = opened();
    d.pass(400ms);
    d.suspend();
    d.pass(250ms);
    d.resume();
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_EQ(d.b.remaining(d.now), 350ms) << "the dependency was left alone meanwhile";
}

TEST(LocalSuspended, ProbesAtOnceWhenTheTimeOfItsOwnOpeningIsOver) {
    auto d = opened();
    d.pass(400ms);
    d.suspend();
    d.pass(600ms);
    EXPECT_FALSE(d.b.probing_due(d.now));
    d.resume();
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_TRUE(d.b.probing_due(d.now));
    EXPECT_EQ(d.calls(100, outcome::failure), 2) << "no herd: it closes by probes only";
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_EQ(d.b.backoff_level(), 1);
}

TEST(LocalSuspended, GoesOnProbingWhenItWasHalfOpen) {
    auto d = half_open();
    const auto probe = *d.begin();
    d.suspend();
    d.end(probe, outcome::failure);
    d.resume();
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_TRUE(d.b.probing_due(d.now));
    EXPECT_EQ(d.calls(3, outcome::success), 3);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

TEST(LocalSuspended, OpensWhenTheFleetClosedWithoutThisVoter) {
    driven_breaker d(small_rules());
    d.suspend();
    d.resume(true);
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_EQ(d.b.remaining(d.now), 1s);
    EXPECT_EQ(d.changes.back().reason, trip_reason::probes_failed);
    d.resume(true);
    EXPECT_EQ(d.changes.size(), 1U) << "said again, it changes nothing";
}

TEST(LocalSuspended, OperatorsReachTheStateBeneath) {
    driven_breaker d(small_rules());
    d.suspend();
    d.trip();
    EXPECT_FALSE(d.begin());
    d.resume();
    EXPECT_EQ(d.b.state(), breaker_state::open);
    d.suspend();
    d.reset();
    d.resume();
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

TEST(LocalInherited, TakesOverTimeAndLevelWithAnExtraShare) {
    driven_breaker d(small_rules());
    d.suspend();
    d.random = 0.5;
    d.inherit(fleet(breaker_state::open, 700ms, 3), 2);
    EXPECT_TRUE(d.b.inherited());
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_EQ(d.b.reason(), trip_reason::fleet);
    EXPECT_EQ(d.b.backoff_level(), 3);
    EXPECT_EQ(d.b.remaining(d.now), 950ms) << "and half of open_for / 2";
}

TEST(LocalInherited, SharesTheProbesAmongTheLiving) {
    auto rules = small_rules();
    rules.shared.half_open_probes = 7;
    driven_breaker d(rules);
    d.suspend();
    d.inherit(fleet(breaker_state::half_open, 0ms), 3);
    std::vector<driven_breaker::call> probes;
    while (const auto c = d.begin()) probes.push_back(*c);
    ASSERT_EQ(probes.size(), 2U);
    for (const auto& p : probes) d.end(p, outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    EXPECT_FALSE(d.b.inherited());
    d.calls(4, outcome::failure);
    d.pass(1h);
    int all = 0;
    while (d.begin()) ++all;
    EXPECT_EQ(all, 7) << "its own openings are not shared";
}

TEST(LocalInherited, ManyInstancesStillProbe) {
    driven_breaker d(small_rules());
    d.suspend();
    d.inherit(fleet(breaker_state::open, 0ms), 1000);
    EXPECT_TRUE(d.begin());
    EXPECT_FALSE(d.begin());
}

TEST(LocalInherited, ReopensWithTheNextLevelAndExtraTime) {
    driven_breaker d(small_rules());
    d.suspend();
    d.inherit(fleet(breaker_state::open, 0ms, 1), 1000);
    d.random = 0.5;
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_TRUE(d.b.inherited());
    EXPECT_EQ(d.b.remaining(d.now), 4s + 250ms);
}

TEST(LocalInherited, ItsOwnStateComesBackWithTheStore) {
    auto d = opened();
    d.pass(300ms);
    d.suspend();
    d.inherit(fleet(breaker_state::open, 60s, 5), 2);
    EXPECT_EQ(d.b.remaining(d.now), 60s);
    d.pass(200ms);
    d.resume();
    EXPECT_EQ(d.b.state(), breaker_state::open);
    EXPECT_EQ(d.b.remaining(d.now), 500ms);
    EXPECT_EQ(d.b.backoff_level(), 0);
}

TEST(LocalInherited, EndsWhenTheFleetIsClosedOrDecidesAgain) {
    driven_breaker d(small_rules());
    d.suspend();
    d.inherit(fleet(breaker_state::open, 60s, 5), 2);
    d.resume();
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    EXPECT_FALSE(d.b.inherited());
    d.suspend();
    d.inherit(fleet(breaker_state::open, 60s, 5), 2);
    d.suspend();
    EXPECT_TRUE(d.b.suspended());
    EXPECT_FALSE(d.b.inherited());
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

TEST(LocalInherited, AClosedFleetLeavesOnlyItsRamp) {
    auto rules = small_rules();
    rules.shared.recovery_ramp = 10s;
    driven_breaker d(rules);
    d.calls(3, outcome::failure);
    d.inherit(fleet(breaker_state::closed, 4s), 2);
    EXPECT_FALSE(d.b.inherited());
    EXPECT_EQ(d.window().failure, 3U);
    EXPECT_EQ(d.b.remaining(d.now), 4s);
    EXPECT_DOUBLE_EQ(d.b.admitted_share(d.now), 0.64);
}

TEST(LocalRules, ALowerLimitJudgesAllThatHasSettled) {
    auto rules = small_rules();
    rules.shared.half_open_probes = 6;
    auto d = half_open(rules);
    d.calls(1, outcome::failure);
    d.calls(2, outcome::success);
    rules.shared.half_open_probes = 2;
    d.b.set_rules(rules);
    (void)d.begin();
    EXPECT_EQ(d.b.state(), breaker_state::closed) << "one of three, not one of two";
}

TEST(LocalClosed, OutcomesOfAnotherEraAreNotEvenRemembered) {
    auto rules = small_rules();
    rules.count_window = 4;
    rules.consecutive_failures = 2;
    driven_breaker d(rules);
    for (int i = 0; i < 10; ++i) {
        EXPECT_FALSE(d.b.on_outcome(0, counter::failure, {}, d.now, 0));
    }
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.reason(), trip_reason::consecutive_failures);
}

TEST(LocalRules, MayChangeInAnyState) {
    auto d = half_open();
    d.calls(2, outcome::success);
    auto rules = small_rules();
    rules.shared.half_open_probes = 1;
    d.b.set_rules(rules);
    EXPECT_FALSE(d.b.probes_left());
    (void)d.begin();
    EXPECT_EQ(d.b.state(), breaker_state::closed) << "what has settled is enough now";
    rules.count_window = 10;
    d.b.set_rules(rules);
    EXPECT_TRUE(d.b.sees_every_outcome());
    EXPECT_EQ(d.b.rules(), rules);
}

}  // namespace
}  // namespace trinco::test
