#include <gtest/gtest.h>

#include "tests/core/record_lab.hpp"

namespace trinco::detail {
namespace {

using namespace test;

policy with_quorum(std::uint32_t q) {
    policy p = plain_policy();
    p.quorum = q;
    return p;
}

TEST(RecordOptionsTest, TheFirstExchangeStampsThemWithTheStoresTime) {
    record_lab lab;
    const auto v = lab.hello("a");
    EXPECT_EQ(v.own_stamp, static_cast<std::uint64_t>(lab.now.count()));
    EXPECT_EQ(v.fleet.options_stamp, v.own_stamp);
    EXPECT_EQ(v.options, to_text(plain_policy()));
    EXPECT_FALSE(v.send_options);
    EXPECT_EQ(v.fleet.rev, 1U);
    EXPECT_TRUE(lab.did.changed);
}

TEST(RecordOptionsTest, TheSameTextSharesItsStamp) {
    record_lab lab;
    const auto first = lab.hello("a");
    lab.pass(5s);
    const auto second = lab.hello("b");
    EXPECT_EQ(second.own_stamp, first.own_stamp);
    EXPECT_FALSE(lab.did.changed);
}

TEST(RecordOptionsTest, TheLatestStampGovernsARollBackIncluded) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    lab.pass(1s);
    lab.configure(with_quorum(4));
    const auto newer = lab.hello("b");
    EXPECT_EQ(lab.r.rules.quorum, 4U);
    lab.pass(1s);
    lab.configure(with_quorum(3));
    const auto back = lab.hello("c");
    EXPECT_EQ(lab.r.rules.quorum, 3U);
    EXPECT_GT(back.own_stamp, newer.own_stamp);
}

TEST(RecordOptionsTest, WhoHoldsAnotherTextGetsTheGoverningOneOnce) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    EXPECT_TRUE(lab.hello("a").options.empty());
    lab.configure(with_quorum(4));
    lab.hello("b");
    const auto v = lab.hello("a");
    EXPECT_EQ(v.options, to_text(with_quorum(4)));
    EXPECT_LT(v.own_stamp, v.fleet.options_stamp);
    EXPECT_TRUE(lab.hello("a").options.empty());
    const report p = report_of(lab.r, "payments", lab.now);
    EXPECT_NE(p.shares[0].options_stamp, p.now.fleet.options_stamp);
}

TEST(RecordOptionsTest, ARepeatedBatchIsNotStampedAgain) {
    record_lab lab(with_quorum(3));
    const news first = lab.of("a");
    const auto stamped = lab.send("a", first);
    lab.pass(1s);
    lab.configure(with_quorum(4));
    lab.hello("b");
    lab.pass(1s);
    EXPECT_EQ(lab.send("a", first).own_stamp, stamped.own_stamp);
    EXPECT_EQ(lab.r.rules.quorum, 4U);
}

TEST(RecordOptionsTest, StampsGrowOnAClockThatStandsStill) {
    record_lab lab(with_quorum(3));
    const auto first = lab.hello("a");
    lab.configure(with_quorum(4));
    EXPECT_GT(lab.hello("b").own_stamp, first.own_stamp);
}

TEST(RecordOptionsTest, WhatAnOperatorSetBeatsAllUntilUnset) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    lab.control(control_verb::set, 1, 0ms, "quorum=9 open_for_ms=700");
    EXPECT_EQ(lab.r.rules.quorum, 9U);
    lab.pass(1s);
    policy other = with_quorum(4);
    other.minimum_calls = 77;
    lab.configure(other);
    lab.hello("b");
    EXPECT_EQ(lab.r.rules.quorum, 9U);
    EXPECT_EQ(lab.r.rules.minimum_calls, 77U);  // only what was set is beaten
    EXPECT_TRUE(report_of(lab.r, "payments", lab.now).options_set);
    lab.control(control_verb::set, 2, 0ms, "open_for_ms=800");
    EXPECT_EQ(lab.r.rules.quorum, 9U);
    EXPECT_EQ(lab.r.rules.open_for, 800ms);
    const auto stamp = lab.seen().options_stamp;
    lab.control(control_verb::unset, 3);
    EXPECT_EQ(lab.r.rules, other);
    EXPECT_GT(lab.seen().options_stamp, stamp);
    EXPECT_EQ(lab.hello("a").options, to_text(other));
}

TEST(RecordOptionsTest, WhatAnOperatorSetRunsOut) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    lab.control(control_verb::set, 1, 5s, "quorum=9");
    lab.pass(5s - 1us);
    lab.hello("a");
    EXPECT_EQ(lab.r.rules.quorum, 9U);
    lab.pass(1us);
    lab.hello("a");
    EXPECT_EQ(lab.r.rules.quorum, 3U);
    EXPECT_FALSE(report_of(lab.r, "payments", lab.now).options_set);
}

TEST(RecordOptionsTest, PairsThatRanOutAreNotRevivedByTheNextSet) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    lab.control(control_verb::set, 1, 5s, "quorum=9");
    lab.pass(6s);
    lab.control(control_verb::set, 2, 5s, "open_for_ms=800");
    EXPECT_EQ(lab.r.rules.quorum, 3U);
}

TEST(RecordOptionsTest, ARecordThatLostItsTextAsksForItAndTakesIt) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    lab.hello("a");
    const std::uint64_t stamp = lab.seen().options_stamp;
    lab.r = {};
    const auto asked = lab.hello("a");
    EXPECT_TRUE(asked.send_options);
    EXPECT_TRUE(asked.options.empty());
    news n = lab.of("a");
    n.options = to_text(with_quorum(3));
    n.mine.options_stamp = stamp;
    const auto v = lab.send("a", n);
    EXPECT_FALSE(v.send_options);
    EXPECT_EQ(v.fleet.options_stamp, stamp);
    EXPECT_EQ(lab.r.rules.quorum, 3U);
}

TEST(RecordOptionsTest, WhatWasSetIsKnownAgainAfterALoss) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    lab.control(control_verb::set, 1, 0ms, "quorum=9");
    news n = lab.of("a");
    n.options = lab.r.options;
    n.mine.options_stamp = lab.seen().options_stamp;
    n.own_stamp = 5;
    lab.r = {};
    lab.send("a", n);
    EXPECT_TRUE(report_of(lab.r, "payments", lab.now).options_set);
    lab.configure(with_quorum(4));
    lab.hello("new");
    EXPECT_EQ(lab.r.rules.quorum, 9U);
    lab.control(control_verb::unset, 2);
    EXPECT_EQ(lab.r.rules.quorum, 4U);
}

TEST(RecordOptionsTest, WhatIsBeneathIsAskedForAfterALossOfWhatWasSet) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    lab.control(control_verb::set, 1, 0ms, "quorum=9");
    news n = lab.of("a");
    n.options = lab.r.options;
    n.mine.options_stamp = lab.seen().options_stamp;
    n.own_stamp = 6;
    lab.r = {};
    EXPECT_EQ(0U, lab.send("a", n).own_stamp);
    EXPECT_EQ(lab.r.rules.quorum, 9U);
    n = lab.of("a");
    n.options = to_text(with_quorum(3));
    EXPECT_NE(0U, lab.send("a", n).own_stamp);
    EXPECT_EQ(lab.r.rules.quorum, 9U);
    lab.control(control_verb::unset, 2);
    EXPECT_EQ(lab.r.rules.quorum, 3U);
}

TEST(RecordOptionsTest, WhatIsUnsetOverNothingDoesNotGoOnAsIfConfigured) {
    record_lab lab(with_quorum(3));
    lab.control(control_verb::set, 1, 5s, "quorum=9");
    news told = lab.of("a");
    told.options = lab.r.options;
    told.mine.options_stamp = lab.seen().options_stamp;
    told.own_stamp = 6;
    news silent = lab.of("b");
    silent.options.clear();
    silent.seq = 0;
    EXPECT_EQ(0U, lab.send("b", silent).own_stamp);
    lab.pass(5s);
    const auto v = lab.send("b", silent);
    EXPECT_TRUE(v.send_options);
    EXPECT_TRUE(lab.r.options.empty());
    // Whoever still knows what was set does not bring it back.
    EXPECT_EQ(0U, lab.send("a", told).own_stamp);
    EXPECT_TRUE(lab.r.options.empty());
    EXPECT_FALSE(report_of(lab.r, "payments", lab.now).options_set);
    lab.hello("a");
    EXPECT_EQ(lab.r.rules.quorum, 3U);
    EXPECT_EQ(to_text(with_quorum(3)), lab.r.options);
    EXPECT_NE(0U, lab.send("b", silent).own_stamp);
}

TEST(RecordOptionsTest, AReportTellsWhatIsLeftOfWhatWasSet) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    EXPECT_EQ(0ms, report_of(lab.r, "payments", lab.now).set_remaining);
    lab.control(control_verb::set, 1, 5s, "quorum=9");
    lab.control(control_verb::set, 2, 3s, "open_for_ms=800");
    lab.pass(1s);
    EXPECT_EQ(2s, report_of(lab.r, "payments", lab.now).set_remaining);
    lab.pass(3s);
    EXPECT_EQ(0ms, report_of(lab.r, "payments", lab.now).set_remaining);
    EXPECT_TRUE(report_of(lab.r, "payments", lab.now).options_set);
}

TEST(RecordOptionsTest, ARolledBackRecordTakesTheNewerTextFromWhoHasIt) {
    record_lab lab(with_quorum(3));
    lab.hello("a");
    const fleet_record old = lab.r;
    lab.pass(1s);
    lab.configure(with_quorum(4));
    lab.hello("b");
    const std::uint64_t stamp = lab.seen().options_stamp;
    lab.r = old;
    news n = lab.of("b");
    n.mine.options_stamp = stamp;
    auto v = lab.send("b", n);
    EXPECT_TRUE(v.send_options);
    EXPECT_TRUE(v.options.empty());  // its own are newer
    n = lab.of("b");
    n.mine.options_stamp = stamp;
    n.options = to_text(with_quorum(4));
    v = lab.send("b", n);
    EXPECT_FALSE(v.send_options);
    EXPECT_EQ(lab.r.rules.quorum, 4U);
    EXPECT_TRUE(lab.did.changed);
}

TEST(RecordOptionsTest, AChangeOfWindowEmptiesItAndAnotherChangeDoesNot) {
    record_lab lab;
    lab.report("a", calls(10, 0));
    lab.control(control_verb::set, 1, 0ms, "quorum=5");
    EXPECT_EQ(lab.hello("a").window, calls(10, 0));
    lab.control(control_verb::set, 2, 0ms, "window_slices=20");
    EXPECT_EQ(lab.hello("a").window, counts{});
    EXPECT_EQ(lab.report("a", calls(3, 0)).window, calls(3, 0));
    EXPECT_EQ(lab.r.totals, calls(13, 0));
}

}  // namespace
}  // namespace trinco::detail
