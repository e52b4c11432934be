// What users of circuit breakers complain about, one test for each class that the local breaker
// answers for. (Callbacks that re-enter, and openings while calls hang, belong to circuit_breaker.)
#include <gtest/gtest.h>

#include <limits>

#include "tests/core/local_fixture.hpp"

namespace trinco::test {
namespace {

driven_breaker due_for_probes() {
    driven_breaker d(small_rules());
    d.calls(4, outcome::failure);
    d.pass(1s);
    EXPECT_TRUE(d.b.probing_due(d.now));
    return d;
}

// Half-open for ever, because results of probes never came.
TEST(Complaint, StuckHalfOpen) {
    auto d = due_for_probes();
    for (int round = 0; round < 20; ++round) {
        while (d.begin()) {
        }
        ASSERT_EQ(d.b.state(), breaker_state::half_open);
        d.pass(500ms);
        EXPECT_FALSE(d.begin());
        ASSERT_EQ(d.b.state(), breaker_state::open) << "the deadline of the probes ends it";
        d.pass(10s);
    }
    EXPECT_EQ(d.calls(3, outcome::success), 3);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

// A permit that was dropped without a result (its destructor settles it as ignored) keeps its
// place.
TEST(Complaint, LeakedPermit) {
    auto d = due_for_probes();
    for (int i = 0; i < 100; ++i) {
        const auto probe = d.begin();
        ASSERT_TRUE(probe) << i;
        d.end(*probe, outcome::ignored);
    }
    EXPECT_EQ(d.b.probes_left(), 3U);
    EXPECT_EQ(d.calls(3, outcome::success), 3);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

// A cancelled probe closes or opens the breaker, or blocks the next one.
TEST(Complaint, CancelledProbe) {
    auto d = due_for_probes();
    const auto first = *d.begin();
    const auto second = *d.begin();
    const auto third = *d.begin();
    EXPECT_FALSE(d.begin());
    d.end(second, outcome::ignored);
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    const auto again = d.begin();
    ASSERT_TRUE(again) << "its place is free at once";
    for (const auto& probe : {first, third, *again}) d.end(probe, outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

// Results of calls that began before the last transition move the state.
TEST(Complaint, LateResultOfAnOlderEra) {
    driven_breaker d(small_rules());
    std::vector<driven_breaker::call> slow_calls;
    for (int i = 0; i < 10; ++i) slow_calls.push_back(*d.begin());
    d.calls(4, outcome::failure);
    d.pass(1s);
    const auto probe = *d.begin();
    d.end(slow_calls[0], outcome::success);
    d.end(slow_calls[1], outcome::failure);
    EXPECT_EQ(d.b.probes_left(), 2U) << "they settle no probe";
    d.end(probe, outcome::success);
    d.calls(2, outcome::success);
    ASSERT_EQ(d.b.state(), breaker_state::closed);
    for (int i = 2; i < 10; ++i) d.end(slow_calls[static_cast<std::size_t>(i)], outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::closed) << "failures of the time before the opening";
    EXPECT_TRUE(d.window().empty());
}

// The probe of an earlier half-open decides a later one.
TEST(Complaint, LateProbeOfAnOlderEra) {
    auto d = due_for_probes();
    const auto late = *d.begin();
    d.calls(2, outcome::failure);
    ASSERT_EQ(d.b.state(), breaker_state::open);
    d.end(late, outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::open);
    d.pass(2s);
    const auto fresh = *d.begin();
    d.end(late, outcome::success);
    EXPECT_EQ(d.b.probes_left(), 2U);
    EXPECT_EQ(d.b.probes_in_flight(), 1U);
    d.end(fresh, outcome::success);
    d.end(fresh, outcome::success);
    EXPECT_EQ(d.b.probes_left(), 2U) << "a probe settles once";
}

// A probe that is still out when the breaker opens again is forgotten, and the next half-open lets
// as many through as if it were not there.
TEST(Complaint, TooManyProbesWithThoseOfAnOlderEra) {
    auto d = due_for_probes();
    const auto out = *d.begin();  // half_open_probes = 3, probe_timeout = 500 ms
    d.calls(2, outcome::failure);
    ASSERT_EQ(d.b.state(), breaker_state::open);
    (void)d.b.trip(100ms, d.now);  // a shorter opening than the probe takes
    d.pass(100ms);
    ASSERT_TRUE(d.begin());
    ASSERT_TRUE(d.begin());
    EXPECT_EQ(d.b.probes_in_flight(), 3U);
    EXPECT_FALSE(d.begin()) << "one of the three is still out";
    d.end(out, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::half_open) << "its result is of an older era";
    EXPECT_TRUE(d.begin()) << "but its slot is free";
}

// As before, when nobody ever settles it: its deadline gives the slot back and decides nothing.
TEST(Complaint, HungProbeOfAnOlderEra) {
    auto d = due_for_probes();
    ASSERT_TRUE(d.begin());
    d.calls(2, outcome::failure);
    (void)d.b.trip(100ms, d.now);
    d.pass(500ms);
    EXPECT_EQ(d.calls(3, outcome::success), 3);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    EXPECT_EQ(d.b.probes_in_flight(), 0U);
}

// An outcome that counts as neither keeps the probe's place for ever.
TEST(Complaint, IgnoredOutcomeHoldingAProbe) {
    auto d = due_for_probes();
    EXPECT_EQ(d.calls(50, outcome::ignored), 50);
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    EXPECT_EQ(d.b.probes_in_flight(), 0U);
    EXPECT_EQ(d.b.probes_left(), 3U);
}

// Half-open lets more calls through than it may, all together or one after the other.
TEST(Complaint, TooManyProbes) {
    auto d = due_for_probes();
    std::vector<driven_breaker::call> probes;
    for (int i = 0; i < 100; ++i) {
        if (const auto c = d.begin()) probes.push_back(*c);
    }
    EXPECT_EQ(probes.size(), 3U);
    d.end(probes[0], outcome::success);
    d.end(probes[1], outcome::success);
    EXPECT_EQ(d.calls(100, outcome::success), 0) << "settled ones count towards the limit";
    d.end(probes[2], outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

// Calls count one slice too long, or not at the edge.
TEST(Complaint, WindowEdges) {
    driven_breaker d(small_rules());
    d.pass(99'999'999ns);
    d.calls(3, outcome::failure);
    d.pass(900ms);  // one nanosecond before their slice leaves
    EXPECT_EQ(d.window().failure, 3U);
    d.pass(1ns);
    EXPECT_EQ(d.window().failure, 0U);
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    d.pass(999'999'999ns - 100ms);
    d.calls(3, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::open) << "four within one window";
}

// Old failures of a quiet service open the breaker long after.
TEST(Complaint, SparseOldFailures) {
    driven_breaker d(small_rules());
    for (int i = 0; i < 100; ++i) {
        d.calls(1, outcome::failure);
        d.pass(400ms);
    }
    EXPECT_EQ(d.b.state(), breaker_state::closed) << "never four in one window";
}

// A clock that is set back keeps the breaker open for as long as it was set back.
TEST(Complaint, ClockThatJumpsBack) {
    driven_breaker d(small_rules());
    d.pass(24h);
    d.calls(4, outcome::failure);
    ASSERT_EQ(d.b.state(), breaker_state::open);
    d.pass(-23h);
    EXPECT_FALSE(d.begin());
    EXPECT_LE(d.retry_after, 1s);
    d.pass(1s);
    const auto probe = d.begin();
    ASSERT_TRUE(probe) << "one second of the new time";
    d.pass(-10min);
    EXPECT_FALSE(d.b.next_deadline() < d.now) << "deadlines move with the clock";
    d.end(*probe, outcome::success);
    EXPECT_EQ(d.calls(2, outcome::success), 2);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

TEST(Complaint, ClockThatJumpsForward) {
    auto d = due_for_probes();
    const auto probe = *d.begin();
    d.pass(std::chrono::hours(24 * 365 * 100));
    d.end(probe, outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::half_open) << "one of three has failed by its deadline";
    EXPECT_EQ(d.calls(2, outcome::success), 2);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

// Threads that overtake each other are no jump: no time is made up.
TEST(Complaint, ClockReadingsOutOfOrder) {
    driven_breaker d(small_rules());
    d.pass(1h);
    d.calls(4, outcome::failure);
    for (int i = 0; i < 1'000; ++i) {
        d.pass(10ms);
        EXPECT_FALSE(d.begin());
        d.pass(-10ms);
        EXPECT_FALSE(d.begin());
    }
    EXPECT_EQ(d.b.remaining(d.now), 990ms);
}

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

template <class Spoil>
std::string refusal(Spoil spoil) {
    breaker_options o;
    spoil(o);
    const auto error = validate(o);
    return error ? error->message() : "taken";
}

TEST(Complaint, NegativeOrNaNRates) {
    const std::string range = ", but must be more than 0 and at most 1";
    EXPECT_EQ(refusal([](auto& o) { o.failure_rate = nan_value; }), "failure_rate is nan" + range);
    EXPECT_EQ(refusal([](auto& o) { o.failure_rate = -0.5; }), "failure_rate is -0.5" + range);
    EXPECT_EQ(refusal([](auto& o) { o.failure_rate = 0; }), "failure_rate is 0" + range);
    EXPECT_EQ(refusal([](auto& o) { o.slow_call_rate = nan_value; }),
              "slow_call_rate is nan" + range);
    EXPECT_EQ(refusal([](auto& o) { o.slow_call_rate = -1; }), "slow_call_rate is -1" + range);
}

TEST(Complaint, MinimumCallsAboveACountWindow) {
    EXPECT_EQ(refusal([](auto& o) { o.count_window = 10, o.minimum_calls = 11; }),
              "minimum_calls is 11, but must be 1 to count_window (10), since more calls than that "
              "are never in the window");
    EXPECT_EQ(refusal([](auto& o) { o.count_window = 10, o.minimum_calls = 10; }), "taken");
}

TEST(Complaint, ZeroProbes) {
    EXPECT_EQ(refusal([](auto& o) { o.half_open_probes = 0; }),
              "half_open_probes is 0, but must be 1 to 1,000");
}

// Probes that hang keep everybody out until they return, and then count as successes.
TEST(Complaint, HungProbes) {
    auto d = due_for_probes();
    std::vector<driven_breaker::call> hung;
    while (const auto c = d.begin()) hung.push_back(*c);
    d.pass(499'999'999ns);
    EXPECT_FALSE(d.begin());
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    d.pass(1ns);
    d.end(hung[0], outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::open) << "at the deadline they have failed";
    d.end(hung[1], outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::open);
}

// One lucky call closes the breaker, one unlucky call opens it again.
TEST(Complaint, OneProbeDecides) {
    auto d = due_for_probes();
    d.calls(1, outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::half_open);
    d.calls(1, outcome::success);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
}

// Counts of half-open are carried into the new window.
TEST(Complaint, ProbesCountedInTheNextWindow) {
    auto d = due_for_probes();
    d.calls(1, outcome::failure);
    d.calls(2, outcome::success);
    ASSERT_EQ(d.b.state(), breaker_state::closed);
    d.calls(3, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::closed);
    d.calls(1, outcome::failure);
    EXPECT_EQ(d.b.state(), breaker_state::open);
}

// Failures that end together open the breaker several times.
TEST(Complaint, SimultaneousFailures) {
    driven_breaker d(small_rules());
    std::vector<driven_breaker::call> together;
    for (int i = 0; i < 50; ++i) together.push_back(*d.begin());
    for (const auto& c : together) d.end(c, outcome::failure);
    EXPECT_EQ(d.changes.size(), 1U);
    EXPECT_EQ(d.b.backoff_level(), 0);
    EXPECT_EQ(d.b.remaining(d.now), 1s);
}

}  // namespace
}  // namespace trinco::test
