#include <gtest/gtest.h>

#include "tests/core/record_lab.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace test;

TEST(SliceWindowTest, ASliceLeavesWhenTheWindowHasPassedIt) {
    slice_window w;
    EXPECT_TRUE(w.add(100, 100, 10, calls(1, 0)));
    EXPECT_EQ(w.advance(109).success, 1U);
    EXPECT_EQ(w.sum_at(110).success, 0U);
    EXPECT_EQ(w.advance(110).success, 0U);
}

TEST(SliceWindowTest, ASliceOlderThanTheWindowIsNotTaken) {
    slice_window w;
    EXPECT_FALSE(w.add(90, 100, 10, calls(1, 0)));
    EXPECT_TRUE(w.add(91, 100, 10, calls(1, 0)));
    EXPECT_EQ(w.sum.success, 1U);
}

TEST(SliceWindowTest, ACellIsUsedAgainAfterItsSliceHasLeft) {
    slice_window w;
    for (std::int64_t i = 0; i < 100; ++i) {
        EXPECT_TRUE(w.add(i, i, 10, calls(1, 0)));
        EXPECT_EQ(w.sum.success, static_cast<std::uint64_t>(std::min<std::int64_t>(i + 1, 10)));
    }
    EXPECT_EQ(w.cells.size(), 10U);
}

TEST(RecordWindowTest, AnAbsentRecordIsClosedAtEraZero) {
    const record_lab lab;
    EXPECT_EQ(lab.seen().era, 0U);
    EXPECT_EQ(lab.seen().rev, 0U);
    EXPECT_EQ(lab.state(), breaker_state::closed);
}

TEST(RecordWindowTest, CountsDoNotMoveAnAbsentRecordsView) {
    record_lab lab;
    news n;
    n.seq = 1;
    n.slices.push_back({calls(7, 1), 0ms});
    const auto v = lab.send("a", n);
    EXPECT_TRUE(v.counted);
    EXPECT_EQ(v.fleet.era, 0U);
    EXPECT_EQ(v.fleet.rev, 0U);
    EXPECT_FALSE(lab.did.changed);
    EXPECT_EQ(v.window, calls(7, 1));
}

TEST(RecordWindowTest, ARepeatedSeqIsAnsweredAndNotCounted) {
    record_lab lab;
    news n = lab.of("a");
    n.slices.push_back({calls(5, 0), 0ms});
    EXPECT_TRUE(lab.send("a", n).counted);
    const auto again = lab.send("a", n);
    EXPECT_FALSE(again.counted);
    EXPECT_EQ(again.window, calls(5, 0));
    EXPECT_EQ(lab.r.totals, calls(5, 0));
}

TEST(RecordWindowTest, ASeqOfZeroComparesViewsOnly) {
    record_lab lab;
    news n = lab.of("a");
    n.seq = 0;
    n.slices.push_back({calls(5, 0), 0ms});
    EXPECT_FALSE(lab.send("a", n).counted);
    EXPECT_EQ(lab.r.totals, counts{});
}

TEST(RecordWindowTest, ASeqIsRememberedForTwoWindowsAfterItsInstanceFellSilent) {
    policy p = plain_policy();
    p.window = 60s;
    p.live_for = 1s;
    record_lab lab(p);
    news n = lab.of("a");
    n.slices.push_back({calls(5, 0), 0ms});
    lab.send("a", n);
    lab.pass(119s);
    lab.hello("b");
    EXPECT_FALSE(lab.send("a", n).counted);
}

TEST(RecordWindowTest, ASliceIsBookedByItsAge) {
    record_lab lab;
    lab.report("a", calls(3, 0), 9s);
    EXPECT_EQ(lab.report("a", calls(1, 0)).window, calls(4, 0));
    lab.pass(1s);
    EXPECT_EQ(lab.hello("a").window, calls(1, 0));
    EXPECT_EQ(lab.r.totals, calls(4, 0));
}

TEST(RecordWindowTest, ASliceOlderThanTheWindowGoesToTheTotalsOnly) {
    record_lab lab;
    const auto v = lab.report("a", calls(3, 4), 11s);
    EXPECT_TRUE(v.counted);
    EXPECT_EQ(v.window, counts{});
    EXPECT_EQ(lab.r.totals, calls(3, 4));
}

TEST(RecordWindowTest, OutcomesOfAnOlderEraGoToTheTotalsOnly) {
    record_lab lab;
    news late = lab.of("a");
    late.slices.push_back({calls(0, 30), 0ms});
    lab.control(control_verb::reset, 7);
    const auto v = lab.send("a", late);
    EXPECT_TRUE(v.counted);
    EXPECT_EQ(v.window, counts{});
    EXPECT_EQ(lab.r.totals, calls(0, 30));
    EXPECT_GT(v.fleet.era, late.mine.era);
}

TEST(RecordWindowTest, StaleOutcomesGoToTheTotalsOnly) {
    record_lab lab;
    news n = lab.of("a");
    n.stale = calls(2, 9);
    EXPECT_EQ(lab.send("a", n).window, counts{});
    EXPECT_EQ(lab.r.totals, calls(2, 9));
}

TEST(RecordWindowTest, OpensWhenAQuorumFailsAboveTheRate) {
    record_lab lab;
    lab.open_it();
    EXPECT_TRUE(lab.did.changed);
    EXPECT_EQ(lab.seen().reason, "failure_rate");
    EXPECT_EQ(lab.seen().backoff_level, 0);
    EXPECT_EQ(lab.r.window.sum, counts{});
    EXPECT_LE(lab.seen().remaining, 10s);
}

TEST(RecordWindowTest, OneBadVoterOfTwoDoesNotOpenTheFleet) {
    record_lab lab;
    for (int i = 0; i < 100; ++i) {
        lab.report("a", calls(0, 50));
        lab.report("b", calls(5, 0));
        lab.pass(200ms);
        ASSERT_EQ(lab.state(), breaker_state::closed);
    }
    EXPECT_EQ(lab.hello("b").voters_failing, 1U);
}

TEST(RecordWindowTest, AVoterAloneOpens) {
    record_lab lab;
    for (int i = 0; i < 20; ++i) {
        lab.report("a", calls(0, 5));
        lab.pass(500ms);
    }
    EXPECT_EQ(lab.state(), breaker_state::open);
}

TEST(RecordWindowTest, FailuresOfAVoterThatIsGoneDoNotOpen) {
    policy p = plain_policy();
    p.window = 60s;
    p.live_for = 5s;
    record_lab lab(p);
    lab.hello("b");
    for (int i = 0; i < 10; ++i) {
        lab.report("a", calls(0, 10));
        lab.report("b", calls(1, 0));
        lab.pass(500ms);
    }
    lab.pass(6s);
    const auto v = lab.report("b", calls(1, 0));
    EXPECT_EQ(v.live, 1U);
    EXPECT_EQ(v.voters_failing, 0U);
    EXPECT_EQ(v.fleet.state, breaker_state::closed);
    EXPECT_EQ(v.window.failure, 100U);
}

TEST(RecordWindowTest, NothingOpensBelowTheMinimumOfCalls) {
    record_lab lab;
    for (int i = 0; i < 19; ++i) {
        lab.report(i % 2 == 0 ? "a" : "b", calls(0, 1));
        lab.pass(300ms);
        ASSERT_EQ(lab.state(), breaker_state::closed);
    }
    lab.report("b", calls(0, 1));
    EXPECT_EQ(lab.state(), breaker_state::open);
}

TEST(RecordWindowTest, AColdWindowAsksForAFlushBeforeItOpens) {
    record_lab lab;
    lab.hello("b");
    lab.report("a", calls(0, 20));
    EXPECT_FALSE(lab.did.flush);
    lab.report("b", calls(0, 20));
    EXPECT_EQ(lab.state(), breaker_state::closed);
    EXPECT_TRUE(lab.r.suspect_since != 0us);
    lab.pass(19ms);
    lab.report("a", calls(0, 1));
    EXPECT_EQ(lab.state(), breaker_state::closed);
    EXPECT_FALSE(lab.did.flush);
    lab.pass(1ms);
    lab.report("a", calls(0, 1));
    EXPECT_EQ(lab.state(), breaker_state::open);
}

TEST(RecordWindowTest, AFlushThatBringsSuccessesClearsTheSuspicion) {
    record_lab lab;
    lab.hello("b");
    lab.report("a", calls(0, 20));
    EXPECT_FALSE(lab.did.flush);
    lab.report("b", calls(0, 20));
    EXPECT_TRUE(lab.did.flush);
    lab.pass(5ms);
    lab.report("c", calls(200, 0));
    lab.pass(15ms);
    lab.report("d", calls(1, 0));
    EXPECT_EQ(lab.state(), breaker_state::closed);
    EXPECT_EQ(lab.r.suspect_since, 0us);
}

TEST(RecordWindowTest, AWarmWindowOpensAtOnce) {
    record_lab lab;
    for (int i = 0; i < 10; ++i) {
        lab.report("a", calls(20, 0));
        lab.report("b", calls(20, 0));
        lab.pass(900ms);
    }
    // Of 800 calls the 40 that tip it are young.
    lab.report("a", calls(0, 180), 500ms);
    lab.report("b", calls(0, 180), 500ms);
    EXPECT_FALSE(lab.did.flush);
    EXPECT_EQ(lab.state(), breaker_state::closed);
    lab.report("a", calls(0, 20));
    lab.report("b", calls(0, 20));
    EXPECT_FALSE(lab.did.flush);
    EXPECT_EQ(lab.state(), breaker_state::open);
}

TEST(RecordWindowTest, NothingOpensBeforeTheOptionsAreKnown) {
    record_lab lab;
    for (int i = 0; i < 20; ++i) {
        news n = lab.of("a");
        n.options.clear();
        n.slices.push_back({calls(0, 50), 0ms});
        const auto v = lab.send("a", n);
        ASSERT_TRUE(v.send_options);
        lab.pass(500ms);
    }
    EXPECT_EQ(lab.state(), breaker_state::closed);
    EXPECT_EQ(lab.report("a", calls(0, 1)).fleet.state, breaker_state::open);
}

TEST(RecordWindowTest, InstancesAreSpreadSoThatTheBudgetHolds) {
    policy p = plain_policy();
    p.exchange_budget = 10;
    record_lab lab(p);
    EXPECT_EQ(lab.hello("a").next_exchange, 100ms);
    for (int i = 0; i < 49; ++i) lab.hello("v" + std::to_string(i));
    EXPECT_EQ(lab.hello("a").next_exchange, 5s);
    lab.pass(70s);
    EXPECT_EQ(lab.hello("a").next_exchange, 100ms);
}

TEST(RecordWindowTest, PartiesAreBoundedAndTheLongestSilentGoesFirst) {
    record_lab lab;
    for (int i = 0; i < 4'200; ++i) {
        lab.pass(1ms);
        lab.hello("v" + std::to_string(i));
    }
    EXPECT_EQ(lab.r.voters.size(), 512U);
    EXPECT_EQ(lab.r.instances.size(), 4'096U);
    EXPECT_EQ(lab.hello("v4199").live, 512U);
    for (const auto& v : lab.r.voters) EXPECT_NE(v.name, "v0");
}

TEST(RecordWindowTest, NewsOutOfBoundsIsInvalidAndChangesNothing) {
    record_lab lab;
    lab.report("a", calls(1, 0));
    const auto expect_refused = [&](const news& n) {
        EXPECT_EQ(lab.send("a", n).error, errc::invalid);
        EXPECT_EQ(lab.r.totals, calls(1, 0));
        EXPECT_EQ(lab.r.era, 0U);
    };
    news n = lab.of("a");
    n.mine.era = max_era;
    expect_refused(n);
    n = lab.of("a");
    n.mine.rev = ~std::uint64_t{0};
    expect_refused(n);
    n = lab.of("a");
    n.slices.push_back({calls(max_count, 0), 0ms});
    expect_refused(n);
    n = lab.of("a");
    n.mine.era = 5;
    n.mine.remaining = -1ms;
    expect_refused(n);
    n = lab.of("a");
    n.slices.resize(max_slices + 1);
    expect_refused(n);
    n = lab.of("a");
    n.options = "failure_rate=2";
    expect_refused(n);
}

TEST(RecordWindowTest, AnAgeBeyondAllTimeIsOldAndANegativeOneIsNow) {
    record_lab lab;
    lab.report("a", calls(1, 0), milliseconds::max());
    EXPECT_EQ(lab.report("a", calls(2, 0), -5s).window, calls(2, 0));
    EXPECT_EQ(lab.r.totals, calls(3, 0));
}

// A record that was lost gets the options back from whoever knows them.
void tell_options(record_lab& lab, std::string_view name) {
    news n = lab.of(name);
    n.options = to_text(plain_policy());
    n.mine.options_stamp = n.own_stamp;
    EXPECT_FALSE(lab.send(name, n).error);
}

TEST(RecordWindowTest, ALostRecordIsNotOpenedByTheOneVoterThatComesFirst) {
    record_lab lab;
    lab.hello("bad");
    lab.hello("good");
    lab.r = {};
    tell_options(lab, "bad");
    for (int i = 0; i < 40; ++i) {
        lab.report("bad", calls(0, 5));
        lab.pass(300ms);
        ASSERT_EQ(lab.state(), breaker_state::closed);
    }
    // Once the other has come, and fails as well, it opens.
    lab.report("good", calls(0, 50));
    lab.pass(1s);
    lab.report("good", calls(0, 1));
    EXPECT_EQ(lab.state(), breaker_state::open);
}

TEST(RecordWindowTest, ALostRecordTrustsTheVotersItHasAfterLiveFor) {
    record_lab lab;
    lab.hello("a");
    lab.hello("gone");
    lab.r = {};
    tell_options(lab, "a");
    lab.pass(lab.r.rules.live_for);
    for (int i = 0; i < 40 && lab.state() == breaker_state::closed; ++i) {
        lab.report("a", calls(0, 5));
        lab.pass(300ms);
    }
    EXPECT_EQ(lab.state(), breaker_state::open);
}

TEST(RecordWindowTest, ARecordThatTookOverANewerViewNeedsItsWholeQuorum) {
    record_lab lab;
    lab.hello("bad");
    news n = lab.of("bad");
    n.mine.era = static_cast<era_t>(lab.now.count());
    lab.send("bad", n);
    for (int i = 0; i < 40; ++i) {
        lab.report("bad", calls(0, 5));
        lab.pass(300ms);
    }
    EXPECT_EQ(lab.state(), breaker_state::closed);
}

}  // namespace
}  // namespace trinco::detail
