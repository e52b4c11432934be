#include "core/breaker/headroom.hpp"

#include <gtest/gtest.h>

#include "core/breaker/window.hpp"
#include "tests/core/property.hpp"

namespace trinco::detail {
namespace {

std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return *rc::gen::inRange<std::uint32_t>(low, high + 1);
}

policy some_policy() {
    static const std::vector<double> rates = {0.01, 0.07, 0.1, 1.0 / 3, 0.5, 0.7, 0.99, 1.0};
    policy p;
    p.failure_rate = *rc::gen::elementOf(rates);
    p.slow_call_rate = *rc::gen::elementOf(rates);
    p.slow_calls = *rc::gen::arbitrary<bool>();
    p.minimum_calls = number(1, 12);
    p.failure_count = *rc::gen::arbitrary<bool>() ? number(1, 10) : 0;
    return p;
}

// Whether judge() can be made to trip by exactly `bad` bad outcomes and up to `good` good ones. A
// bad one does the most when it is slow and failed.
bool can_trip(const counts& window, const policy& p, std::uint32_t bad, std::uint32_t good) {
    auto n = window;
    n.failure += bad;
    n.slow_failure += bad;
    for (std::uint32_t i = 0; i <= good; ++i, ++n.success) {
        if (judge(n, p) != trip_reason::none) return true;
    }
    return false;
}

TEST(Headroom, IsTheLeastNumberByBruteForce) {
    EXPECT_TRUE(test::holds("headroom_of against trying", 3000, [] {
        const auto p = some_policy();
        counts n;
        n.success = number(0, 30);
        n.failure = number(0, 10);
        n.slow_success = number(0, static_cast<std::uint32_t>(n.success));
        n.slow_failure = number(0, static_cast<std::uint32_t>(n.failure));
        RC_PRE(judge(n, p) == trip_reason::none);
        const auto h = headroom_of(n, p);
        RC_ASSERT(h.judge_successes == can_trip(n, p, 0, 60));
        constexpr std::uint32_t most = 300;
        std::uint32_t least = 1;
        while (least < most && !can_trip(n, p, least, 60)) ++least;
        if (least < most) {
            RC_ASSERT(h.bad == least);
        } else {
            RC_ASSERT(h.bad >= most);
        }
    }));
}

TEST(Headroom, ARateOfOneIsOutOfReachAfterASuccess) {
    policy p;
    p.failure_rate = 1;
    counts n;
    n.success = 1;
    EXPECT_EQ(headroom_of(n, p).bad, headroom::unreachable);
    EXPECT_FALSE(headroom_of(n, p).judge_successes);
    n.success = 0;
    EXPECT_EQ(headroom_of(n, p).bad, 20U);
}

TEST(Headroom, IsExactForGreatNumbersToo) {
    policy p;
    counts n;
    n.success = 1'000'000'000;
    EXPECT_EQ(headroom_of(n, p).bad, 1'000'000'000U);
    p.failure_rate = 0.07;
    n.success = 93'000'000;
    EXPECT_EQ(headroom_of(n, p).bad, 7'000'000U);
}

// Judges only when the headroom is used up, or a slice has begun, as circuit_breaker does.
class sparing {
public:
    explicit sparing(const policy& p) : p_(p), window_(p.window, p.window_slices, 1) {}

    trip_reason on(counter what, coarse_time now) {
        const bool new_slice = window_.add(0, now, what);
        const auto n = counts_of(what);
        const bool bad = n.failure != 0 || n.slow() != 0;
        if (bad) ++bad_;
        if (!new_slice && !room_.judge_successes && bad_ < room_.bad) return trip_reason::none;
        ++judged;
        const auto sum = window_.sum(0, now);
        bad_ = 0;
        const auto why = judge(sum, p_);
        room_ = headroom_of(sum, p_);
        return why;
    }

    int judged = 0;

private:
    policy p_;
    time_window window_;
    headroom room_ = headroom_of({}, p_);
    std::uint64_t bad_ = 0;
};

TEST(Headroom, JudgingSparinglyTripsAtTheSameOutcomeAsJudgingAlways) {
    int outcomes = 0;
    int judged = 0;
    EXPECT_TRUE(test::holds("sparing judgements", 3000, [&] {
        auto p = some_policy();
        p.window = std::chrono::milliseconds(1000);
        p.window_slices = number(2, 10);
        sparing fast(p);
        time_window window(p.window, p.window_slices, 1);
        coarse_time now(0);
        for (const auto& [step, what] : *rc::gen::container<std::vector<std::pair<int, int>>>(
                 rc::gen::pair(rc::gen::weightedElement<int>({{12, 0}, {4, 7}, {2, 100}, {1, 900}}),
                               rc::gen::weightedElement<int>(
                                   {{12, 0}, {4, 1}, {2, 2}, {1, 3}, {1, 4}, {1, 5}})))) {
            now += std::chrono::milliseconds(step);
            window.add(0, now, static_cast<counter>(what));
            const auto expected = judge(window.sum(0, now), p);
            RC_ASSERT(fast.on(static_cast<counter>(what), now) == expected);
            ++outcomes;
            if (expected != trip_reason::none) break;
        }
        judged += fast.judged;
    }));
    EXPECT_LT(judged, outcomes * 9 / 10) << "it spared nothing";
}

}  // namespace
}  // namespace trinco::detail
