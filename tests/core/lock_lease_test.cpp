#include "core/lock/lease.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace {

using namespace std::chrono_literals;
using trinco::detail::boot_clock;
using trinco::detail::clocks;
using trinco::detail::lease_machine;
using trinco::detail::lease_state;
using trinco::detail::lease_timing;
using trinco::detail::lease_use;

clocks at(boot_clock::duration boot, boot_clock::duration wall_ahead = {}) {
    const auto wall = std::chrono::duration_cast<std::chrono::system_clock::duration>(
        boot + wall_ahead + 1'000'000h);
    return {boot_clock::time_point(boot), std::chrono::system_clock::time_point(wall)};
}

TEST(LockLease, TheDeadlineCountsFromBeforeTheRequestWasSentLessAMargin) {
    // Sent at 100 s, answered at 103 s.
    const lease_machine m(at(100s), at(103s), 15s);
    EXPECT_EQ(m.deadline_at(), at(114'250ms).boot);
    EXPECT_EQ(m.valid_for(at(103s)), 11'250ms);
}

TEST(LockLease, TheMarginIsATwentiethButAtLeastAQuarterSecond) {
    EXPECT_EQ(lease_timing::margin(1s), 250ms);
    EXPECT_EQ(lease_timing::margin(5s), 250ms);
    EXPECT_EQ(lease_timing::margin(15s), 750ms);
    EXPECT_EQ(lease_timing::margin(100s), 5s);
}

TEST(LockLease, AGrantBeyondReasonIsNotBelieved) {
    lease_machine m(at(0s), at(0s), std::chrono::seconds::max());
    EXPECT_EQ(m.ttl(), lease_timing::longest_ttl);
    EXPECT_EQ(m.deadline_at(), at(1'440min * 19 / 20).boot);
    m.renewed(at(1s), at(1s), std::chrono::seconds::max());
    EXPECT_EQ(m.deadline_at(), at(1'440min * 19 / 20 + 1s).boot);
    EXPECT_EQ(lease_machine(at(0s), at(0s), -1s).state(at(0s)), lease_state::lost);
}

TEST(LockLease, GoesFromHeldOverUncertainToLost) {
    lease_machine m(at(0s), at(0s), 15s);
    EXPECT_EQ(m.observe(at(7'499ms)), lease_state::held);
    EXPECT_EQ(m.observe(at(7'500ms)), lease_state::uncertain);
    EXPECT_EQ(m.observe(at(14'249ms)), lease_state::uncertain);
    EXPECT_EQ(m.valid_for(at(14'249ms)), 1ms) << "uncertain still may believe until the deadline";
    EXPECT_EQ(m.observe(at(14'250ms)), lease_state::lost);
    EXPECT_EQ(m.valid_for(at(14'250ms)), 0ms);
}

TEST(LockLease, LostIsFinal) {
    lease_machine m(at(0s), at(0s), 15s);
    ASSERT_EQ(m.observe(at(20s)), lease_state::lost);
    m.renewed(at(13s), at(20s), 15s);
    EXPECT_EQ(m.observe(at(20s)), lease_state::lost);
    EXPECT_EQ(m.next_wake(at(20s)), boot_clock::time_point::max());
    EXPECT_FALSE(m.renewal_due(at(20s)));
}

TEST(LockLease, AnAnswerThatWaitedWhileTheProcessWasPausedCannotReviveIt) {
    lease_machine m(at(0s), at(0s), 15s);
    m.renewal_sent(at(5s));
    // Nobody observed the time in between: the answer is the first thing after waking.
    m.renewed(at(5s), at(40s), 15s);
    EXPECT_EQ(m.state(at(40s)), lease_state::lost);
}

TEST(LockLease, RenewsAtAThirdAndRepeatsEveryFifteenth) {
    lease_machine m(at(0s), at(0s), 15s);
    EXPECT_FALSE(m.renewal_due(at(4'999ms)));
    EXPECT_TRUE(m.renewal_due(at(5s)));
    EXPECT_EQ(m.renewal_sent(at(5s)), at(8s).boot) << "an attempt lasts a fifth";
    EXPECT_FALSE(m.renewal_due(at(5'999ms)));
    EXPECT_TRUE(m.renewal_due(at(6s)));
    EXPECT_EQ(m.renewal_sent(at(13'900ms)), m.deadline_at()) << "never beyond the deadline";
}

TEST(LockLease, WhatOnlyWaitsIsRenewedLater) {
    lease_machine m(at(0s), at(0s), 15s);
    m.use(lease_use::waiting);
    EXPECT_FALSE(m.renewal_due(at(5'999ms)));
    EXPECT_TRUE(m.renewal_due(at(6s)));
    m.renewal_sent(at(6s));
    m.renewed(at(6s), at(6s), 15s);
    EXPECT_EQ(m.next_wake(at(6s)), at(12s).boot);
    EXPECT_EQ(m.deadline_at(), at(20'250ms).boot) << "the deadline is that of any lease";
}

TEST(LockLease, WhatBeginsToHoldIsRenewedAsIfItAlwaysHad) {
    lease_machine m(at(0s), at(0s), 15s);
    m.use(lease_use::waiting);
    m.use(lease_use::holding);
    EXPECT_EQ(m.next_wake(at(1s)), at(5s).boot);
    m.use(lease_use::waiting);
    EXPECT_FALSE(m.renewal_due(at(5'500ms)));
    m.use(lease_use::holding);
    EXPECT_TRUE(m.renewal_due(at(5'500ms)));
    m.renewal_sent(at(5'500ms));
    m.use(lease_use::waiting);
    m.use(lease_use::holding);
    EXPECT_EQ(m.next_wake(at(5'500ms)), at(6'500ms).boot) << "an attempt under way is not doubled";
}

TEST(LockLease, ARenewalMovesTheDeadlineFromItsSending) {
    lease_machine m(at(0s), at(0s), 15s);
    m.renewal_sent(at(5s));
    m.renewed(at(5s), at(6s), 15s);
    EXPECT_EQ(m.deadline_at(), at(19'250ms).boot);
    EXPECT_FALSE(m.renewal_due(at(9'999ms)));
    EXPECT_TRUE(m.renewal_due(at(10s)));
    EXPECT_EQ(m.state(at(12'499ms)), lease_state::held);
}

TEST(LockLease, AnOlderAnswerThatComesLaterChangesNothing) {
    lease_machine m(at(0s), at(0s), 15s);
    m.renewed(at(6s), at(7s), 15s);
    m.renewed(at(5s), at(8s), 15s);
    EXPECT_EQ(m.deadline_at(), at(20'250ms).boot);
}

TEST(LockLease, AnotherTtlIsTakenAsGranted) {
    lease_machine m(at(0s), at(0s), 15s);
    m.renewed(at(5s), at(5s), 30s);
    EXPECT_EQ(m.ttl(), 30s);
    EXPECT_EQ(m.deadline_at(), at(33'500ms).boot);
}

TEST(LockLease, ClocksThatMoveAgainstEachOtherMakeItUncertainUntilTheNextRenewal) {
    for (const auto step : {800ms, -800ms}) {
        lease_machine m(at(0s), at(0s), 15s);
        EXPECT_EQ(m.observe(at(1s, step)), lease_state::uncertain);
        EXPECT_EQ(m.valid_for(at(1s, step)), 0ms) << "nobody knows how long it lasts";
        EXPECT_TRUE(m.renewal_due(at(1s, step))) << "ask at once";
        // Moving back does not undo the doubt.
        EXPECT_EQ(m.observe(at(2s)), lease_state::uncertain);
        m.renewed(at(2s), at(2s), 15s);
        EXPECT_EQ(m.observe(at(2s)), lease_state::held);
        EXPECT_GT(m.valid_for(at(2s)), 0ms);
    }
}

TEST(LockLease, ARenewalSentBeforeTheClocksMovedDoesNotEndTheDoubt) {
    lease_machine m(at(0s), at(0s), 15s);
    m.renewal_sent(at(5s));
    m.renewed(at(5s), at(5'100ms, 20s), 15s);
    EXPECT_EQ(m.state(at(5'100ms, 20s)), lease_state::uncertain);
    EXPECT_TRUE(m.renewal_due(at(5'100ms, 20s)));
}

TEST(LockLease, ASmallStepOfTheWallClockIsNothing) {
    lease_machine m(at(0s), at(0s), 15s);
    EXPECT_EQ(m.observe(at(1s, 700ms)), lease_state::held);
}

TEST(LockLease, WakesWhenSomethingIsDue) {
    lease_machine m(at(0s), at(0s), 15s);
    EXPECT_EQ(m.next_wake(at(0s)), at(5s).boot);
    m.renewal_sent(at(5s));
    EXPECT_EQ(m.next_wake(at(5s)), at(6s).boot);
    m.renewal_sent(at(7'200ms));
    EXPECT_EQ(m.next_wake(at(7'200ms)), at(7'500ms).boot) << "to become uncertain";
    m.renewal_sent(at(14s));
    EXPECT_EQ(m.next_wake(at(14s)), m.deadline_at());
}

// A server that counts from when it handles the request, over any history of delays and losses: the
// holder never believes in a lease that the server has ended.
RC_GTEST_PROP(LockLease, NeverBelievesLongerThanTheServer, ()) {
    const auto ttl = std::chrono::seconds(*rc::gen::inRange(1, 60));
    const auto ms = [](int most) { return std::chrono::milliseconds(*rc::gen::inRange(0, most)); };
    boot_clock::duration now = 10s;
    auto server_ends = now + ms(500) + ttl;
    now += 500ms;
    lease_machine m(at(now - 500ms), at(now), ttl);
    for (int i = 0; i < 60; ++i) {
        now += ms(static_cast<int>(ttl.count()) * 400);
        m.use(*rc::gen::inRange(0, 2) == 0 ? lease_use::holding : lease_use::waiting);
        if (m.observe(at(now)) == lease_state::lost) break;
        RC_ASSERT(now < server_ends);
        RC_ASSERT(m.deadline_at() <= boot_clock::time_point(server_ends));
        if (!m.renewal_due(at(now))) continue;
        const auto sent = now;
        const auto by = m.renewal_sent(at(sent));
        const auto there = sent + ms(1'500);
        const auto back = there + ms(1'500);
        const bool request_lost = *rc::gen::inRange(0, 4) == 0;
        const bool reply_lost = *rc::gen::inRange(0, 4) == 0;
        if (request_lost || there >= server_ends) continue;
        server_ends = there + ttl;
        if (reply_lost || boot_clock::time_point(back) > by) continue;
        now = back;
        m.renewed(at(sent), at(now), ttl);
    }
}

}  // namespace
