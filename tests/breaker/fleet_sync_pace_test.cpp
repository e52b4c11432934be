#include "breaker/fleet_sync_pace.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace trinco::detail;

counts of(std::uint64_t success, std::uint64_t failure, std::uint64_t slow_success = 0) {
    counts c;
    c.success = success;
    c.failure = failure;
    c.slow_success = slow_success;
    return c;
}

TEST(UrgentAfter, EmptyWindowWaitsForFourFifthsOfTheMinimum) {
    policy p;
    p.minimum_calls = 20;
    EXPECT_EQ(urgent_after({}, p, 1), 16U);
}

TEST(UrgentAfter, CountsWhatIsMissingToFourFifthsOfTheRate) {
    policy p;
    p.failure_rate = 0.5;
    // 300 + 167 = 467 of 1167 are 40 %; with 166 they are just under it.
    EXPECT_EQ(urgent_after(of(700, 300), p, 100), 167U);
}

TEST(UrgentAfter, CloseToTheThresholdIsAShareOfTheWindow) {
    policy p;
    EXPECT_EQ(urgent_after(of(550, 450), p, 1), 11U);  // 1 + 1000 / 100
    EXPECT_EQ(urgent_after(of(550, 450), p, 10), 2U);  // each of ten voters its part
    EXPECT_EQ(urgent_after(of(550, 450), p, 0), 11U);  // none heard counts as one
}

TEST(UrgentAfter, FailureCountNeedsNoMinimum) {
    policy p;
    p.failure_count = 5;
    EXPECT_EQ(urgent_after(of(0, 2), p, 1), 2U);
    EXPECT_EQ(urgent_after(of(0, 9), p, 1), 1U);
}

TEST(UrgentAfter, SlowCallsCountOnlyWhereTheyAreJudged) {
    policy p;
    p.slow_call_rate = 0.5;
    p.slow_calls = false;
    const auto unjudged = urgent_after(of(1000, 0, 390), p, 1000);
    p.slow_calls = true;
    EXPECT_EQ(urgent_after(of(1000, 0, 390), p, 1000), 17U);  // 407 of 1017
    EXPECT_GT(unjudged, 600U);
}

RC_GTEST_PROP(UrgentAfter, IsTheLeastNumberThatComesWithinTwentyPercent, ()) {
    policy p;
    p.failure_rate = *rc::gen::inRange(1, 101) / 100.0;
    p.minimum_calls = *rc::gen::inRange(1U, 200U);
    const auto f = *rc::gen::inRange<std::uint64_t>(0, 2000);
    const auto s = *rc::gen::inRange<std::uint64_t>(0, 2000);
    const auto near = [&](std::uint64_t x, double margin) {
        const double calls = static_cast<double>(f + s + x);
        return static_cast<double>(f + x) >= 0.8 * p.failure_rate * calls + margin &&
               calls >= 0.8 * p.minimum_calls + margin;
    };
    const auto x = urgent_after(of(s, f), p, 1'000'000);
    RC_ASSERT(x >= 1U);
    RC_ASSERT(near(x, -1e-4));
    RC_ASSERT(x == 1U || !near(x - 1, 1e-4));
}

TEST(RoundTrips, DoublesWhileFiveTimesTheMedianIsExceededAndComesBack) {
    round_trips t;
    for (int i = 0; i < 10; ++i) t.answered(2ms);
    EXPECT_EQ(t.median(), 2ms);
    EXPECT_EQ(t.stretched(100ms), 100ms);
    t.answered(10ms);  // exactly five times is not more
    EXPECT_EQ(t.stretched(100ms), 100ms);
    t.answered(11ms);
    EXPECT_EQ(t.stretched(100ms), 200ms);
    t.failed();
    EXPECT_EQ(t.stretched(100ms), 400ms);
    t.failed();
    EXPECT_EQ(t.stretched(100ms), 800ms);
    t.answered(2ms);
    EXPECT_EQ(t.stretched(100ms), 200ms);
    t.answered(2ms);
    EXPECT_EQ(t.stretched(100ms), 100ms);
    EXPECT_EQ(t.longest(), 11ms);
    EXPECT_EQ(t.last(), 2ms);
}

TEST(RoundTrips, StretchEndsAtTwoSecondsUnlessTheBaseIsLonger) {
    round_trips t;
    for (int i = 0; i < 30; ++i) t.failed();
    EXPECT_EQ(t.stretched(100ms), 2s);
    EXPECT_EQ(t.stretched(5s), 5s);
    for (int i = 0; i < 3; ++i) t.answered(1ms);
    EXPECT_EQ(t.stretched(100ms), 100ms) << "three answers later";
}

TEST(RoundTrips, UnderAMillisecondIsNeverSlow) {
    round_trips t;
    for (int i = 0; i < 10; ++i) t.answered(30us);
    t.answered(900us);
    EXPECT_EQ(t.stretched(100ms), 100ms);
}

TEST(RoundTrips, MedianForgetsWhatIsLongAgo) {
    round_trips t;
    for (int i = 0; i < 32; ++i) t.answered(1ms);
    for (int i = 0; i < 32; ++i) t.answered(40ms);
    EXPECT_EQ(t.median(), 40ms);
}

TEST(RoundTrips, MedianIsThatOfTheLastThirtyTwoInAnyOrder) {
    round_trips t;
    std::vector<boot_clock::duration> all;
    for (int i = 1; i <= 200; ++i) {
        const auto took = std::chrono::microseconds(i * 7'919 % 50 * 100);  // many equal ones
        t.answered(took);
        all.push_back(took);
        const auto n = std::min<std::size_t>(all.size(), 32);
        std::vector<boot_clock::duration> last(all.end() - static_cast<std::ptrdiff_t>(n),
                                               all.end());
        std::sort(last.begin(), last.end());
        ASSERT_EQ(t.median(), last[n / 2]) << "after " << i;
    }
}

TEST(Ticks, AreWholeIntervalsFromThePhase) {
    const auto at = [](boot_clock::duration d) { return boot_clock::time_point(d); };
    EXPECT_EQ(tick_at_or_after(at(1000ms), 30ms, 100ms), at(1030ms));
    EXPECT_EQ(tick_at_or_after(at(1030ms), 30ms, 100ms), at(1030ms));
    EXPECT_EQ(tick_at_or_after(at(1031ms), 30ms, 100ms), at(1130ms));
    EXPECT_EQ(tick_at_or_after(at(1000ms), 730ms, 100ms),
              at(1030ms));  // of a longer phase its rest
}

TEST(Ticks, ALateTimerMissesNone) {
    const auto at = [](boot_clock::duration d) { return boot_clock::time_point(d); };
    EXPECT_EQ(tick_meant_by(at(1030ms), 30ms, 100ms), at(1030ms));
    EXPECT_EQ(tick_meant_by(at(1031ms), 30ms, 100ms), at(1030ms));
    EXPECT_EQ(tick_meant_by(at(1055ms), 30ms, 100ms), at(1030ms));
    EXPECT_EQ(tick_meant_by(at(1056ms), 30ms, 100ms), at(1056ms));
    EXPECT_EQ(tick_meant_by(at(1129ms), 30ms, 100ms), at(1129ms));
}

}  // namespace
