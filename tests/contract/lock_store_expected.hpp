// The contract of lock_store: a claim that is announced before its lease is opened.
#pragma once

#include "lock_store_world.hpp"

namespace trinco::test {

TEST_P(LockStore, AnExpectedClaimIsGrantedOnceWhenItIsEntered) {
    auto first = claim({}, 1, {exclusive("n")});
    a().expect(first);
    const auto on = open(a());
    first.lease = on.id;
    const auto entered = enter(a(), first);
    ASSERT_FALSE(entered.error) << entered.error.message();
    EXPECT_EQ(entered.value.ahead.value_or(0), 0U);
    EXPECT_EQ(owned(a(), on).value, (std::vector<claim_id>{{1}}));
    const auto token = verify(a(), on, 1).value.tokens.at(0);
    if (world_->grants_with_the_place()) {
        ASSERT_TRUE(entered.value.granted);
        EXPECT_EQ(entered.value.granted->tokens.at(0), token);
    }
    ASSERT_FALSE(enter(a(), first).error) << "entering is idempotent in the claim's id";
    EXPECT_EQ(verify(a(), on, 1).value.tokens.at(0), token);
    EXPECT_EQ(owned(a(), on).value.size(), 1U);
}

TEST_P(LockStore, AnExpectedClaimTakesItsPlaceBehindWhoWasThere) {
    const auto before = open(b());
    ASSERT_FALSE(enter(b(), claim(before, 7, {exclusive("n")})).error);
    auto first = claim({}, 1, {exclusive("n")});
    a().expect(first);
    const auto on = open(a());
    first.lease = on.id;
    const auto entered = enter(a(), first);
    ASSERT_FALSE(entered.error) << entered.error.message();
    EXPECT_EQ(entered.value.ahead.value_or(1), 1U);
    EXPECT_EQ(verify(a(), on, 1).error, errc::conflict);
    auto next = await(a(), on, 1);
    leave(b(), before, 7);
    settle_until([&] { return next->granted(); });
    EXPECT_TRUE(next->granted());
}

TEST_P(LockStore, AnExpectedClaimThatIsNotFreeLeavesNothingBehind) {
    const auto before = open(b());
    ASSERT_FALSE(enter(b(), claim(before, 7, {exclusive("n")})).error);
    auto first = claim({}, 1, {exclusive("n")}, true);
    a().expect(first);
    const auto on = open(a());
    first.lease = on.id;
    EXPECT_EQ(enter(a(), first).error, errc::conflict);
    EXPECT_TRUE(owned(a(), on).value.empty());
    leave(b(), before, 7);
    EXPECT_TRUE(list(a(), "n").value.rows.empty());
}

TEST_P(LockStore, AnExpectedClaimGoesWithItsLeaseWhenItIsNeverEntered) {
    a().expect(claim({}, 1, {exclusive("n")}));
    const auto on = open(a());
    revoke(a(), on);
    EXPECT_TRUE(list(b(), "n").value.rows.empty());
    const auto later = open(b());
    ASSERT_FALSE(enter(b(), claim(later, 1, {exclusive("n")}, true)).error);
}

TEST_P(LockStore, AnExpectedClaimIsThatOfTheNextLeaseOnly) {
    a().expect(claim({}, 1, {exclusive("n")}));
    revoke(a(), open(a()));
    const auto on = open(a());
    EXPECT_TRUE(owned(a(), on).value.empty());
    EXPECT_TRUE(list(b(), "n").value.rows.empty());
}

TEST_P(LockStore, AnExpectedClaimThatIsUnsoundIsRefusedWhenItIsEntered) {
    auto first = claim({}, 1, {exclusive("a//b")});
    a().expect(first);
    const auto on = open(a());
    first.lease = on.id;
    EXPECT_EQ(enter(a(), first).error, errc::invalid);
    EXPECT_TRUE(owned(a(), on).value.empty());
}

}  // namespace trinco::test
