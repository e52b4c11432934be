#include <gtest/gtest.h>

#include "tests/core/record_lab.hpp"

namespace trinco::detail {
namespace {

using namespace test;

constexpr auto closed = breaker_state::closed;
constexpr auto open = breaker_state::open;
constexpr auto half_open = breaker_state::half_open;

// An instance that lived through an opening meets a record that knows nothing.
news news_with(const view& mine, record_lab& lab, std::string_view name) {
    news n = lab.of(name);
    n.mine = mine;
    return n;
}

view open_view(milliseconds remaining) {
    view v;
    v.era = 77;
    v.rev = 3;
    v.state = open;
    v.remaining = remaining;
    v.backoff_level = 2;
    v.reason = "failure_rate";
    return v;
}

TEST(RecordViewsTest, ANewerViewIsTakenOverBeforeTheCountsAreLookedAt) {
    record_lab lab;
    lab.report("b", calls(0, 12));
    news n = news_with(open_view(4s), lab, "a");
    n.slices.push_back({calls(0, 2), 0ms});
    const auto v = lab.send("a", n);
    EXPECT_TRUE(lab.did.changed);
    EXPECT_EQ(v.fleet.era, 77U);
    EXPECT_EQ(v.fleet.rev, 3U);
    EXPECT_EQ(v.fleet.state, open);
    EXPECT_EQ(v.fleet.remaining, 4s);
    EXPECT_EQ(v.fleet.backoff_level, 2);
    EXPECT_EQ(v.fleet.reason, "failure_rate");
    EXPECT_EQ(v.window, calls(0, 2));
    EXPECT_EQ(lab.r.totals, calls(0, 14));
}

TEST(RecordViewsTest, AnOlderViewIsNotTakenOverAndLearnsTheNewerOne) {
    record_lab lab;
    lab.hello("a");
    lab.send("a", news_with(open_view(4s), lab, "a"));
    view older = open_view(9s);
    older.rev = 2;
    older.state = closed;
    const auto v = lab.send("b", news_with(older, lab, "b"));
    EXPECT_EQ(v.fleet.state, open);
    EXPECT_EQ(v.fleet.rev, 3U);
    older.era = 76;
    older.rev = 1'000;
    EXPECT_EQ(lab.send("b", news_with(older, lab, "b")).fleet.era, 77U);
}

TEST(RecordViewsTest, AProbeCarriesAViewToo) {
    record_lab lab;
    probe_request p;
    p.mine = open_view(1s);
    p.token = 1;
    const auto reply = apply(lab.r, record_lab::voter("a"), p, lab.now, lab.did);
    EXPECT_FALSE(reply.granted);
    EXPECT_EQ(reply.fleet.era, 77U);
    EXPECT_GE(reply.retry_after, 1s);
}

TEST(RecordViewsTest, OpenStaysOpenAfterALossOfData) {
    record_lab lab;
    lab.open_it();
    lab.pass(2s);
    const view known = lab.seen();
    lab.r = {};
    lab.restart("c");
    EXPECT_EQ(lab.hello("c").fleet.state, closed);  // knows nothing, and moves nothing
    const auto v = lab.send("a", news_with(known, lab, "a"));
    EXPECT_EQ(v.fleet.era, known.era);
    EXPECT_EQ(v.fleet.state, open);
    EXPECT_EQ(v.fleet.remaining, known.remaining);
}

TEST(RecordViewsTest, NoProbeIsGrantedForProbeTimeoutAfterAViewWasTakenOver) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    const view known = lab.seen();
    ASSERT_EQ(known.state, half_open);
    lab.r = {};
    lab.restart("a");  // its options come along
    lab.send("a", news_with(known, lab, "a"));
    EXPECT_EQ(lab.state(), half_open);
    lab.pass(10s - 1ms);
    const auto refused = lab.take("b", 2);
    EXPECT_FALSE(refused.granted);
    EXPECT_EQ(refused.retry_after, 10ms);
    lab.pass(1ms);
    EXPECT_TRUE(lab.take("b", 3).granted);
}

// Failures of one voter for as long as a window, with another one that was there before the loss.
void fail_alone(record_lab& lab) {
    for (int i = 0; i < 20 && lab.state() == closed; ++i) {
        news n = lab.of("a");
        n.options = to_text(plain_policy());
        n.slices.push_back({calls(0, 9), 0ms});
        lab.send("a", n);
        lab.pass(300ms);
    }
}

void live_on(record_lab& lab) {
    for (int i = 0; i < 4; ++i) {
        lab.pass(16s);
        lab.hello("a");
    }
}

TEST(RecordViewsTest, WhoComesFirstAfterALossIsNotItsOwnQuorum) {
    record_lab lab;
    lab.hello("a");
    lab.hello("b");
    lab.r = {};
    fail_alone(lab);
    EXPECT_EQ(lab.state(), closed);
    EXPECT_EQ(lab.hello("a").live, 1U);
    live_on(lab);
    fail_alone(lab);
    EXPECT_EQ(lab.state(), open);
}

TEST(RecordViewsTest, WhoBringsAViewFirstIsNotItsOwnQuorum) {
    record_lab lab;
    lab.restart("a");
    view known;
    known.era = 55;
    lab.send("a", news_with(known, lab, "a"));
    fail_alone(lab);
    EXPECT_EQ(lab.state(), closed);
    live_on(lab);
    fail_alone(lab);
    EXPECT_EQ(lab.state(), open);
}

TEST(RecordViewsTest, NoProbeIsGrantedBeforeTheOptionsAreKnown) {
    record_lab lab;
    lab.open_until_due();
    const view known = lab.seen();
    lab.r = {};
    lab.hello("a");  // knows its stamp, so brings no options
    ASSERT_TRUE(lab.r.options.empty());
    lab.send("a", news_with(known, lab, "a"));
    lab.pass(1h);
    EXPECT_FALSE(lab.take("a", 1).granted);
    news n = lab.of("a");
    n.options = to_text(plain_policy());
    EXPECT_FALSE(lab.send("a", n).send_options);
    EXPECT_TRUE(lab.take("a", 2).granted);
}

TEST(RecordViewsTest, AnOverrideSurvivesALossOfDataEvenInEraZero) {
    record_lab lab;
    lab.hello("a");
    const view known = lab.control(control_verb::force_open, 1, 1h);
    ASSERT_EQ(known.era, 0U);
    lab.r = {};
    lab.restart("c");
    for (int i = 0; i < 5; ++i) lab.hello("c");
    const auto v = lab.send("a", news_with(known, lab, "a"));
    EXPECT_EQ(v.fleet.over, override_kind::forced_open);
    EXPECT_EQ(v.fleet.over_remaining, 1h);
    EXPECT_NE(v.fleet.reason.find("ann"), std::string::npos);
}

TEST(RecordViewsTest, WhatAnOperatorSaidToARecordThatHadLostEverythingStays) {
    for (const auto theirs : {override_kind::none, override_kind::disabled}) {
        record_lab lab;
        lab.hello("a");
        lab.control(control_verb::force_open, 1, 1h);
        view older = open_view(4s);
        older.over = theirs;
        older.over_remaining = theirs == override_kind::none ? 0ms : 2h;
        const auto v = lab.send("b", news_with(older, lab, "b"));
        EXPECT_EQ(v.fleet.over, override_kind::forced_open);
        EXPECT_EQ(v.fleet.over_remaining, 1h);
        EXPECT_NE(v.fleet.reason.find("ann"), std::string::npos);
        EXPECT_EQ(v.fleet.era, 77U);
        EXPECT_EQ(v.fleet.state, open) << "the rest is what the old record knew";
        EXPECT_GT(v.fleet.rev, older.rev) << "so that whoever knows the old one learns of it";
        EXPECT_EQ(lab.r.reason, theirs == override_kind::none ? "failure_rate" : "");
        // A copy that comes later, too.
        EXPECT_EQ(lab.send("c", news_with(older, lab, "c")).fleet.over, override_kind::forced_open);
    }
}

TEST(RecordViewsTest, AnOverrideWinsOverARolledBackRecordThatHasCountedOn) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    const fleet_record old = lab.r;
    const view known = lab.control(control_verb::force_open, 1, 1h);
    lab.r = old;
    for (std::uint64_t t = 2; t < 4; ++t) {
        lab.take("b", t);
        lab.give_back("b", t);
    }
    EXPECT_EQ(lab.send("a", news_with(known, lab, "a")).fleet.over, override_kind::forced_open);
}

TEST(RecordViewsTest, TheLongestTimesOfAViewAreCut) {
    record_lab lab;
    view v = open_view(milliseconds::max());
    v.over = override_kind::forced_open;
    v.over_remaining = milliseconds::max();
    v.backoff_level = 255;
    v.reason = std::string(100'000, 'x');
    const auto got = lab.send("a", news_with(v, lab, "a")).fleet;
    EXPECT_EQ(got.remaining, 31 * 24h);
    EXPECT_EQ(got.over_remaining, 31 * 24h);
    EXPECT_EQ(got.backoff_level, 32);
    EXPECT_LT(got.reason.size(), 1'000U);
}

TEST(RecordViewsTest, AClockThatStepsBackProlongsNothing) {
    record_lab lab;
    lab.open_it();
    lab.pass(4s);
    lab.hello("a");
    const auto left = lab.seen().remaining;
    const era_t era = lab.seen().era;
    lab.now -= 1h;
    EXPECT_EQ(lab.hello("a").fleet.remaining, left);
    lab.pass(left);
    EXPECT_TRUE(lab.take("a", 1).granted);
    EXPECT_GT(lab.seen().era, era);
    lab.now -= 5h;
    lab.hello("a");
    lab.pass(11s - 1us);
    lab.hello("a");
    EXPECT_EQ(lab.take("b", 2).fleet.state, half_open);
    EXPECT_EQ(lab.r.reclaimed, 0U);
    lab.pass(1us);
    lab.take("b", 3);
    EXPECT_EQ(lab.r.reclaimed, 1U);
}

TEST(RecordViewsTest, ErasGrowOnAClockThatStandsStill) {
    record_lab lab;
    lab.hello("a");
    era_t last = 0;
    for (std::uint64_t i = 1; i <= 50; ++i) {
        const view v = lab.control(i % 2 == 0 ? control_verb::reset : control_verb::trip, i);
        EXPECT_GT(v.era, last);
        last = v.era;
    }
    EXPECT_EQ(last, static_cast<era_t>(lab.now.count()) + 49);
}

TEST(RecordViewsTest, RemainingIsRoundedUp) {
    record_lab lab;
    lab.hello("a");
    lab.control(control_verb::trip, 1, 1s);
    lab.pass(1us);
    EXPECT_EQ(lab.seen().remaining, 1s);
    lab.pass(999us);
    EXPECT_EQ(lab.seen().remaining, 999ms);
}

TEST(RecordViewsTest, ATimeToLiveReachesBeyondTheLongestDeadline) {
    record_lab lab;
    lab.hello("a");
    EXPECT_EQ(time_to_live(lab.r, lab.now), 1h);
    lab.control(control_verb::trip, 1, 5h);
    EXPECT_EQ(time_to_live(lab.r, lab.now), 6h);
    lab.control(control_verb::force_open, 2);
    EXPECT_EQ(time_to_live(lab.r, lab.now), 25h);
    lab.control(control_verb::set, 3, 0ms, "key_ttl_ms=7200000");
    EXPECT_EQ(time_to_live(lab.r, lab.now), 24h * 30 + 2h);
}

TEST(RecordViewsTest, AReportShowsWhoCountedWhat) {
    record_lab lab;
    lab.report("a", calls(4, 1));
    lab.pass(3s);
    lab.report("b", calls(2, 2));
    const report p = report_of(lab.r, "payments", lab.now);
    EXPECT_EQ(p.breaker, "payments");
    EXPECT_EQ(p.now.window, calls(6, 3));
    EXPECT_EQ(p.now.live, 2U);
    EXPECT_EQ(p.now.voters_failing, 1U);
    EXPECT_EQ(p.totals, calls(6, 3));
    EXPECT_FALSE(p.options_set);
    ASSERT_EQ(p.shares.size(), 2U);
    EXPECT_EQ(p.shares[0].instance, "a-1");
    EXPECT_EQ(p.shares[0].window, calls(4, 1));
    EXPECT_EQ(p.shares[0].heard, 3s);
    EXPECT_EQ(p.shares[1].voter, "b");
    EXPECT_EQ(p.shares[1].options_stamp, p.now.fleet.options_stamp);
}

TEST(RecordViewsTest, SharesOfAReportAreBoundedToTheLatestHeard) {
    record_lab lab;
    for (int i = 0; i < 300; ++i) {
        lab.pass(1ms);
        lab.hello("v" + std::to_string(i));
    }
    const report p = report_of(lab.r, "payments", lab.now);
    EXPECT_EQ(p.shares.size(), 256U);
    for (const share& s : p.shares) EXPECT_LE(s.heard, 255ms);
}

}  // namespace
}  // namespace trinco::detail
