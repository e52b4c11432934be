// Permits: three outcomes, once; whoever drops one gives it back.

#include <gtest/gtest.h>

#include "breaker_fixture.hpp"

namespace trinco::test {
namespace {

TEST(Permit, DestructionIsIgnored) {
    timed_breaker b;
    { const auto p = b->try_acquire(); }
    EXPECT_EQ(b->snapshot().totals, (counts{.ignored = 1}));
}

TEST(Permit, SettlesOnce) {
    timed_breaker b;
    auto p = b->try_acquire();
    EXPECT_TRUE(p);
    p.failure();
    EXPECT_FALSE(p);
    p.success();
    p.ignore();
    p.settle(outcome::failure);
    p.failure(1s);
    EXPECT_EQ(b->snapshot().totals, (counts{.failure = 1}));
}

TEST(Permit, MovesItsDuty) {
    timed_breaker b;
    auto p = b->try_acquire();
    auto q = std::move(p);
    EXPECT_TRUE(q);
    EXPECT_FALSE(p);  // NOLINT(bugprone-use-after-move): that is what is tested
    p.failure();
    q.success();
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 1}));
}

TEST(Permit, AssignmentSettlesTheOldOne) {
    timed_breaker b;
    auto p = b->try_acquire();
    p = b->try_acquire();
    EXPECT_EQ(b->snapshot().totals, (counts{.ignored = 1}));
    p.success();
    auto& same = p;
    p = std::move(same);
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 1, .ignored = 1}));
}

TEST(Permit, EmptyOnesDoNothing) {
    permit p;
    EXPECT_FALSE(p);
    EXPECT_FALSE(p.is_probe());
    p.success();
    p.failure(1s);
    EXPECT_EQ(p.refusal().by, refused_by::none);
}

TEST(Permit, ARefusedOneKeepsItsReasonWhenMoved) {
    timed_breaker b(quick());
    b.fail(4);
    auto p = b->try_acquire();
    const auto q = std::move(p);
    EXPECT_EQ(q.refusal().reason, refusal_reason::open);
    EXPECT_EQ(q.refusal().retry_after, 1s);
}

TEST(Permit, ADroppedProbeGivesItsSlotBack) {
    timed_breaker b(quick());
    b.fail(4);
    b.pass(1s);
    auto one = b->try_acquire();
    {
        const auto two = b->try_acquire();
        EXPECT_FALSE(b->try_acquire());
    }
    auto again = b->try_acquire();
    EXPECT_TRUE(again.is_probe());
    one.success();
    again.success();
    EXPECT_EQ(b->state(), breaker_state::closed);
}

TEST(Permit, OutcomesOfAnOlderEraAreStale) {
    timed_breaker b(quick());
    auto late = b->try_acquire();
    b.fail(4);
    EXPECT_EQ(b->state(), breaker_state::open);
    late.success();
    const auto s = b->snapshot();
    EXPECT_EQ(s.stale, 1U);
    EXPECT_EQ(s.totals.success, 0U);
    EXPECT_EQ(s.totals.failure, 4U);
}

TEST(Permit, AnIgnoredOutcomeOfAnOlderEraIsStaleToo) {
    timed_breaker b(quick());
    {
        const auto late = b->try_acquire();
        b.fail(4);
    }
    EXPECT_EQ(b->snapshot().stale, 1U);
    EXPECT_EQ(b->snapshot().totals.ignored, 0U);
}

}  // namespace
}  // namespace trinco::test
