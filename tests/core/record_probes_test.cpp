#include <gtest/gtest.h>

#include "tests/core/record_lab.hpp"

namespace trinco::detail {
namespace {

using namespace test;

constexpr auto closed = breaker_state::closed;
constexpr auto open = breaker_state::open;
constexpr auto half_open = breaker_state::half_open;

TEST(RecordProbesTest, AProbeBeforeTheDeadlineIsRefusedWithWhatIsLeft) {
    record_lab lab;
    lab.open_it();
    lab.pass(lab.seen().remaining - 3s);
    const auto reply = lab.take("a", 1);
    EXPECT_FALSE(reply.granted);
    EXPECT_EQ(reply.retry_after, 3s);
    EXPECT_FALSE(lab.did.changed);
}

TEST(RecordProbesTest, ClosedHasNoProbes) {
    record_lab lab;
    lab.hello("a");
    const auto reply = lab.take("a", 1);
    EXPECT_FALSE(reply.granted);
    EXPECT_EQ(reply.retry_after, 0ms);
}

TEST(RecordProbesTest, HalfOpenBeginsWithTheFirstTakeAndNotWithAnExchange) {
    record_lab lab;
    lab.open_until_due();
    lab.pass(1h);
    lab.report("a", calls(9, 0));
    EXPECT_EQ(lab.state(), open);
    const view before = lab.seen();
    EXPECT_TRUE(lab.take("a", 1).granted);
    EXPECT_EQ(lab.state(), half_open);
    EXPECT_GT(lab.seen().era, before.era);
    EXPECT_EQ(lab.seen().rev, 1U);
    EXPECT_TRUE(lab.did.changed);
}

TEST(RecordProbesTest, AtMostNAreHeldAndTheRestIsToldWhenToComeBack) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) EXPECT_TRUE(lab.take("a", t).granted);
    EXPECT_TRUE(lab.take("b", 4).granted);
    EXPECT_TRUE(lab.take("b", 5).granted);
    const auto reply = lab.take("b", 6);
    EXPECT_FALSE(reply.granted);
    EXPECT_GE(reply.retry_after, 10ms);
    EXPECT_EQ(lab.hello("a").probes_left, 0);
}

TEST(RecordProbesTest, OneVoterHoldsAndSettlesAtMostItsCap) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) EXPECT_TRUE(lab.take("a", t).granted);
    EXPECT_FALSE(lab.take("a", 4).granted);
    lab.succeed("a", 1);
    EXPECT_FALSE(lab.take("a", 5).granted);
}

TEST(RecordProbesTest, TheCapFallsWhenNoOtherVoterAsksWithinProbeTimeout) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) {
        lab.take("a", t);
        lab.succeed("a", t);
    }
    lab.pass(10s - 1ms);
    EXPECT_FALSE(lab.take("a", 4).granted);
    lab.pass(1ms);
    EXPECT_TRUE(lab.take("a", 5).granted);
    lab.succeed("a", 5);
    EXPECT_TRUE(lab.take("a", 6).granted);
    lab.succeed("a", 6);
    EXPECT_EQ(lab.state(), closed);
}

TEST(RecordProbesTest, TheCapFallsWhenTheOtherVoterOnlyGivesBack) {
    record_lab lab;
    lab.open_until_due();
    std::uint64_t token = 0;
    for (int i = 0; i < 3; ++i) {
        lab.take("a", ++token);
        lab.succeed("a", token);
    }
    for (int i = 0; i < 250 && lab.state() == half_open; ++i) {
        lab.pass(100ms);
        if (lab.take("b", ++token).granted) lab.give_back("b", token);
        if (lab.take("a", ++token).granted) lab.succeed("a", token);
    }
    EXPECT_EQ(lab.state(), closed);
}

TEST(RecordProbesTest, ATokenThatIsLeasedIsGrantedAgainAndChangesNothing) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    const view before = lab.seen();
    lab.pass(2s);
    EXPECT_TRUE(lab.take("a", 1).granted);
    EXPECT_FALSE(lab.did.changed);
    EXPECT_EQ(lab.seen().rev, before.rev);
    ASSERT_EQ(lab.r.leases.size(), 1U);
    EXPECT_EQ(lab.r.leases[0].deadline, lab.now + 8s);
}

TEST(RecordProbesTest, ATakeThatArrivesAfterItsSettlementLeasesNothing) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    lab.succeed("a", 1);
    EXPECT_FALSE(lab.take("a", 1).granted);
    lab.give_back("a", 2);  // overtook its take
    EXPECT_FALSE(lab.take("a", 2).granted);
    EXPECT_TRUE(lab.r.leases.empty());
}

TEST(RecordProbesTest, ASettlementSaidTwiceIsAnsweredTheSameAndCountsOnce) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    EXPECT_TRUE(lab.fail("a", 1).granted);
    EXPECT_TRUE(lab.fail("a", 1).granted);
    EXPECT_FALSE(lab.did.changed);
    EXPECT_EQ(lab.r.voters[0].probes_failed, 1U);
}

TEST(RecordProbesTest, AnUnknownTokenSettlesNothing) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    EXPECT_FALSE(lab.succeed("a", 99).granted);
    EXPECT_FALSE(lab.did.changed);
    EXPECT_EQ(lab.r.voters[0].probes_succeeded, 0U);
}

TEST(RecordProbesTest, SpentTokensAreBounded) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 1'000; ++t) lab.give_back("a", t);
    EXPECT_EQ(lab.r.settled.size(), 256U);
    EXPECT_EQ(lab.r.settled.back().token, 1'000U);
    lab.pass(11s);
    lab.give_back("a", 5'000);
    EXPECT_EQ(lab.r.settled.size(), 1U);
}

TEST(RecordProbesTest, GiveBackFreesTheSlotAtOnce) {
    policy p = plain_policy();
    p.half_open_probes = 1;
    record_lab lab(p);
    lab.open_until_due();
    lab.take("a", 1);
    EXPECT_FALSE(lab.take("b", 2).granted);
    EXPECT_TRUE(lab.give_back("a", 1).granted);
    EXPECT_TRUE(lab.take("b", 3).granted);
}

TEST(RecordProbesTest, ClosesWhenNSettledWithARateUnderTheThreshold) {
    policy p = plain_policy();
    p.recovery_ramp = 30s;
    record_lab lab(p);
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 5; ++t) {
        EXPECT_EQ(lab.state(), t == 1 ? open : half_open);
        const char* who = t <= 3 ? "a" : "b";
        ASSERT_TRUE(lab.take(who, t).granted);
        if (t == 2 || t == 4) {
            lab.fail(who, t);
        } else {
            lab.succeed(who, t);
        }
    }
    EXPECT_EQ(lab.state(), closed);
    EXPECT_EQ(lab.seen().remaining, 30s);
    lab.pass(12s);
    EXPECT_EQ(lab.seen().remaining, 18s);
    EXPECT_EQ(lab.seen().reason, "recovered");
}

TEST(RecordProbesTest, ReopensWithTheNextLevelWhenAQuorumFails) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 4; ++t) lab.take(t <= 2 ? "a" : "b", t);
    lab.fail("a", 1);
    lab.fail("a", 2);
    EXPECT_EQ(lab.state(), half_open);
    lab.fail("b", 3);
    EXPECT_EQ(lab.state(), open);
    EXPECT_EQ(lab.seen().backoff_level, 1);
    EXPECT_EQ(lab.seen().remaining, 20s);
    EXPECT_EQ(lab.seen().reason, "probes_failed");
}

TEST(RecordProbesTest, OneBadVoterOfTwoIsSetAsideAndTheFleetClosesWithoutIt) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) lab.take("a", t);
    for (std::uint64_t t = 1; t <= 3; ++t) lab.fail("a", t);
    EXPECT_EQ(lab.state(), half_open);
    const auto refused = lab.take("a", 10);
    EXPECT_FALSE(refused.granted);
    EXPECT_TRUE(refused.set_aside);
    EXPECT_TRUE(lab.hello("a").set_aside);
    EXPECT_FALSE(lab.hello("b").set_aside);
    for (std::uint64_t t = 20; t < 25; ++t) {
        ASSERT_TRUE(lab.take("b", t).granted) << t;
        lab.succeed("b", t);
    }
    EXPECT_EQ(lab.state(), closed);
    EXPECT_TRUE(lab.hello("a").set_aside);
    lab.open_it();
    EXPECT_FALSE(lab.hello("a").set_aside);
}

TEST(RecordProbesTest, ReopensWhenNobodyElseAsksWhileOneIsSetAside) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) lab.take("a", t);
    for (std::uint64_t t = 1; t <= 3; ++t) lab.fail("a", t);
    lab.pass(10s - 1ms);
    lab.take("a", 10);
    EXPECT_EQ(lab.state(), half_open);
    lab.pass(1ms);
    lab.take("a", 11);
    EXPECT_EQ(lab.state(), open);
    EXPECT_EQ(lab.seen().backoff_level, 1);
}

TEST(RecordProbesTest, AVoterThatAskedKeepsTheEraOpenForItselfUntilItIsLongGone) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) lab.take("a", t);
    for (std::uint64_t t = 1; t <= 3; ++t) lab.fail("a", t);
    lab.pass(5s);
    lab.take("b", 20);
    lab.give_back("b", 20);
    lab.pass(59s);
    lab.take("a", 21);
    EXPECT_EQ(lab.state(), half_open);
    lab.pass(1s);
    lab.take("a", 22);
    EXPECT_EQ(lab.state(), open);
}

TEST(RecordProbesTest, ItsOwnAskComesInTimeToEndTheVainWait) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) lab.take("a", t);
    for (std::uint64_t t = 1; t <= 3; ++t) lab.fail("a", t);
    lab.pass(30s);
    EXPECT_TRUE(lab.take("b", 20).granted);
    EXPECT_EQ(lab.state(), half_open);
}

TEST(RecordProbesTest, ASingleVoterDecidesAlone) {
    record_lab lab;
    lab.hello("a");
    lab.control(control_verb::trip, 1);
    lab.pass(10s);
    for (std::uint64_t t = 1; t <= 5; ++t) ASSERT_TRUE(lab.take("a", t).granted);
    lab.fail("a", 1);
    lab.fail("a", 2);
    EXPECT_EQ(lab.state(), half_open);
    lab.fail("a", 3);
    EXPECT_EQ(lab.state(), open);
}

TEST(RecordProbesTest, AnOverdueLeaseIsReclaimedATenthLaterAsIgnored) {
    policy p = plain_policy();
    p.half_open_probes = 2;
    p.quorum = 1;
    record_lab lab(p);
    lab.open_until_due();
    lab.take("a", 1);
    lab.take("a", 2);
    lab.pass(11s - 1ms);
    EXPECT_FALSE(lab.take("a", 3).granted);
    EXPECT_TRUE(lab.succeed("a", 2).granted);  // past its deadline: a failure
    EXPECT_EQ(lab.state(), open);
    EXPECT_EQ(lab.r.reason, "probes_failed");
}

TEST(RecordProbesTest, AReclaimedSlotIsGrantedToOthers) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) lab.take("a", t);
    for (std::uint64_t t = 4; t <= 5; ++t) lab.take("b", t);
    lab.pass(5s);
    for (std::uint64_t t = 4; t <= 5; ++t) lab.succeed("b", t);
    lab.pass(6s);
    EXPECT_TRUE(lab.take("b", 6).granted);
    EXPECT_EQ(lab.r.reclaimed, 3U);
    EXPECT_FALSE(lab.succeed("a", 1).granted);
    EXPECT_FALSE(lab.take("a", 1).granted);
}

TEST(RecordProbesTest, NVanishedProbesReopen) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) lab.take("a", t);
    for (std::uint64_t t = 4; t <= 5; ++t) lab.take("b", t);
    lab.pass(11s);
    lab.take("a", 6);
    EXPECT_EQ(lab.state(), open);
    EXPECT_EQ(lab.seen().reason, "probes_vanished");
}

TEST(RecordProbesTest, ALeaseOfAnOlderEraIsFreedAndSettlesNothing) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    lab.control(control_verb::trip, 1, 100ms);
    lab.pass(100ms);
    lab.take("b", 2);
    EXPECT_EQ(lab.hello("b").probes_left, 3);
    EXPECT_FALSE(lab.succeed("a", 1).granted);
    EXPECT_EQ(lab.hello("b").probes_left, 4);
    for (const auto& v : lab.r.voters) EXPECT_EQ(v.probes_succeeded + v.probes_failed, 0U);
}

TEST(RecordProbesTest, LeasesOfOlderErasHoldTheirSlots) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) lab.take("a", t);
    for (std::uint64_t t = 4; t <= 5; ++t) lab.take("b", t);
    lab.control(control_verb::trip, 1, 100ms);
    lab.pass(100ms);
    EXPECT_FALSE(lab.take("a", 6).granted);
    EXPECT_EQ(lab.state(), open);
    lab.succeed("a", 1);
    EXPECT_TRUE(lab.take("b", 7).granted);
    EXPECT_FALSE(lab.take("b", 8).granted);
}

TEST(RecordProbesTest, AShorterLeaseIsGrantedAsAskedAndALongerOneIsNot) {
    record_lab lab;
    lab.open_until_due();
    probe_request p;
    p.mine = lab.seen();
    p.token = 1;
    p.lease = 2s;
    EXPECT_TRUE(apply(lab.r, record_lab::voter("a"), p, lab.now, lab.did).granted);
    p.token = 2;
    p.lease = 1h;
    EXPECT_TRUE(apply(lab.r, record_lab::voter("a"), p, lab.now, lab.did).granted);
    EXPECT_EQ(lab.r.leases.at(0).deadline, lab.now + 2s);
    EXPECT_EQ(lab.r.leases.at(1).deadline, lab.now + 10s);
}

TEST(RecordProbesTest, FewerProbesAskedForByNewOptionsDecideAtTheNextRequest) {
    record_lab lab;
    lab.open_until_due();
    for (std::uint64_t t = 1; t <= 3; ++t) {
        lab.take("a", t);
        lab.succeed("a", t);
    }
    lab.control(control_verb::set, 1, 0ms, "half_open_probes=3");
    EXPECT_EQ(lab.state(), half_open);
    EXPECT_FALSE(lab.take("b", 9).granted);
    EXPECT_EQ(lab.state(), closed);
}

TEST(RecordProbesTest, BackoffGrowsToItsLongestAndDecaysWithHealth) {
    policy p = plain_policy();
    p.quorum = 1;
    p.half_open_probes = 1;
    record_lab lab(p);
    lab.open_it();
    std::uint64_t token = 0;
    for (int i = 1; i <= 40; ++i) {
        lab.pass(lab.seen().remaining);
        ASSERT_TRUE(lab.take("a", ++token).granted);
        lab.fail("a", token);
        ASSERT_EQ(lab.state(), open);
        ASSERT_EQ(lab.seen().backoff_level, std::min(i, 32));
    }
    EXPECT_EQ(lab.seen().remaining, 5min);
    lab.pass(5min);
    lab.take("a", ++token);
    lab.succeed("a", token);
    ASSERT_EQ(lab.state(), closed);
    record_lab healthy = lab;
    lab.open_it();
    EXPECT_EQ(lab.seen().backoff_level, 32);
    healthy.pass(5min);
    healthy.open_it();
    EXPECT_EQ(healthy.seen().backoff_level, 0);
}

}  // namespace
}  // namespace trinco::detail
