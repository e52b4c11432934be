// probe, control and subscribe of a breaker store.
#include "tests/contract/breaker_store_suite.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

// ---- probes -------------------------------------------------------------------------------------

TEST_P(BreakerStoreSuite, AProbeTooEarlyIsRefusedWithTheTimeThatIsLeft) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    const view before = a.report("payments", {}).fleet;
    const probe_reply r = a.take("payments", 1);
    EXPECT_FALSE(r.granted);
    expect_about(r.retry_after, before.remaining);
    EXPECT_EQ(r.fleet.era, before.era);
    EXPECT_EQ(r.fleet.rev, before.rev);
    EXPECT_EQ(r.live, 2U);
}

TEST_P(BreakerStoreSuite, ProbesAreLeasedUpToTheirNumberAndCloseTheBreaker) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    fixture().pass(510ms);
    for (std::uint64_t t : {1U, 2U}) EXPECT_TRUE(a.take("payments", t).granted);
    EXPECT_EQ(a.known("payments").state, breaker_state::half_open);
    EXPECT_FALSE(a.take("payments", 3).granted);  // its voter's share
    for (std::uint64_t t : {4U, 5U}) EXPECT_TRUE(b.take("payments", t).granted);
    const probe_reply full = b.take("payments", 6);
    EXPECT_FALSE(full.granted);
    EXPECT_GE(full.retry_after, 10ms);
    for (std::uint64_t t : {1U, 2U}) {
        EXPECT_TRUE(a.step("payments", probe_step::success, t).granted);
    }
    for (std::uint64_t t : {4U, 5U}) {
        EXPECT_TRUE(b.step("payments", probe_step::success, t).granted);
    }
    EXPECT_EQ(b.known("payments").state, breaker_state::closed);
    EXPECT_EQ(a.report("payments", {}).fleet.state, breaker_state::closed);
}

TEST_P(BreakerStoreSuite, TakeIsIdempotentInItsToken) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    fixture().pass(510ms);
    const probe_request p = a.asking("payments", 1);
    EXPECT_TRUE(a.probe(p).value.granted);
    const view after = a.known("payments");
    const probe_reply again = a.probe(p).value;
    EXPECT_TRUE(again.granted);
    EXPECT_EQ(again.fleet.rev, after.rev);
    EXPECT_EQ(a.report("payments", {}).probes_left, 3);
}

TEST_P(BreakerStoreSuite, ASettlementIsRepeatableAndCountsOnce) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    fixture().pass(510ms);
    a.take("payments", 1);
    const probe_request done = a.asking("payments", 1, probe_step::success);
    EXPECT_TRUE(a.probe(done).value.granted);
    EXPECT_TRUE(a.probe(done).value.granted);
    EXPECT_EQ(a.report("payments", {}).probes_left, 3);
    EXPECT_FALSE(a.take("payments", 1).granted);  // the take, late and once more
    EXPECT_FALSE(a.step("payments", probe_step::success, 99).granted);
}

TEST_P(BreakerStoreSuite, GiveBackFreesTheSlotAtOnce) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    fixture().pass(510ms);
    for (std::uint64_t t : {1U, 2U}) ASSERT_TRUE(a.take("payments", t).granted);
    EXPECT_FALSE(a.take("payments", 3).granted);
    EXPECT_TRUE(a.step("payments", probe_step::give_back, 1).granted);
    EXPECT_TRUE(a.take("payments", 4).granted);
}

TEST_P(BreakerStoreSuite, FailedProbesOfAQuorumOpenAgain) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    fixture().pass(510ms);
    a.take("payments", 1);
    b.take("payments", 2);
    a.step("payments", probe_step::failure, 1);
    b.step("payments", probe_step::failure, 2);
    const view after = b.known("payments");
    EXPECT_EQ(after.state, breaker_state::open);
    EXPECT_EQ(after.backoff_level, 1);
    expect_about(after.remaining, 1s);
}

TEST_P(BreakerStoreSuite, AVoterThatFailedAloneIsSetAsideAndToldSo) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    fixture().pass(510ms);
    for (std::uint64_t t : {1U, 2U}) a.take("payments", t);
    for (std::uint64_t t : {1U, 2U}) a.step("payments", probe_step::failure, t);
    EXPECT_TRUE(a.report("payments", {}).set_aside);
    EXPECT_TRUE(a.take("payments", 3).set_aside);
    EXPECT_FALSE(b.report("payments", {}).set_aside);
    for (std::uint64_t t = 10; t < 14; ++t) {
        ASSERT_TRUE(b.take("payments", t).granted);
        b.step("payments", probe_step::success, t);
    }
    EXPECT_EQ(b.known("payments").state, breaker_state::closed);
    EXPECT_TRUE(a.report("payments", {}).set_aside);
}

TEST_P(BreakerStoreSuite, AnOverdueLeaseIsReclaimedLater) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    fixture().pass(510ms);
    for (std::uint64_t t : {1U, 2U}) ASSERT_TRUE(a.take("payments", t).granted);
    for (std::uint64_t t : {3U, 4U}) ASSERT_TRUE(b.take("payments", t).granted);
    b.step("payments", probe_step::success, 3);
    fixture().pass(1'200ms);
    EXPECT_TRUE(b.take("payments", 5).granted);
    EXPECT_FALSE(a.step("payments", probe_step::success, 1).granted);
}

TEST_P(BreakerStoreSuite, ARefusedProbeMakesNoRecord) {
    member& a = add("a");
    EXPECT_FALSE(a.take("nobody", 1).granted);
    EXPECT_EQ(a.step("nobody", probe_step::success, 1).fleet.era, 0U);
    EXPECT_TRUE(a.inspect("").value.rows.empty());
}

TEST_P(BreakerStoreSuite, ARefusedProbeProlongsNothing) {
    const auto faults = fixture().can();
    if (!faults.breakers_kept) GTEST_SKIP() << "its keys cannot be counted";
    add("a").report("payments", calls(1, 0));
    member& stranger = add("c");
    for (int i = 0; i < 13; ++i) {
        EXPECT_EQ(faults.breakers_kept(), i < 12 ? 1U : 0U) << i;
        fixture().pass(1'700ms);
        stranger.forget();  // a view would bring the record back
        EXPECT_FALSE(stranger.take("payments", 1).granted);
        EXPECT_FALSE(stranger.step("payments", probe_step::success, 2).granted);
    }
    EXPECT_EQ(faults.breakers_kept(), 0U);
}

TEST_P(BreakerStoreSuite, AProbeWithoutATokenOrWithABadNameIsInvalid) {
    member& a = add("a");
    EXPECT_EQ(a.probe(a.asking("payments", 0)).error, errc::invalid);
    EXPECT_EQ(a.probe(a.asking("pay ments", 1)).error, errc::invalid);
    EXPECT_EQ(a.probe(a.asking("", 1)).error, errc::invalid);
}

// ---- controls -----------------------------------------------------------------------------------

TEST_P(BreakerStoreSuite, AControlIsCarriedOutOnceAndAttributed) {
    member& a = add("a");
    member& b = add("b");
    a.report("payments", {});
    const auto first = a.control(order(control_verb::trip, "payments", 5, 2s));
    ASSERT_FALSE(first.error) << first.error.message();
    EXPECT_EQ(first.value.state, breaker_state::open);
    expect_about(first.value.remaining, 2s);
    EXPECT_NE(first.value.reason.find("ann"), std::string::npos);
    EXPECT_NE(first.value.reason.find("drill"), std::string::npos);
    const auto reset = b.control(order(control_verb::reset, "payments", 6));
    EXPECT_EQ(reset.value.state, breaker_state::closed);
    EXPECT_GT(reset.value.era, first.value.era);
    const auto again = b.control(order(control_verb::trip, "payments", 5, 2s));
    EXPECT_FALSE(again.error);
    EXPECT_EQ(again.value.era, reset.value.era);
    EXPECT_EQ(again.value.state, breaker_state::closed);
}

TEST_P(BreakerStoreSuite, OverridesComeWithAnExpiryAndGo) {
    member& a = add("a");
    const auto forced = a.control(order(control_verb::force_open, "payments", 1, 400ms));
    EXPECT_EQ(forced.value.over, override_kind::forced_open);
    expect_about(forced.value.over_remaining, 400ms);
    fixture().pass(410ms);
    const view after = a.report("payments", {}).fleet;
    EXPECT_EQ(after.over, override_kind::none);
    EXPECT_TRUE(after.newer_than(forced.value));
    EXPECT_EQ(a.control(order(control_verb::disable, "payments", 2)).value.over,
              override_kind::disabled);
    EXPECT_EQ(a.control(order(control_verb::observe, "payments", 3)).value.over,
              override_kind::observing);
    EXPECT_EQ(a.control(order(control_verb::resume, "payments", 4)).value.over,
              override_kind::none);
}

TEST_P(BreakerStoreSuite, OptionsSetByAnOperatorBeatAllUntilUnset) {
    member& a = add("a");
    member& b = add("b");
    a.report("payments", {});
    control_request c = order(control_verb::set, "payments", 1);
    c.options = "quorum=7";
    const auto set = a.control(c);
    ASSERT_FALSE(set.error) << set.error.message();
    policy expected = suite_policy();
    expected.quorum = 7;
    const verdict v = b.report("payments", {});
    EXPECT_EQ(v.options, to_text(expected));
    EXPECT_EQ(v.fleet.options_stamp, set.value.options_stamp);
    EXPECT_TRUE(a.inspect("").value.rows.at(0).options_set);
    a.control(order(control_verb::unset, "payments", 2));
    EXPECT_EQ(b.report("payments", {}).options, to_text(suite_policy()));
    EXPECT_FALSE(a.inspect("").value.rows.at(0).options_set);
    c.id = 3;
    c.options = "quorum=0";
    EXPECT_EQ(a.control(c).error, errc::invalid);
}

TEST_P(BreakerStoreSuite, AControlOutOfBoundsIsInvalid) {
    member& a = add("a");
    EXPECT_EQ(a.control(order(control_verb::trip, "pay ments", 1)).error, errc::invalid);
    EXPECT_EQ(a.control(order(control_verb::trip, "payments", 0)).error, errc::invalid);
    EXPECT_EQ(a.control(order(control_verb::trip, "payments", 1, -1ms)).error, errc::invalid);
    control_request c = order(control_verb::trip, "payments", 1);
    c.reason = std::string(max_reason + 1, 'x');
    EXPECT_EQ(a.control(c).error, errc::invalid);
    c.reason.clear();
    c.who = std::string(max_who + 1, 'x');
    EXPECT_EQ(a.control(c).error, errc::invalid);
    EXPECT_TRUE(a.inspect("").value.rows.empty());
}

// ---- notices ------------------------------------------------------------------------------------

TEST_P(BreakerStoreSuite, ChangesAreToldInTheirOrder) {
    member& a = add("a");
    member& b = add("b");
    b.subscribe();
    fixture().pass(100ms);
    EXPECT_TRUE(b.heard.empty()) << "begins with no notice";
    a.report("payments", {});
    std::uint64_t id = 0;
    for (auto verb : {control_verb::trip, control_verb::force_open, control_verb::resume,
                      control_verb::reset, control_verb::disable}) {
        a.control(order(verb, "payments", ++id));
    }
    const view last = a.known("payments");
    const auto told = [&] { return !b.heard.empty() && !last.newer_than(b.heard.back().fleet); };
    ASSERT_TRUE(fixture().run_until(told, 2s));
    view before;
    for (const notice& n : b.heard) {
        EXPECT_EQ(n.kind, notice::kind_t::changed);
        EXPECT_EQ(n.breaker, "payments");
        EXPECT_TRUE(n.fleet.newer_than(before));
        before = n.fleet;
    }
    EXPECT_EQ(before.era, last.era);
    EXPECT_EQ(before.over, override_kind::disabled);
}

TEST_P(BreakerStoreSuite, CountsAndRefusalsAreToldToNobody) {
    member& a = add("a");
    member& b = add("b");
    a.report("payments", calls(1, 0));
    b.report("payments", calls(1, 0));
    fixture().pass(100ms);  // what the beginning told may be under way yet, from node to node
    b.subscribe();
    for (int i = 0; i < 5; ++i) a.report("payments", calls(2, 0));
    a.take("payments", 1);
    fixture().pass(100ms);
    EXPECT_TRUE(b.heard.empty());
}

TEST_P(BreakerStoreSuite, AColdCrossingAsksAllToFlush) {
    member& a = add("a");
    member& b = add("b");
    b.report("payments", {});
    a.report("payments", {});
    b.subscribe();
    a.subscribe();
    a.report("payments", calls(0, 20));
    b.report("payments", calls(0, 20));
    const auto flushed = [](const member& m) {
        for (const notice& n : m.heard) {
            if (n.kind == notice::kind_t::flush && n.breaker == "payments") return true;
        }
        return false;
    };
    EXPECT_TRUE(fixture().run_until([&] { return flushed(a) && flushed(b); }, 2s));
    fixture().pass(25ms);
    EXPECT_EQ(a.report("payments", calls(0, 1)).fleet.state, breaker_state::open);
}

TEST_P(BreakerStoreSuite, ASubscriptionEndsWithItsOp) {
    member& a = add("a");
    member& b = add("b");
    b.subscribe();
    a.control(order(control_verb::trip, "payments", 1));
    ASSERT_TRUE(fixture().run_until([&] { return !b.heard.empty(); }, 2s));
    b.unsubscribe();
    const auto before = b.heard.size();
    a.control(order(control_verb::reset, "payments", 2));
    fixture().pass(100ms);
    EXPECT_EQ(b.heard.size(), before);
}

TEST_P(BreakerStoreSuite, ASubscriptionMayEndItselfInANotice) {
    member& a = add("a");
    member& b = add("b");
    op subscription;
    int heard = 0;
    subscription = b.store().subscribe([&](const notice&) {
        ++heard;
        subscription.cancel();
    });
    a.control(order(control_verb::trip, "payments", 1));
    a.control(order(control_verb::reset, "payments", 2));
    fixture().pass(100ms);
    EXPECT_EQ(heard, 1);
}

TEST_P(BreakerStoreSuite, AnotherLifeOfTheServerIsAnnouncedAndItsEarlierNoticesAreOver) {
    const auto faults = fixture().can();
    if (!faults.lose_data) GTEST_SKIP() << "never loses data";
    member& a = add("a");
    a.report("payments", {});
    a.subscribe();
    faults.lose_data();
    const auto told = [&] {
        return !a.heard.empty() && a.heard.back().kind == notice::kind_t::new_server;
    };
    EXPECT_TRUE(fixture().run_until(told, 2s));
}

TEST_P(BreakerStoreSuite, AnInterruptionIsAnnouncedAsOneGap) {
    const auto faults = fixture().can();
    if (!faults.miss_messages) GTEST_SKIP() << "never misses a message";
    member& a = add("a");
    a.subscribe();
    faults.miss_messages();
    const auto told = [&] { return !a.heard.empty(); };
    EXPECT_TRUE(fixture().run_until(told, 2s));
    fixture().pass(50ms);
    ASSERT_EQ(a.heard.size(), 1U);
    EXPECT_EQ(a.heard[0].kind, notice::kind_t::gap);
    EXPECT_TRUE(a.heard[0].breaker.empty());
}

}  // namespace
}  // namespace trinco::detail::test
