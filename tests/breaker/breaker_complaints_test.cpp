// What users of other breakers complain about, at the level of circuit_breaker. The numbers of the
// complaints are those of the survey that this library began with.

#include <gtest/gtest.h>

#include <vector>

#include "breaker_fixture.hpp"

namespace trinco::test {
namespace {

// 31, 32: a callback that looks at the breaker deadlocks; callbacks arrive in the wrong order.
TEST(Complaint, CallbackReentersTheBreaker) {
    timed_breaker b(quick());
    std::vector<breaker_state> order;
    const auto s = b->on_event([&](const event& e) {
        order.push_back(e.to);
        EXPECT_EQ(b->snapshot().breaker, "payments");
        if (e.to == breaker_state::open) {
            EXPECT_FALSE(b->try_acquire());
            (void)b->reset("from inside");  // its event comes after this one
            EXPECT_EQ(order.size(), 1U);
        }
        b.succeed();
    });
    b.fail(4);
    EXPECT_EQ(order, (std::vector{breaker_state::open, breaker_state::closed}));
    EXPECT_EQ(b->snapshot().totals.success, 2U);
}

// 47: the breaker opens only when the slow calls have come back.
TEST(Complaint, OpensWhileCallsStillHang) {
    auto o = quick();
    o.slow_call_after = 200ms;
    o.call_timeout = 30s;
    timed_breaker b(o);
    std::vector<permit> hanging;
    for (int i = 0; i < 4; ++i) hanging.push_back(b->try_acquire());
    b.pass(200ms);
    EXPECT_FALSE(b->try_acquire());
    EXPECT_EQ(b->state(), breaker_state::open);
}

// 2, 3: a permit that is never reported holds a probe for ever.
TEST(Complaint, LeakedPermit) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(1s);
    {
        auto forgotten = b->try_acquire();
        auto another = b->try_acquire();
        EXPECT_TRUE(forgotten.is_probe() && another.is_probe());
        EXPECT_FALSE(b->try_acquire());
    }  // dropped without a word
    b.succeed(2);
    EXPECT_EQ(b->state(), breaker_state::closed);
}

// 4, 5, 13, 15: a cancelled probe counts as a success or a failure, or never gives its place back.
TEST(Complaint, CancelledProbe) {
    struct cancelled {};
    timed_breaker b(quick());
    b.fail(4);
    b.pass(1s);
    const auto rules = classify_exceptions([](const cancelled&) { return outcome::ignored; });
    for (int i = 0; i < 100; ++i) {
        EXPECT_THROW(b->call([] { throw cancelled{}; }, rules), cancelled);
        EXPECT_EQ(b->state(), breaker_state::half_open);
    }
    b.succeed(2);
    EXPECT_EQ(b->state(), breaker_state::closed);
}

// 26, 27, 28: a result from before the opening closes the breaker, or is counted in the new window.
TEST(Complaint, LateResultOfAnOlderEra) {
    timed_breaker b(quick());
    std::vector<permit> late;
    for (int i = 0; i < 8; ++i) late.push_back(b->try_acquire());
    b.fail(4);
    late[0].success();
    late[1].success();
    EXPECT_EQ(b->state(), breaker_state::open);
    b.pass(1s);
    auto probe = b->try_acquire();
    late[2].success();
    late[3].failure();
    late[4].failure();
    EXPECT_EQ(b->state(), breaker_state::half_open);
    probe.success();
    b.succeed(1);
    EXPECT_EQ(b->state(), breaker_state::closed);
    late[5].failure();
    EXPECT_TRUE(b->snapshot().window.empty());
    EXPECT_EQ(b->snapshot().stale, 6U);
}

// 1, 8: a neutral outcome, or a guard further inside, keeps its half-open permit.
TEST(Complaint, IgnoredOutcomeHoldsNoProbe) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(1s);
    for (int i = 0; i < 10; ++i) b->try_acquire().ignore();
    EXPECT_EQ(b->snapshot().probes_in_flight, 0U);
    b.succeed(2);
    EXPECT_EQ(b->state(), breaker_state::closed);
}

// 17: more probes than allowed, and calls from before that count as probes.
TEST(Complaint, TooManyProbes) {
    timed_breaker b(quick());
    auto early = b->try_acquire();
    b.fail(4);
    b.pass(1s);
    auto one = b->try_acquire();
    auto two = b->try_acquire();
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(b->try_acquire());
    early.success();
    EXPECT_EQ(b->snapshot().probes_in_flight, 2U);
    one.success();
    EXPECT_FALSE(b->try_acquire());  // a budget of two in all, not two at a time
    two.success();
    EXPECT_EQ(b->state(), breaker_state::closed);
}

// 19: while the probe hangs everybody waits, or everybody goes through.
TEST(Complaint, HungProbe) {
    auto o = quick();
    o.half_open_probes = 1;
    o.probe_timeout = 2s;
    timed_breaker b(o);
    b.fail(4);
    b.pass(1s);
    auto hung = b->try_acquire();
    const auto refused = b->try_acquire();
    EXPECT_EQ(refused.refusal().retry_after, 2s);
    b.pass(2s);
    EXPECT_EQ(b->state(), breaker_state::open);
    b.pass(2s);
    b.succeed(1);
    EXPECT_EQ(b->state(), breaker_state::closed);
}

// 3: asking whether a call may go through spends a probe.
TEST(Complaint, LookingSpendsNothing) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(1s);
    for (int i = 0; i < 10; ++i) {
        (void)b->state();
        (void)b->snapshot();
    }
    EXPECT_TRUE(b->try_acquire().is_probe());
}

// 34: a clock that jumps keeps it open too long, or not at all.
TEST(Complaint, ClockThatJumps) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(-3h);
    EXPECT_FALSE(b->try_acquire());
    b.pass(1s);
    EXPECT_TRUE(b->try_acquire().is_probe());
}

}  // namespace
}  // namespace trinco::test
