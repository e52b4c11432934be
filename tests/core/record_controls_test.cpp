#include <gtest/gtest.h>

#include "tests/core/record_lab.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace test;

constexpr auto closed = breaker_state::closed;
constexpr auto open = breaker_state::open;

TEST(RecordControlsTest, TripOpensAndRecoversAsUsual) {
    record_lab lab;
    lab.hello("a");
    const view v = lab.control(control_verb::trip, 1);
    EXPECT_EQ(v.state, open);
    EXPECT_EQ(v.remaining, 10s);
    EXPECT_EQ(v.reason, "drill (by ann)");
    EXPECT_TRUE(lab.did.changed);
    EXPECT_EQ(lab.control(control_verb::trip, 2, 3s).remaining, 3s);
    lab.pass(3s);
    EXPECT_TRUE(lab.take("a", 1).granted);
}

TEST(RecordControlsTest, ResetClosesWithAnEmptyWindowAndNoBackoff) {
    record_lab lab;
    lab.open_until_due();
    lab.take("a", 1);
    lab.r.backoff_level = 3;
    const view v = lab.control(control_verb::reset, 1);
    EXPECT_EQ(v.state, closed);
    EXPECT_EQ(v.remaining, 0ms);
    EXPECT_EQ(v.backoff_level, 0);
    EXPECT_EQ(lab.hello("a").window, counts{});
    EXPECT_FALSE(lab.succeed("a", 1).granted);
}

TEST(RecordControlsTest, AnIdIsCarriedOutOnce) {
    record_lab lab;
    lab.hello("a");
    lab.control(control_verb::trip, 1, 5s);
    const view after = lab.control(control_verb::reset, 2);
    const view again = lab.control(control_verb::trip, 1, 5s);
    EXPECT_EQ(again.era, after.era);
    EXPECT_EQ(again.state, closed);
    EXPECT_FALSE(lab.did.changed);
    lab.pass(1h);
    EXPECT_EQ(lab.control(control_verb::trip, 1, 5s).state, open);
}

TEST(RecordControlsTest, RememberedIdsAreBounded) {
    record_lab lab;
    for (std::uint64_t i = 1; i <= 200; ++i) lab.control(control_verb::resume, i);
    EXPECT_EQ(lab.r.controls.size(), 64U);
}

TEST(RecordControlsTest, ForcedOpenFreezesTheStateAndGrantsNoProbe) {
    record_lab lab;
    lab.open_until_due();
    const view v = lab.control(control_verb::force_open, 1, 300ms);
    EXPECT_EQ(v.over, override_kind::forced_open);
    EXPECT_EQ(v.over_remaining, 300ms);
    EXPECT_EQ(v.reason, "drill (by ann)");
    EXPECT_EQ(v.state, open);
    const auto refused = lab.take("a", 1);
    EXPECT_FALSE(refused.granted);
    EXPECT_EQ(refused.retry_after, 300ms);
    lab.control(control_verb::force_open, 2);
    EXPECT_EQ(lab.seen().over_remaining, 24h);
    EXPECT_EQ(lab.take("a", 2).retry_after, 1s);
}

TEST(RecordControlsTest, DisabledCountsAndDecidesNothing) {
    record_lab lab;
    lab.control(control_verb::disable, 1);
    for (int i = 0; i < 20; ++i) {
        lab.report("a", calls(0, 10));
        lab.report("b", calls(0, 10));
        lab.pass(300ms);
    }
    EXPECT_EQ(lab.state(), closed);
    EXPECT_FALSE(lab.did.flush);
    EXPECT_EQ(lab.hello("a").window, calls(0, 400));
    lab.control(control_verb::resume, 2);
    lab.hello("a");
    EXPECT_EQ(lab.state(), open);
}

TEST(RecordControlsTest, ObservingDecidesAsUsual) {
    record_lab lab;
    lab.control(control_verb::observe, 1);
    lab.open_until_due();
    EXPECT_EQ(lab.seen().over, override_kind::observing);
    EXPECT_TRUE(lab.take("a", 1).granted);
}

TEST(RecordControlsTest, ASettlementWhileFrozenIsBookedAndDecidesLater) {
    policy p = plain_policy();
    p.half_open_probes = 1;
    record_lab lab(p);
    lab.open_until_due();
    lab.take("a", 1);
    lab.control(control_verb::disable, 1);
    EXPECT_TRUE(lab.succeed("a", 1).granted);
    EXPECT_EQ(lab.state(), breaker_state::half_open);
    lab.control(control_verb::resume, 2);
    EXPECT_FALSE(lab.take("a", 2).granted);
    EXPECT_EQ(lab.state(), closed);
}

TEST(RecordControlsTest, AnExpiredOverrideIsRemovedByAnyRequest) {
    record_lab lab;
    lab.hello("a");
    const view v = lab.control(control_verb::disable, 1, 2s);
    lab.pass(2s);
    EXPECT_EQ(lab.seen().over, override_kind::none);
    const auto after = lab.hello("a");
    EXPECT_EQ(after.fleet.rev, v.rev + 1);
    EXPECT_TRUE(lab.did.changed);
    EXPECT_EQ(lab.r.over, override_kind::none);
    lab.hello("a");
    EXPECT_FALSE(lab.did.changed);
}

TEST(RecordControlsTest, ForgetLeavesNothingButTheEra) {
    record_lab lab;
    lab.report("a", calls(5, 5));
    lab.control(control_verb::disable, 1);
    lab.control(control_verb::set, 2, 0ms, "quorum=7");
    const era_t before = lab.seen().era;
    const view v = lab.control(control_verb::forget, 3);
    EXPECT_GT(v.era, before);
    EXPECT_EQ(v.state, closed);
    EXPECT_EQ(v.over, override_kind::none);
    EXPECT_EQ(lab.r.rules.quorum, 2U);
    const report p = report_of(lab.r, "payments", lab.now);
    EXPECT_FALSE(p.options_set);
    EXPECT_EQ(p.totals, counts{});
    EXPECT_EQ(p.now.window, counts{});
}

TEST(RecordControlsTest, AControlOutOfBoundsIsInvalidAndChangesNothing) {
    record_lab lab;
    lab.hello("a");
    const view before = lab.seen();
    lab.control(control_verb::trip, 0);
    EXPECT_EQ(lab.error, errc::invalid);
    lab.control(control_verb::trip, 1, -1ms);
    EXPECT_EQ(lab.error, errc::invalid);
    lab.control(control_verb::trip, 1, 24h * 32);
    EXPECT_EQ(lab.error, errc::invalid);
    control_request escape;
    escape.id = 1;
    escape.verb = control_verb::trip;
    escape.reason = "\x1b[2J";
    EXPECT_EQ(apply(lab.r, escape, lab.now, lab.did, lab.error).era, 0U);
    EXPECT_EQ(lab.error, errc::invalid);
    lab.control(control_verb::set, 1, 0ms, "quorum=0");
    EXPECT_EQ(lab.error, errc::invalid);
    lab.control(control_verb::set, 1, 0ms, "");
    EXPECT_EQ(lab.error, errc::invalid);
    EXPECT_EQ(lab.seen().era, before.era);
    EXPECT_EQ(lab.seen().rev, before.rev);
    EXPECT_EQ(lab.control(control_verb::trip, 1).state, open);
    EXPECT_FALSE(lab.error);
}

}  // namespace
}  // namespace trinco::detail
