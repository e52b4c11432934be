// look of a breaker store: what strict mode reads before a call. It changes nothing, and says when
// the sender has to exchange before it relies on anything.
#include "tests/contract/breaker_store_suite.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

constexpr const char* payments = "payments";

// Two members who have told everything and were told everything.
void agree(member& a, member& b) {
    for (int i = 0; i < 2; ++i) {
        a.report(payments, {});
        b.report(payments, {});
    }
}

TEST_P(BreakerStoreSuite, ALookShowsTheFleetsView) {
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    auto seen = a.look(payments);
    EXPECT_FALSE(seen.exchange_first);
    EXPECT_EQ(seen.fleet.state, breaker_state::closed);
    EXPECT_EQ(seen.fleet.options_stamp, a.known(payments).options_stamp);
    const view after = b.control(order(control_verb::trip, payments, 1, 2s)).value;
    fixture().pass(500ms);
    seen = a.look(payments);
    EXPECT_FALSE(seen.exchange_first) << "to be told is enough";
    EXPECT_EQ(seen.fleet.era, after.era);
    EXPECT_EQ(seen.fleet.state, breaker_state::open);
    EXPECT_EQ(seen.fleet.reason, "drill (by ann)");
    expect_about(seen.fleet.remaining, 1'500ms);
    const view held = b.control(order(control_verb::force_open, payments, 2, 1s)).value;
    fixture().pass(200ms);
    seen = a.look(payments);
    EXPECT_EQ(seen.fleet.rev, held.rev);
    EXPECT_EQ(seen.fleet.over, override_kind::forced_open);
    expect_about(seen.fleet.over_remaining, 800ms);
    EXPECT_FALSE(seen.exchange_first);
}

// What an operator would see, but for the time that passes.
void expect_the_same(const report& x, const report& y) {
    EXPECT_EQ(x.now.fleet.era, y.now.fleet.era);
    EXPECT_EQ(x.now.fleet.rev, y.now.fleet.rev);
    EXPECT_EQ(x.now.fleet.state, y.now.fleet.state);
    EXPECT_EQ(x.now.live, y.now.live);
    EXPECT_EQ(x.now.window, y.now.window);
    EXPECT_EQ(x.now.probes_left, y.now.probes_left);
    EXPECT_EQ(x.totals, y.totals);
    EXPECT_EQ(x.options, y.options);
    ASSERT_EQ(x.shares.size(), y.shares.size());
    for (std::size_t i = 0; i < x.shares.size(); ++i) {
        EXPECT_EQ(x.shares[i].instance, y.shares[i].instance);
    }
}

TEST_P(BreakerStoreSuite, ALookChangesNothingAndTellsNobody) {
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    a.report(payments, calls(3, 1));
    member& watcher = add("w");
    watcher.subscribe();
    fixture().pass(50ms);
    watcher.heard.clear();
    const auto before = watcher.inspect(payments).value.rows.at(0);
    member& stranger = add("c");
    for (int i = 0; i < 20; ++i) {
        (void)a.look(payments);
        (void)stranger.look(payments);
    }
    fixture().pass(50ms);
    const auto after = watcher.inspect(payments).value.rows.at(0);
    expect_the_same(before, after);
    EXPECT_TRUE(watcher.heard.empty());
    // Neither of them was heard by it.
    for (const share& s : after.shares) EXPECT_GE(s.heard, fixture().is_exact() ? 100ms : 50ms);
    // What it read was not counted as news.
    EXPECT_TRUE(a.report(payments, calls(1, 0)).counted);
}

TEST_P(BreakerStoreSuite, ALookMovesNoState) {
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    const view opened = b.control(order(control_verb::trip, payments, 1, 200ms)).value;
    fixture().pass(400ms);
    for (int i = 0; i < 3; ++i) {
        const glance seen = a.look(payments);
        EXPECT_EQ(seen.fleet.era, opened.era);
        EXPECT_EQ(seen.fleet.state, breaker_state::open) << "a probe makes it half-open";
        EXPECT_EQ(seen.fleet.remaining, 0ms);
    }
}

TEST_P(BreakerStoreSuite, ALookMakesNoBreaker) {
    member& a = add("a");
    const glance seen = a.look("nobody");
    EXPECT_TRUE(seen.exchange_first);
    EXPECT_EQ(seen.fleet.era, 0U);
    EXPECT_EQ(seen.fleet.state, breaker_state::closed);
    EXPECT_TRUE(a.inspect("").value.rows.empty());
}

TEST_P(BreakerStoreSuite, ALookKeepsNothingAlive) {
    const auto kept = fixture().can().breakers_kept;
    if (!kept || !fixture().is_exact()) GTEST_SKIP() << "needs half a minute of virtual time";
    member& a = add("a");
    a.report(payments, {});
    for (int i = 0; i < 25; ++i) {
        fixture().pass(1s);
        (void)a.look(payments);
    }
    EXPECT_EQ(kept(), 0U) << "key_ttl is 20 s";
    EXPECT_TRUE(a.look(payments).exchange_first);
}

TEST_P(BreakerStoreSuite, WhoKnowsMoreThanTheStoreExchangesFirst) {
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    look_request q = a.looking(payments);
    EXPECT_FALSE(a.look(q).value.exchange_first);
    ++q.mine.rev;
    EXPECT_TRUE(a.look(q).value.exchange_first);
    q.mine.rev = 0;
    q.mine.era += 1'000;
    EXPECT_TRUE(a.look(q).value.exchange_first);
    const view after = b.control(order(control_verb::trip, payments, 1)).value;
    q.mine.era = after.era - 1;
    q.mine.rev = 7;
    const auto seen = a.look(q);
    EXPECT_FALSE(seen.value.exchange_first) << "a greater rev of an older era is no more";
    EXPECT_EQ(seen.value.fleet.era, after.era);
}

TEST_P(BreakerStoreSuite, WhoHasOtherOptionsExchangesFirst) {
    member& a = add("a");
    member& b = add("b");
    member& fresh = add("c");
    EXPECT_TRUE(fresh.look(payments).exchange_first);
    agree(a, b);
    look_request q = a.looking(payments);
    const auto stamp = q.mine.options_stamp;
    ASSERT_NE(stamp, 0U);
    q.mine.options_stamp = 0;
    EXPECT_TRUE(a.look(q).value.exchange_first) << "it would be told the governing ones";
    q.mine.options_stamp = stamp - 2;
    EXPECT_TRUE(a.look(q).value.exchange_first);
    q.mine.options_stamp = stamp + 2;
    EXPECT_TRUE(a.look(q).value.exchange_first) << "it would be asked for them";
    control_request set = order(control_verb::set, payments, 3);
    set.options = "quorum=3";
    EXPECT_FALSE(b.control(set).error);
    EXPECT_TRUE(a.look(payments).exchange_first);
    a.report(payments, {});
    EXPECT_FALSE(a.look(payments).exchange_first);
}

TEST_P(BreakerStoreSuite, WhatHasRunOutIsEndedByAnExchangeFirst) {
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    EXPECT_FALSE(b.control(order(control_verb::force_open, payments, 1, 200ms)).error);
    EXPECT_EQ(a.look(payments).fleet.over, override_kind::forced_open);
    fixture().pass(400ms);
    const glance seen = a.look(payments);
    EXPECT_TRUE(seen.exchange_first);
    EXPECT_EQ(seen.fleet.over, override_kind::none);
    a.report(payments, {});
    EXPECT_FALSE(a.look(payments).exchange_first);
    control_request set = order(control_verb::set, payments, 2, 200ms);
    set.options = "quorum=3";
    EXPECT_FALSE(b.control(set).error);
    a.report(payments, {});
    EXPECT_FALSE(a.look(payments).exchange_first);
    fixture().pass(400ms);
    EXPECT_TRUE(a.look(payments).exchange_first);
    a.report(payments, {});
    EXPECT_FALSE(a.look(payments).exchange_first);
}

// A window that is too young to open asks all to flush, and the first exchange 20 ms later decides.
TEST_P(BreakerStoreSuite, ASuspicionThatIsDueIsDecidedByAnExchangeFirst) {
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    a.report(payments, calls(0, 10));
    b.report(payments, calls(0, 10));
    ASSERT_EQ(b.known(payments).state, breaker_state::closed);
    fixture().pass(100ms);
    const glance seen = a.look(payments);
    EXPECT_EQ(seen.fleet.state, breaker_state::closed);
    EXPECT_TRUE(seen.exchange_first);
    a.report(payments, {});
    const glance after = a.look(payments);
    EXPECT_FALSE(after.exchange_first);
    EXPECT_EQ(after.fleet.state, breaker_state::open);
}

TEST_P(BreakerStoreSuite, AStoreThatLostItsDataAsksForAnExchangeFirst) {
    const auto lose = fixture().can().lose_data;
    if (!lose) GTEST_SKIP() << "loses nothing";
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    const view opened = b.control(order(control_verb::trip, payments, 1)).value;
    a.report(payments, {});
    EXPECT_FALSE(a.look(payments).exchange_first);
    lose();
    EXPECT_TRUE(a.look(payments).exchange_first);
    a.report(payments, {});
    EXPECT_EQ(a.look(payments).fleet.era, opened.era);
}

TEST_P(BreakerStoreSuite, ABadLookIsRefusedAndAnImpossibleViewKnowsNothing) {
    member& a = add("a");
    a.report(payments, {});
    for (const std::string& name :
         {std::string("no spaces"), std::string(129, 'x'), std::string()}) {
        look_request q;
        q.breaker = name;
        EXPECT_EQ(a.look(q).error, errc::invalid) << name;
    }
    look_request q = a.looking(payments);
    q.mine.era = ~std::uint64_t{0};
    const auto seen = a.look(q);
    EXPECT_FALSE(seen.error);
    EXPECT_TRUE(seen.value.exchange_first);
}

TEST_P(BreakerStoreSuite, ALookSeesWhatWasAnsweredBefore) {
    member& a = add("a");
    member& b = add("b");
    agree(a, b);
    for (std::uint64_t i = 1; i <= 10; ++i) {
        const auto verb = i % 2 == 1 ? control_verb::trip : control_verb::reset;
        const view after = b.control(order(verb, payments, i)).value;
        EXPECT_EQ(a.look(payments).fleet.era, after.era);
    }
}

}  // namespace
}  // namespace trinco::detail::test
