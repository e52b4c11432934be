// The states and the options of one breaker, on virtual time.

#include <gtest/gtest.h>

#include "breaker_fixture.hpp"

namespace trinco::test {
namespace {

TEST(CircuitBreaker, ClosedAdmitsAndCounts) {
    timed_breaker b;
    b.succeed(3);
    b.fail(2);
    b->try_acquire().ignore();
    const auto s = b->snapshot();
    EXPECT_EQ(s.state, breaker_state::closed);
    EXPECT_EQ(s.window.success, 3U);
    EXPECT_EQ(s.window.failure, 2U);
    EXPECT_EQ(s.window.ignored, 1U);
    EXPECT_EQ(s.totals, s.window);
    EXPECT_EQ(s.breaker, "payments");
}

TEST(CircuitBreaker, OpensAtTheRateAndTheMinimumOfCalls) {
    timed_breaker b(quick());
    b.fail(2);
    b.succeed(1);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.succeed(1);  // the fourth call brings the minimum; half have failed
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().reason, "failure rate");
}

TEST(CircuitBreaker, BelowTheRateStaysClosed) {
    auto o = quick();
    o.failure_rate = 0.51;
    timed_breaker b(o);
    for (int i = 0; i < 100; ++i) {
        b.succeed();
        b.fail();
    }
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.fail(5);  // 105 of 205
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(CircuitBreaker, OldCallsLeaveTheWindowSliceBySlice) {
    auto o = quick();
    o.window = 1s;
    timed_breaker b(o);
    b.fail(3);
    b.pass(1s);
    b.fail(3);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(b->snapshot().window.failure, 3U);
    b.pass(100ms);
    b.fail(1);
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(CircuitBreaker, OpensWhenOldSuccessesHaveLeft) {
    auto o = quick();
    o.window = 1s;
    timed_breaker b(o);
    b.succeed(10);
    b.pass(500ms);
    b.fail(5);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.pass(500ms);  // the successes are gone: five of six have failed
    b.succeed(1);
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(CircuitBreaker, FailureCountNeedsNoMinimum) {
    auto o = quick();
    o.minimum_calls = 1000;
    o.failure_count = 3;
    timed_breaker b(o);
    b.fail(2);
    b.succeed(50);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.fail(1);
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().reason, "failure count");
}

TEST(CircuitBreaker, FailuresInARow) {
    auto o = quick();
    o.minimum_calls = 1000;
    o.consecutive_failures = 3;
    timed_breaker b(o);
    b.fail(2);
    b.succeed();
    b.fail(2);
    b->try_acquire().ignore();
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.fail();
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().reason, "consecutive failures");
}

TEST(CircuitBreaker, CountWindowForgetsByCallsNotByTime) {
    auto o = quick();
    o.count_window = 4;
    timed_breaker b(o);
    b.fail(1);
    b.succeed(3);
    b.pass(1h);
    b.fail(1);  // pushes the first failure out: one of four
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.fail(1);
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(CircuitBreaker, SlowCallsOpen) {
    auto o = quick();
    o.slow_call_after = 100ms;
    o.slow_call_rate = 0.5;
    timed_breaker b(o);
    b.succeed(2);
    auto p = b->try_acquire();
    b.pass(100ms);
    p.success();
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(b->snapshot().window.slow_success, 1U);
    b->try_acquire().success(100ms);  // measured by the caller
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().reason, "slow call rate");
}

TEST(CircuitBreaker, ACallersOwnDurationIsBelieved) {
    auto o = quick();
    o.slow_call_after = 100ms;
    timed_breaker b(o);
    auto p = b->try_acquire();
    b.pass(50ms);
    p.success(-5ms);
    EXPECT_EQ(b->snapshot().window.slow(), 0U);
    b->try_acquire().failure(1s);
    EXPECT_EQ(b->snapshot().window.slow_failure, 1U);
}

TEST(CircuitBreaker, RefusesWhileOpenAndSaysForHowLong) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(400ms);
    const auto p = b->try_acquire();
    EXPECT_FALSE(p);
    EXPECT_EQ(p.refusal().by, refused_by::local_breaker);
    EXPECT_EQ(p.refusal().reason, refusal_reason::open);
    EXPECT_EQ(p.refusal().retry_after, 600ms);
    EXPECT_EQ(b->snapshot().totals.rejected, 1U);
    EXPECT_EQ(b->snapshot().retry_after, 600ms);
}

TEST(CircuitBreaker, ProbesDecideHalfOpen) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(1s);
    EXPECT_EQ(b->state(), breaker_state::open);  // nobody has called yet
    auto one = b->try_acquire();
    auto two = b->try_acquire();
    const auto three = b->try_acquire();
    EXPECT_TRUE(one && one.is_probe());
    EXPECT_TRUE(two && two.is_probe());
    EXPECT_FALSE(three);
    EXPECT_EQ(three.refusal().reason, refusal_reason::no_probe_left);
    EXPECT_GT(three.refusal().retry_after, 0ms);
    EXPECT_EQ(b->state(), breaker_state::half_open);
    EXPECT_EQ(b->snapshot().probes_in_flight, 2U);
    one.success();
    two.success();
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_TRUE(b->snapshot().window.empty());
    EXPECT_EQ(b->snapshot().totals.success, 2U);
    EXPECT_EQ(b->snapshot().reason, "probes succeeded");
}

TEST(CircuitBreaker, FailedProbesReopenForLonger) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(1s);
    b.fail(1);  // one of two probes is half: closing has become impossible
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().retry_after, 2s);
    EXPECT_EQ(b->snapshot().backoff_level, 1U);
    EXPECT_EQ(b->snapshot().reason, "probes failed");
}

TEST(CircuitBreaker, OpenMaxBoundsTheBackoff) {
    auto o = quick();
    o.open_backoff = 10;
    o.open_max = 5s;
    timed_breaker b(o);
    b.fail(4);
    b.pass(1s);
    b.fail();
    EXPECT_EQ(b->snapshot().retry_after, 5s);
}

TEST(CircuitBreaker, JitterMakesOpeningsLonger) {
    auto o = quick();
    o.jitter = 0.5;
    timed_breaker b(o);
    b.random = ~std::uint64_t{0} / 2;  // from the second draw on
    b.fail(4);
    b.pass(1s);
    (void)b->try_acquire();
    b.fail(1);
    const auto left = b->snapshot().retry_after;
    EXPECT_GT(left, 2400ms);
    EXPECT_LE(left, 3s);
}

TEST(CircuitBreaker, AProbeThatHangsHasFailed) {
    auto o = quick();
    o.probe_timeout = 3s;
    timed_breaker b(o);
    b.fail(4);
    b.pass(1s);
    auto hung = b->try_acquire();
    b.pass(3s);
    EXPECT_EQ(b->state(), breaker_state::open);
    hung.success();
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_EQ(b->snapshot().stale, 1U);
}

TEST(CircuitBreaker, RampAdmitsAGrowingShare) {
    auto o = quick();
    o.recovery_ramp = 10s;
    timed_breaker b(o);
    b.fail(4);
    b.pass(1s);
    b.succeed(2);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_DOUBLE_EQ(b->snapshot().admitted_share, 0.1);
    b.random = ~std::uint64_t{0} / 2;  // a draw of one half
    b.succeed(1);                      // uses the draw from before
    const auto refused = b->try_acquire();
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.refusal().by, refused_by::ramp);
    EXPECT_EQ(refused.refusal().reason, refusal_reason::recovering);
    b.pass(5s);  // 55 %
    EXPECT_TRUE(b->try_acquire());
    b.pass(5s);
    b.random = ~std::uint64_t{0};
    EXPECT_DOUBLE_EQ(b->snapshot().admitted_share, 1.0);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(b->try_acquire());
}

// A call that the ramp refuses may be the first of its slice; that old successes have left then is
// noticed all the same.
TEST(CircuitBreaker, OldCallsLeaveWhileTheRampRefuses) {
    auto o = quick();
    o.minimum_calls = 8;
    o.window_slices = 2;  // of 5 s
    o.recovery_ramp = 9500ms;
    timed_breaker b(o);
    (void)b->trip("test");
    b.pass(1s);
    b.succeed(102);  // two probes, by which it ramps until 10.5 s
    b.pass(4s);
    b.fail(6);
    b.random = ~std::uint64_t{0};
    b.fail(1);  // by the draw from before
    b.pass(5s);
    ASSERT_EQ(b->try_acquire().refusal().reason, refusal_reason::recovering);
    b.pass(600ms);
    ASSERT_EQ(b->state(), breaker_state::closed);
    b.fail(1);  // the eighth of eight
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(CircuitBreaker, NamesAndOptionsAreChecked) {
    const auto message = [](std::string name, const breaker_options& o) -> std::string {
        try {
            circuit_breaker b(std::move(name), o);
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), make_error_code(errc::invalid));
            return e.what();
        }
        return "";
    };
    EXPECT_NE(message("", {}).find("name"), std::string::npos);
    EXPECT_NE(message("a b", {}).find("a b"), std::string::npos);
    breaker_options none;
    none.half_open_probes = 0;
    EXPECT_NE(message("x", none).find("half_open_probes"), std::string::npos);
    EXPECT_EQ(message("x", {}), "");

    breaker_fault why;
    EXPECT_EQ(circuit_breaker::make("x", none, why), nullptr);
    EXPECT_EQ(why.code, make_error_code(errc::invalid));
    EXPECT_NE(why.message.find("half_open_probes"), std::string::npos);
    EXPECT_NE(circuit_breaker::make("x", {}, why), nullptr);
    EXPECT_FALSE(why.code);
}

}  // namespace
}  // namespace trinco::test
