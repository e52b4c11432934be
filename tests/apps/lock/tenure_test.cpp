#include "apps/trinco/lock/tenure.hpp"

#include <gtest/gtest.h>

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::boot_clock;

constexpr boot_clock::time_point start(1000s);
constexpr auto grace = 3s;

lock_look held_for(boot_clock::duration since_start, std::chrono::nanoseconds valid) {
    return {.now = start + since_start, .valid_for = valid, .held = true, .asked_back = false};
}

lock_look lost_at(boot_clock::duration since_start) {
    return {.now = start + since_start, .valid_for = 0s, .held = false, .asked_back = false};
}

TEST(Tenure, ActsAGraceBeforeTheLockMayBeLost) {
    tenure t(grace, false);
    EXPECT_EQ(t.until(held_for(0s, 14s)), (deadlines{start + 11s, start + 14s}));
    EXPECT_EQ(t.believed(), start + 14s);
    EXPECT_TRUE(t.allows(start + 11s - 1ns));
    EXPECT_FALSE(t.allows(start + 11s));
}

TEST(Tenure, ARenewalMovesTheDeadlines) {
    tenure t(grace, false);
    EXPECT_EQ(t.until(held_for(0s, 14s)), (deadlines{start + 11s, start + 14s}));
    EXPECT_EQ(t.until(held_for(5s, 14s)), (deadlines{start + 16s, start + 19s}));
}

// A step of the wall clock makes the session say that nothing is sure until its next renewal.
TEST(Tenure, DoubtAboutTheClocksLeavesTheDeadlinesWhereTheyAre) {
    tenure t(grace, false);
    const auto before = t.until(held_for(0s, 14s));
    EXPECT_EQ(t.until(held_for(6s, 0s)), before);
    EXPECT_EQ(t.until(held_for(7s, 14s)), (deadlines{start + 18s, start + 21s}));
}

TEST(Tenure, AskedBackEndsAGraceLaterThoughRenewalsGoOn) {
    tenure t(grace, false);
    auto look = held_for(2s, 12s);
    look.asked_back = true;
    EXPECT_EQ(t.until(look), (deadlines{start + 2s, start + 5s}));
    look.now = start + 4s;
    look.valid_for = 13s;
    EXPECT_EQ(t.until(look), (deadlines{start + 2s, start + 5s}));
    EXPECT_FALSE(t.allows(start + 4s));
}

TEST(Tenure, AskedBackIsNoReasonToRunLongerThanTheLockIsKept) {
    tenure t(grace, false);
    auto look = held_for(12s, 2s);
    look.asked_back = true;
    EXPECT_EQ(t.until(look), (deadlines{start + 12s, start + 14s}));
}

TEST(Tenure, WhatIsLostIsToEndAtOnceAndWithinWhatWasBelieved) {
    tenure deleted(grace, false);
    static_cast<void>(deleted.until(held_for(0s, 14s)));
    EXPECT_EQ(deleted.until(lost_at(2s)), (deadlines{start + 2s, start + 5s}));

    tenure overdue(grace, false);
    static_cast<void>(overdue.until(held_for(0s, 14s)));
    EXPECT_EQ(overdue.until(lost_at(20s)), (deadlines{start + 20s, start + 20s}));
    EXPECT_FALSE(overdue.allows(start + 20s));
}

TEST(Tenure, NothingEndsACommandThatIgnoresTheLoss) {
    tenure t(grace, true);
    EXPECT_EQ(t.until(held_for(0s, 14s)), deadlines{});
    EXPECT_EQ(t.until(lost_at(20s)), deadlines{});
    EXPECT_TRUE(t.allows(start + 20s));
    EXPECT_EQ(t.believed(), start + 14s);
}

}  // namespace
}  // namespace trinco::program
