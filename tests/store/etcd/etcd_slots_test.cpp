#include "store/etcd/etcd_slots.hpp"

#include <gtest/gtest.h>

namespace trinco::detail::etcd {
namespace {

using outcome = etcd_slots::outcome;

constexpr claim_id one{1}, two{2}, three{3};

TEST(EtcdSlots, AClaimThatHasLeftLeavesItsNumberToTheNext) {
    etcd_slots all;
    EXPECT_EQ(all.enter("l", one), one);
    all.answered("l", one, outcome::there);
    EXPECT_EQ(all.enter("l", two), two) << "while the first is there";
    all.answered("l", two, outcome::there);
    all.left("l", one);
    EXPECT_EQ(all.enter("l", three), one);
    EXPECT_EQ(all.find("l", three), one);
    EXPECT_EQ(all.owner("l", one), three);
    EXPECT_EQ(all.find("l", one), std::nullopt) << "the number is another's";
    EXPECT_EQ(all.enter("other", two), two);
}

TEST(EtcdSlots, OneThatMayStillArriveKeepsItsNumber) {
    etcd_slots all;
    EXPECT_EQ(all.enter("l", one), one);
    all.answered("l", one, outcome::unknown);
    EXPECT_EQ(all.enter("l", one), one);
    all.answered("l", one, outcome::there);
    all.left("l", one);
    EXPECT_EQ(all.enter("l", two), two);
    EXPECT_EQ(all.owner("l", one), one) << "what lands late is found as that claim";
    EXPECT_EQ(all.find("l", one), one);
    all.forget("l");
    EXPECT_EQ(all.enter("l", three), three);
}

TEST(EtcdSlots, WhatMayStillArriveIsTold) {
    etcd_slots all;
    EXPECT_FALSE(all.may_arrive("l", one));
    EXPECT_EQ(all.enter("l", one), one);
    EXPECT_TRUE(all.may_arrive("l", one));
    all.answered("l", one, outcome::there);
    EXPECT_FALSE(all.may_arrive("l", one));
    EXPECT_EQ(all.enter("l", one), one);
    all.answered("l", one, outcome::unknown);
    all.left("l", one);
    EXPECT_TRUE(all.may_arrive("l", one)) << "also when it has left";
    all.forget("l");
    EXPECT_FALSE(all.may_arrive("l", one));
}

TEST(EtcdSlots, OneWhoseRequestWasDroppedKeepsItsNumber) {
    etcd_slots all;
    EXPECT_EQ(all.enter("l", one), one);
    all.left("l", one);
    EXPECT_EQ(all.enter("l", two), two);
}

TEST(EtcdSlots, ARefusedClaimLeavesItsNumberAtOnce) {
    etcd_slots all;
    EXPECT_EQ(all.enter("l", one), one);
    all.answered("l", one, outcome::absent);
    EXPECT_EQ(all.find("l", one), std::nullopt);
    EXPECT_EQ(all.enter("l", two), one);
}

TEST(EtcdSlots, WhatOthersEnteredHasItsIdAndIsNotGivenAway) {
    etcd_slots all;
    EXPECT_EQ(all.find("l", three), three);
    EXPECT_EQ(all.owner("l", three), three);
    EXPECT_EQ(all.enter("l", one), one);
    all.answered("l", one, outcome::absent);
    EXPECT_EQ(all.enter("l", two), one);
    EXPECT_EQ(all.enter("l", one), two) << "its own number is another's by now";
}

}  // namespace
}  // namespace trinco::detail::etcd
