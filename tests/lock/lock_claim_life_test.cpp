#include "lock/lock_claim.hpp"

#include "lock_scene.hpp"

namespace trinco::test {
namespace {

class LockClaimLife : public LockScene {
protected:
    std::shared_ptr<session_core> first_ = open(one_, store_one_);
    std::shared_ptr<session_core> second_ = open(two_, store_two_);
};

TEST_F(LockClaimLife, OneAfterAnotherInOrderWithGrowingTokens) {
    lock_claim a(first_), b(second_), c(first_);
    told ta, tb, tc;
    acquire(a, ta, exclusive("n"));
    world_.run_for(20ms);
    acquire(b, tb, exclusive("n"));
    world_.run_for(20ms);
    acquire(c, tc, exclusive("n"));
    world_.run_for(1s);
    EXPECT_TRUE(a.held());
    EXPECT_FALSE(tb.answer || tc.answer);
    a.release([](std::error_code) {});
    EXPECT_FALSE(a.held());
    world_.run_for(1s);
    EXPECT_TRUE(b.held());
    EXPECT_FALSE(tc.answer) << "a waiter of the same session overtook";
    b.abandon();
    world_.run_for(1s);
    EXPECT_TRUE(c.held());
    EXPECT_LT(ta.token, tb.token);
    EXPECT_LT(tb.token, tc.token);
}

TEST_F(LockClaimLife, TwoObjectsOfOneSessionExcludeEachOther) {
    lock_claim a(first_), b(first_);
    told ta, tb;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(b, tb, exclusive("n", true));
    world_.run_for(50ms);
    EXPECT_TRUE(ta.granted());
    EXPECT_EQ(tb.answer, errc::conflict);
}

TEST_F(LockClaimLife, NotRecursive) {
    lock_claim a(first_);
    told t, again;
    acquire(a, t, exclusive("n"));
    a.acquire(exclusive("n"), [&](std::error_code error, const grant&) { again.answer = error; });
    EXPECT_FALSE(again.answer) << "a completion ran inside its call";
    world_.run_for(50ms);
    EXPECT_EQ(again.answer, errc::would_deadlock);
    EXPECT_TRUE(a.held());
}

TEST_F(LockClaimLife, ATryLeavesNothingBehind) {
    lock_claim a(first_), b(second_);
    told ta, tb;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(b, tb, exclusive("n", true));
    world_.run_for(50ms);
    EXPECT_EQ(tb.answer, errc::conflict);
    EXPECT_TRUE(b.idle());
    EXPECT_EQ(locks_->rows().size(), 1U);
    EXPECT_EQ(second_->debts(), 0U);
}

TEST_F(LockClaimLife, ItsDeadlineEndsTheWaitAndClearsThePlace) {
    lock_claim a(first_), b(second_);
    told ta, tb;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    auto what = exclusive("n");
    what.by = world_.now() + 3s;
    acquire(b, tb, what);
    world_.run_for(2'999ms);
    EXPECT_FALSE(tb.answer);
    world_.run_for(1ms);
    EXPECT_EQ(tb.answer, errc::not_acquired);
    world_.run_for(50ms);
    EXPECT_EQ(locks_->rows().size(), 1U);
    EXPECT_TRUE(a.held());
}

TEST_F(LockClaimLife, AStoreThatCannotBeAskedIsNotALockThatIsTaken) {
    lock_claim a(first_);
    told t;
    cut(one_);
    auto what = exclusive("n");
    what.by = world_.now() + 5s;
    acquire(a, t, what);
    world_.run_for(5s);
    EXPECT_EQ(t.answer, errc::unavailable);
}

TEST_F(LockClaimLife, ATryWithoutAnswerIsNotALockThatIsTakenAndAShortWaitIsNoFault) {
    for (const bool only_if_free : {false, true}) {
        lock_claim a(first_);
        told t;
        net_.clog(server_, one_, world_.now() + 1s);
        auto what = exclusive("n", only_if_free);
        what.by = world_.now() + 100ms;  // while the first request is under way
        acquire(a, t, what);
        world_.run_for(100ms);
        EXPECT_EQ(t.answer, only_if_free ? errc::unavailable : errc::not_acquired);
        world_.run_for(5s);
        EXPECT_TRUE(locks_->rows().empty());
    }
}

TEST_F(LockClaimLife, ABrokenConnectionDelaysAWaitAndNoMore) {
    lock_claim a(first_), b(second_);
    told ta, tb;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(b, tb, exclusive("n"));
    net_.break_connections(server_);
    world_.run_for(3s);
    net_.break_connections(server_);
    a.abandon();
    world_.run_for(5s);
    EXPECT_TRUE(tb.granted());
    EXPECT_EQ(tb.answers, 1);
}

TEST_F(LockClaimLife, AGrantThatFindsTheSessionUncertainWaitsForTheRenewal) {
    lock_claim a(first_), b(second_);
    told ta, tb;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(b, tb, exclusive("n"));
    world_.run_for(2s);
    // The wall clock jumps, as after a pause of the whole machine, and renewals do not come
    // through.
    wall_offset_ += 20s;
    net_.cut(two_, server_);
    a.abandon();
    world_.run_for(2s);
    ASSERT_TRUE(locks_->rows().at(0).holds);
    EXPECT_FALSE(tb.answer) << "granted while the lease is in doubt";
    mend(two_);
    world_.run_for(3s);
    EXPECT_TRUE(tb.granted());
    EXPECT_TRUE(b.held());
}

TEST_F(LockClaimLife, AGrantThatComesWithThePlaceWaitsForTheRenewal) {
    lock_claim b(second_);
    told tb;
    acquire(b, tb, exclusive("n"));
    world_.run_for(1'500us);  // the answer is on its way
    ASSERT_TRUE(locks_->rows().at(0).holds);
    wall_offset_ += 20s;
    net_.cut(two_, server_);
    world_.run_for(2s);
    EXPECT_FALSE(tb.answer) << "granted while the lease is in doubt";
    mend(two_);
    world_.run_for(3s);
    EXPECT_TRUE(tb.granted());
    EXPECT_TRUE(b.held());
}

TEST_F(LockClaimLife, AGrantThatComesWithThePlaceAfterAPauseIsNotBelieved) {
    lock_claim b(second_);
    told tb;
    acquire(b, tb, exclusive("n"));
    world_.run_for(1'500us);
    ASSERT_TRUE(locks_->rows().at(0).holds);
    two_.pause_until(world_.now() + 3 * ttl);
    world_.run_for(3 * ttl + 1s);
    ASSERT_TRUE(tb.answer.has_value());
    EXPECT_EQ(*tb.answer, errc::lost);
    EXPECT_FALSE(b.held());
}

TEST_F(LockClaimLife, AGrantThatWaitedThroughAPauseIsNotBelieved) {
    lock_claim a(first_), b(second_);
    told ta, tb;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(b, tb, exclusive("n"));
    world_.run_for(50ms);
    two_.pause_until(world_.now() + 3 * ttl);
    a.abandon();
    world_.run_for(3 * ttl + 1s);
    ASSERT_TRUE(tb.answer.has_value());
    EXPECT_EQ(*tb.answer, errc::lost);
    EXPECT_FALSE(b.held());
}

TEST_F(LockClaimLife, LossIsToldAndTheObjectIsUsableAgain) {
    lock_claim a(first_);
    told t;
    acquire(a, t, exclusive("n"));
    world_.run_for(50ms);
    detail::entry seen;
    seen.handle = locks_->list("n", "", 1).value.rows.at(0).handle;
    ASSERT_FALSE(locks_->evict(seen, true));
    world_.run_for(600ms);
    ASSERT_EQ(t.losses.size(), 1U);
    EXPECT_EQ(t.losses[0], errc::lost);
    EXPECT_FALSE(a.held());
    told again;
    acquire(a, again, exclusive("n"));
    world_.run_for(50ms);
    EXPECT_TRUE(a.held());
    EXPECT_GT(again.token, t.token);
}

TEST_F(LockClaimLife, AnOperatorsWishIsToldWhileItIsHeld) {
    lock_claim a(first_);
    told t;
    acquire(a, t, exclusive("n"));
    world_.run_for(50ms);
    detail::entry seen;
    seen.handle = locks_->list("n", "", 1).value.rows.at(0).handle;
    ASSERT_FALSE(locks_->evict(seen, false));
    world_.run_for(600ms);
    ASSERT_EQ(t.losses.size(), 1U);
    EXPECT_EQ(t.losses[0], errc::evicted);
    EXPECT_TRUE(a.held());
}

TEST_F(LockClaimLife, TheSessionsLossEndsWaitsAndHolds) {
    lock_claim a(first_), b(second_), c(first_);
    told ta, tb, tc;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(b, tb, exclusive("n"));
    acquire(c, tc, exclusive("n"));
    world_.run_for(50ms);
    cut(one_);
    world_.run_for(ttl);
    ASSERT_EQ(ta.losses.size(), 1U);
    EXPECT_FALSE(a.held());
    EXPECT_EQ(tc.answer, errc::lost);
    world_.run_for(ttl);
    EXPECT_TRUE(b.held());
    EXPECT_GT(tb.token, ta.token);
}

TEST_F(LockClaimLife, ReleasingTwiceOrAfterLossFreesNobodyElses) {
    lock_claim a(first_), b(second_);
    told ta, tb;
    acquire(a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(b, tb, exclusive("n"));
    world_.run_for(50ms);
    std::optional<std::error_code> once, twice;
    a.release([&](std::error_code error) { once = error; });
    a.release([&](std::error_code error) { twice = error; });
    world_.run_for(1s);
    EXPECT_FALSE(*once);
    EXPECT_EQ(*twice, errc::not_held);
    EXPECT_TRUE(b.held());
    ASSERT_EQ(locks_->rows().size(), 1U);
    EXPECT_TRUE(locks_->rows()[0].holds);
}

TEST_F(LockClaimLife, DestroyingItGivesItUp) {
    auto a = std::make_unique<lock_claim>(first_);
    auto waiting = std::make_unique<lock_claim>(first_);
    told ta, tw;
    acquire(*a, ta, exclusive("n"));
    world_.run_for(50ms);
    acquire(*waiting, tw, exclusive("n"));
    world_.run_for(50ms);
    ASSERT_EQ(locks_->rows().size(), 2U);
    waiting.reset();
    a.reset();
    world_.run_for(50ms);
    EXPECT_TRUE(locks_->rows().empty());
    EXPECT_EQ(tw.answers, 0);
}

// Whoever hears of the session's end may destroy others who have not heard of it yet.
TEST_F(LockClaimLife, WhoIsDestroyedByAnothersLossIsNotTold) {
    auto a = std::make_unique<lock_claim>(first_);
    auto b = std::make_unique<lock_claim>(first_);
    told ta, tb;
    acquire(*a, ta, exclusive("n"));
    acquire(*b, tb, exclusive("m"));
    world_.run_for(50ms);
    ASSERT_TRUE(ta.granted());
    ASSERT_TRUE(tb.granted());
    a->when_lost([&](std::error_code why) {
        ta.losses.push_back(why);
        b.reset();
    });
    cut(one_);
    world_.run_for(ttl);
    EXPECT_EQ(ta.losses, std::vector<std::error_code>{errc::lost});
    EXPECT_TRUE(tb.losses.empty());
}

TEST_F(LockClaimLife, AnAcquisitionThatFindsTheSessionsEndMayBeDestroyedByIt) {
    told t;
    auto a = std::make_unique<lock_claim>(first_);
    first_->when_lost([&](std::error_code) { a.reset(); });
    one_.pause_until(world_.now() + 2 * ttl);
    world_.run_for(ttl);
    ASSERT_NE(a, nullptr) << "nobody looked at the time yet";
    acquire(*a, t, exclusive("n"));
    EXPECT_EQ(a, nullptr);
    world_.run_for(2 * ttl);
    EXPECT_EQ(t.answers, 0);
}

TEST_F(LockClaimLife, ABadNameIsRefusedByTheStore) {
    lock_claim a(first_);
    told t;
    acquire(a, t, exclusive("a//b"));
    world_.run_for(50ms);
    EXPECT_EQ(t.answer, errc::invalid);
    EXPECT_TRUE(a.idle());
    EXPECT_EQ(first_->debts(), 0U);
}

}  // namespace
}  // namespace trinco::test
