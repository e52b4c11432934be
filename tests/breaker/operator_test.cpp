// An operator's hand on a breaker of one process.

#include <gtest/gtest.h>

#include <string>

#include "breaker_fixture.hpp"

namespace trinco::test {
namespace {

TEST(Operator, TripOpensAndItRecoversAsUsual) {
    timed_breaker b(quick());
    EXPECT_FALSE(b->trip("deploy", 3s));
    auto s = b->snapshot();
    EXPECT_EQ(s.state, breaker_state::open);
    EXPECT_EQ(s.retry_after, 3s);
    EXPECT_EQ(s.reason, "deploy");
    b.pass(3s);
    b.succeed(2);
    EXPECT_EQ(b->state(), breaker_state::closed);
}

TEST(Operator, TripWithoutATimeLastsOpenFor) {
    timed_breaker b(quick());
    EXPECT_FALSE(b->trip("deploy"));
    EXPECT_EQ(b->snapshot().retry_after, 1s);
}

TEST(Operator, ResetClosesWithAnEmptyWindow) {
    timed_breaker b(quick());
    b.fail(3);
    EXPECT_FALSE(b->reset("we know better"));
    EXPECT_TRUE(b->snapshot().window.empty());
    b.fail(3);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.fail(1);
    EXPECT_EQ(b->state(), breaker_state::open);
    EXPECT_FALSE(b->reset("again"));
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(b->snapshot().reason, "again");
}

TEST(Operator, ForcedOpenRefusesUntilItExpires) {
    timed_breaker b(quick());
    EXPECT_FALSE(b->force_open("incident", 10s));
    const auto p = b->try_acquire();
    EXPECT_EQ(p.refusal().by, refused_by::operator_override);
    EXPECT_EQ(p.refusal().reason, refusal_reason::forced_open);
    EXPECT_EQ(p.refusal().retry_after, 10s);
    const auto s = b->snapshot();
    EXPECT_EQ(s.over, override_kind::forced_open);
    EXPECT_EQ(s.state, breaker_state::closed);  // beneath it
    EXPECT_EQ(s.over_reason, "incident");
    EXPECT_EQ(s.over_remaining, 10s);
    b.pass(10s);
    EXPECT_TRUE(b->try_acquire());
    EXPECT_EQ(b->snapshot().over, override_kind::none);
}

TEST(Operator, OverridesExpireAfterADay) {
    timed_breaker b;
    EXPECT_FALSE(b->disable("noise"));
    EXPECT_EQ(b->snapshot().over_remaining, 24h);
}

TEST(Operator, DisabledAdmitsAndCountsButDecidesNothing) {
    timed_breaker b(quick());
    b.fail(4);
    EXPECT_FALSE(b->disable("noise", 10s));
    b.fail(50);
    EXPECT_EQ(b->snapshot().totals.failure, 54U);
    EXPECT_EQ(b->snapshot().totals.rejected, 0U);
    b.pass(10s);
    EXPECT_EQ(b->snapshot().over, override_kind::none);
    EXPECT_EQ(b->snapshot().state, breaker_state::open);  // as it was before
}

TEST(Operator, WhatWasCountedWhileDisabledIsJudgedAfterwards) {
    timed_breaker b(quick());
    EXPECT_FALSE(b->disable("noise", 5s));
    b.fail(10);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_FALSE(b->resume("quiet again"));
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.succeed();  // the first outcome after it: ten of eleven have failed
    EXPECT_EQ(b->state(), breaker_state::open);
}

// Rules on calls in their order see those made meanwhile, too: a success ends a row of failures.
TEST(Operator, ARowOfFailuresGoesOnWhileDisabled) {
    breaker_options o = quick();
    o.minimum_calls = 1000;
    o.consecutive_failures = 3;
    timed_breaker b(o);
    b.fail(2);
    EXPECT_FALSE(b->disable("maintenance"));
    b.succeed(1);
    b.fail(1);
    EXPECT_FALSE(b->resume("done"));
    b.fail(1);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.fail(1);
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(Operator, ACountWindowGoesOnWhileDisabled) {
    breaker_options o = quick();
    o.count_window = 4;
    timed_breaker b(o);
    b.fail(2);
    EXPECT_FALSE(b->disable("maintenance"));
    b.succeed(4);
    EXPECT_FALSE(b->resume("done"));
    b.fail(1);
    b.succeed(1);  // one of the last four
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.fail(1);
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST(Operator, ObservingDecidesButRefusesNothing) {
    timed_breaker b(quick());
    EXPECT_FALSE(b->observe("try the thresholds", 1h));
    b.fail(4);
    EXPECT_EQ(b->state(), breaker_state::open);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(b->try_acquire());
    auto s = b->snapshot();
    EXPECT_EQ(s.would_have_rejected, 3U);
    EXPECT_EQ(s.totals.rejected, 0U);
    EXPECT_EQ(s.totals.ignored, 3U);
    b.pass(1s);
    {
        auto one = b->try_acquire();
        auto two = b->try_acquire();
        auto three = b->try_acquire();  // no probe is left: it goes through, and moves nothing
        EXPECT_TRUE(one.is_probe() && two.is_probe());
        EXPECT_TRUE(three && !three.is_probe());
        three.failure();
        EXPECT_EQ(b->state(), breaker_state::half_open);
        one.success();
        two.success();
    }
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_EQ(b->snapshot().would_have_rejected, 4U);
}

TEST(Operator, WhatObservingLetsThroughIsTimedToo) {
    auto o = quick();
    o.slow_call_after = 100ms;
    timed_breaker b(o);
    EXPECT_FALSE(b->trip("test"));
    EXPECT_FALSE(b->observe("try the thresholds"));
    b->try_acquire().success();
    auto slow = b->try_acquire();
    b.pass(100ms);
    slow.success();
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 2, .slow_success = 1}));
}

TEST(Operator, ResumeRemovesAnOverride) {
    timed_breaker b;
    EXPECT_FALSE(b->force_open("x"));
    EXPECT_FALSE(b->try_acquire());
    EXPECT_FALSE(b->resume("over"));
    EXPECT_TRUE(b->try_acquire());
}

TEST(Operator, ReasonsAndTimesHaveBounds) {
    timed_breaker b;
    const auto invalid = make_error_code(errc::invalid);
    EXPECT_EQ(b->trip(std::string(201, 'x')), invalid);
    EXPECT_EQ(b->trip("two\nlines"), invalid);
    EXPECT_EQ(b->trip("\x1b[31mred"), invalid);
    EXPECT_EQ(b->trip("\x7f"), invalid);
    EXPECT_EQ(b->force_open("x", -1ms), invalid);
    EXPECT_EQ(b->disable("x", 31 * 24h), invalid);
    EXPECT_EQ(b->state(), breaker_state::closed);
    EXPECT_FALSE(b->trip(std::string(200, 'x'), 1s));
    EXPECT_FALSE(b->trip("Übung", 1s));
    EXPECT_EQ(b->snapshot().reason, "Übung");
}

}  // namespace
}  // namespace trinco::test
