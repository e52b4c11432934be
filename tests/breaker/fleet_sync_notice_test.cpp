// Notices of the store: changed, flush, gap, new_server.
#include <gtest/gtest.h>

#include "fleet_sync_fixture.hpp"

namespace {

using namespace trinco::detail;

struct FleetSyncNotice : ::testing::Test {
    FleetSyncNotice() {
        m = w.join("b", port);
        w.run(150ms);
        w.store.exchanges.clear();
    }
    sync_world w;
    remembering_port port;
    std::unique_ptr<fleet_sync::membership> m;
};

TEST_F(FleetSyncNotice, NewerViewIsAdoptedAtOnceAndCountsFromItsArrival) {
    auto v = view_of_era(500, breaker_state::open);
    v.remaining = 10s;
    w.run(77ms);
    w.store.notify({notice::kind_t::changed, "b", v});
    ASSERT_EQ(port.told.size(), 2U);
    EXPECT_EQ(port.told[1].fleet.state, breaker_state::open);
    EXPECT_EQ(port.told[1].as_of, w.now());
}

TEST_F(FleetSyncNotice, AForetoldOpeningGoesToItsBreakerWhenItIsNewer) {
    w.store.notify({notice::kind_t::changed, "b", view_of_era(500, breaker_state::closed)});
    port.story.clear();
    EXPECT_FALSE(w.store.foretold({"other", 501, 1s, ""}));
    EXPECT_FALSE(w.store.foretold({"b", 500, 1s, ""}));
    EXPECT_EQ(port.story, "");
    EXPECT_TRUE(w.store.foretold({"b", 501, 1s, ""}));
    EXPECT_EQ(port.story, "o");
    m.reset();
    EXPECT_FALSE(w.store.foretold({"b", 502, 1s, ""}));
    w.sync.reset();
    EXPECT_FALSE(w.store.foretold);
}

TEST_F(FleetSyncNotice, NothingIsForetoldToABreakerThatDecidesAlone) {
    w.store.silent = true;
    port.add(1, 0);
    w.run(3s);
    ASSERT_TRUE(m->degraded());
    EXPECT_FALSE(w.store.foretold({"b", 500, 1s, ""}));
}

TEST_F(FleetSyncNotice, OlderOrEqualViewChangesNothing) {
    w.store.notify({notice::kind_t::changed, "b", view_of_era(500, breaker_state::open, 4)});
    w.store.notify({notice::kind_t::changed, "b", view_of_era(500, breaker_state::open, 3)});
    w.store.notify({notice::kind_t::changed, "b", view_of_era(499, breaker_state::closed, 9)});
    EXPECT_EQ(port.told.size(), 2U);
    EXPECT_EQ(m->terms().fleet.rev, 4U);
}

TEST_F(FleetSyncNotice, StrangersAreIgnored) {
    w.store.notify({notice::kind_t::changed, "other", view_of_era(500, breaker_state::open)});
    w.store.notify({notice::kind_t::flush, "other", {}});
    w.run(1s);
    EXPECT_EQ(port.told.size(), 1U);
    EXPECT_TRUE(w.store.exchanges.empty());
}

TEST_F(FleetSyncNotice, ViewSentHasWhatIsLeftOfItsTime) {
    auto v = view_of_era(500, breaker_state::open);
    v.remaining = 10s;
    v.over = override_kind::observing;
    v.over_remaining = 1s;
    w.store.notify({notice::kind_t::changed, "b", v});
    w.run(4s);
    m->wake(false);
    w.run(101ms);
    const auto sent = w.store.sent_of("b").back().mine;
    EXPECT_LE(sent.remaining, 6s);
    EXPECT_GE(sent.remaining, 5890ms);
    EXPECT_EQ(sent.over_remaining, 0ms);
    EXPECT_EQ(sent.over, override_kind::observing);
}

TEST_F(FleetSyncNotice, AnswerOvertakenByANoticeDoesNotTakeItBack) {
    w.store.delay = 20ms;
    port.add(1, 0);
    m->wake(true);
    w.run(5ms);
    w.store.notify({notice::kind_t::changed, "b", view_of_era(500, breaker_state::open)});
    w.run(30ms);
    EXPECT_EQ(port.told.back().fleet.era, 500U);
    EXPECT_EQ(m->terms().fleet.state, breaker_state::open);
}

TEST_F(FleetSyncNotice, FlushSendsWhatThereIsAndComesOnceMore) {
    port.add(2, 1);
    const auto start = w.now();
    w.store.notify({notice::kind_t::flush, "b", {}});
    w.run(1ms);
    ASSERT_EQ(w.store.exchanges.size(), 1U);
    EXPECT_EQ(w.store.sent_of("b")[0].slices.at(0).n.failure, 1U);
    w.run(150ms);
    ASSERT_EQ(w.store.exchanges.size(), 2U);
    EXPECT_GE(w.store.exchanges[1].at - start, 20ms);
    EXPECT_LE(w.store.exchanges[1].at - start, 120ms);
    w.run(5s);
    EXPECT_EQ(w.store.exchanges.size(), 2U);
}

TEST_F(FleetSyncNotice, FlushWithoutNewsSendsNothingAtOnceButComes) {
    w.store.notify({notice::kind_t::flush, "b", {}});
    w.run(19ms);
    EXPECT_TRUE(w.store.exchanges.empty());
    w.run(120ms);
    EXPECT_EQ(w.store.exchanges.size(), 1U);
}

TEST_F(FleetSyncNotice, ChangeAfterAFlushMakesTheSecondVisitNeedless) {
    w.store.notify({notice::kind_t::flush, "b", {}});
    w.run(10ms);
    w.store.notify({notice::kind_t::changed, "b", view_of_era(500, breaker_state::open)});
    w.store.truth["b"] = view_of_era(500, breaker_state::open);
    w.run(5s);
    EXPECT_TRUE(w.store.exchanges.empty());
}

TEST_F(FleetSyncNotice, GapExchangesEverythingWithinTheJitter) {
    for (const auto kind : {notice::kind_t::gap, notice::kind_t::new_server}) {
        w.store.exchanges.clear();
        w.store.notify({kind, "", {}});
        w.run(101ms);
        EXPECT_EQ(w.store.exchanges.size(), 1U);
    }
    EXPECT_EQ(w.sync->report(w.now()).gaps, 1U);
    EXPECT_EQ(w.sync->report(w.now()).new_servers, 1U);
}

TEST_F(FleetSyncNotice, JitterAfterAGapIsSpread) {
    std::vector<boot_clock::duration> waits;
    for (int i = 0; i < 20; ++i) {
        w.store.exchanges.clear();
        const auto start = w.now();
        w.store.notify({notice::kind_t::gap, "", {}});
        w.run(200ms);
        ASSERT_EQ(w.store.exchanges.size(), 1U);
        waits.push_back(w.store.exchanges[0].at - start);
    }
    std::sort(waits.begin(), waits.end());
    EXPECT_LT(waits.front(), 30ms);
    EXPECT_GT(waits.back(), 70ms);
}

TEST_F(FleetSyncNotice, GapDuringAnExchangeIsFollowedByAnother) {
    w.store.delay = 90ms;
    port.add(1, 0);
    m->wake(true);
    w.run(1ms);
    w.store.notify({notice::kind_t::gap, "", {}});
    w.run(300ms);
    EXPECT_EQ(w.store.exchanges.size(), 2U);
}

TEST_F(FleetSyncNotice, OptionsKnownByTheirStampOnlyAreAskedFor) {
    auto v = view_of_era(500, breaker_state::closed);
    v.options_stamp = 4242;
    w.store.truth["b"] = v;
    auto others = w.options;
    others.minimum_calls = 44;
    w.store.on_news = [&](const news& n) {
        auto verdict = w.store.plain(n);
        if (n.mine.options_stamp != 4242) verdict.options = to_text(policy_of(others));
        return verdict;
    };
    w.store.notify({notice::kind_t::changed, "b", v});
    w.run(150ms);
    EXPECT_NE(w.store.sent_of("b").at(0).mine.options_stamp, 4242U) << "not pretended to be known";
    EXPECT_EQ(port.told.back().rules.minimum_calls, 44U);
}

}  // namespace
