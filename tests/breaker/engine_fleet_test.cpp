// One breaker as a member of a fleet: a store whose answers the test writes, on virtual time.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine_fleet_fixture.hpp"

namespace trinco::detail {
namespace {

TEST(EngineFleet, AnOpenFleetRefusesEverywhere) {
    fleet_engine f;
    f.publish(open_view(100, 5s));
    const auto p = f.core->acquire();
    EXPECT_FALSE(p);
    EXPECT_EQ(p.refusal().by, refused_by::fleet_breaker);
    EXPECT_GT(p.refusal().retry_after, 4900ms);
    EXPECT_LE(p.refusal().retry_after, 5s);
    const auto s = f.core->snapshot();
    EXPECT_EQ(s.state, breaker_state::open);
    EXPECT_EQ(s.fleet_state, breaker_state::open);
    EXPECT_EQ(s.local_state, breaker_state::closed);
    EXPECT_EQ(f.story, std::vector<std::string>{"closed>open"});
}

TEST(EngineFleet, OneCallerAsksForAProbe) {
    fleet_engine f;
    f.publish(open_view(100, 100ms));
    f.run(100ms);
    std::unique_ptr<permit> one;
    f.core->acquire_async([&](permit p) { one = std::make_unique<permit>(std::move(p)); });
    EXPECT_FALSE(one);
    const auto two = f.acquire(0ms);
    ASSERT_TRUE(two);
    EXPECT_EQ(two->refusal().reason, refusal_reason::probe_pending);
    f.run(5ms);
    ASSERT_TRUE(one);
    EXPECT_TRUE(one->is_probe());
    EXPECT_EQ(f.core->snapshot().probes_in_flight, 1U);
    one->success();
    f.run(5ms);
    ASSERT_EQ(f.store.probes.size(), 2U);
    EXPECT_EQ(f.store.probes[0].request.step, probe_step::take);
    EXPECT_EQ(f.store.probes[1].request.step, probe_step::success);
    EXPECT_EQ(f.store.probes[1].request.token, f.store.probes[0].request.token);
    EXPECT_EQ(f.core->snapshot().probes_in_flight, 0U);
}

TEST(EngineFleet, ADroppedProbeIsGivenBack) {
    fleet_engine f;
    f.publish(open_view(100, 100ms));
    f.run(100ms);
    f.acquire().reset();
    f.run(5ms);
    ASSERT_EQ(f.store.probes.size(), 2U);
    EXPECT_EQ(f.store.probes[1].request.step, probe_step::give_back);
}

TEST(EngineFleet, ARefusalOfTheStoreIsRemembered) {
    fleet_engine f;
    f.publish(open_view(100, 100ms));
    f.run(100ms);
    f.store.on_probe = [&](const probe_request&) {
        return probe_reply{
            .granted = false, .retry_after = 300ms, .fleet = f.store.truth["b"], .live = 1};
    };
    const auto first = f.acquire();
    EXPECT_EQ(first->refusal().reason, refusal_reason::no_probe_left);
    const auto second = f.acquire(0ms);
    EXPECT_EQ(second->refusal().reason, refusal_reason::no_probe_left);
    EXPECT_GT(second->refusal().retry_after, 200ms);
    EXPECT_EQ(f.store.probes.size(), 1U);
    f.run(300ms);
    (void)f.acquire();
    EXPECT_EQ(f.store.probes.size(), 2U);
}

// The answer says that the fleet has closed meanwhile: the caller goes through.
TEST(EngineFleet, ANewEraForgetsARefusal) {
    fleet_engine f;
    f.publish(open_view(100, 100ms));
    f.run(100ms);
    f.store.on_probe = [&](const probe_request& r) {
        return probe_reply{
            .granted = false, .retry_after = 10s, .fleet = f.store.truth[r.breaker], .live = 1};
    };
    EXPECT_EQ(f.acquire()->refusal().reason, refusal_reason::no_probe_left);
    f.store.on_probe = [&](const probe_request& r) {
        return probe_reply{
            .granted = true, .retry_after = {}, .fleet = f.store.truth[r.breaker], .live = 1};
    };
    f.publish(open_view(101, 50ms));
    f.run(100ms);
    const auto p = f.acquire();
    ASSERT_TRUE(p);
    EXPECT_TRUE(p->is_probe());
}

TEST(EngineFleet, ARefusalThatBringsNewsAdmits) {
    fleet_engine f;
    f.publish(open_view(100, 100ms));
    f.run(100ms);
    f.store.on_probe = [&](const probe_request&) {
        f.store.truth["b"] = view_of_era(200, breaker_state::closed);
        return probe_reply{
            .granted = false, .retry_after = 10ms, .fleet = f.store.truth["b"], .live = 1};
    };
    const auto p = f.acquire();
    ASSERT_TRUE(p && *p);
    EXPECT_FALSE(p->is_probe());
}

TEST(EngineFleet, WhileTheStoreIsSilentNobodyIsAdmittedAsAProbe) {
    fleet_engine f;
    f.publish(open_view(100, 100ms));
    f.run(100ms);
    f.store.silent = true;
    const auto p = f.acquire(150ms);
    ASSERT_TRUE(p);
    EXPECT_FALSE(*p);
    EXPECT_EQ(p->refusal().by, refused_by::fleet_breaker);
}

TEST(EngineFleet, OutcomesTravelOnceAndInFull) {
    fleet_engine f;
    f.calls(10, outcome::success);
    f.calls(3, outcome::failure);
    f.calls(2, outcome::ignored);
    f.run(500ms);
    f.calls(5, outcome::success);
    f.run(500ms);
    EXPECT_EQ(f.told(0), (counts{.success = 15, .failure = 3, .ignored = 2}));
    EXPECT_TRUE(f.told_stale().empty());
    EXPECT_FALSE(f.core->has_news());
}

// The local breaker opens by itself; what led to it is still the fleet's to judge.
TEST(EngineFleet, TheLocalBreakerOpensAloneAndItsCountsStillTravel) {
    fleet_engine f;
    auto late = f.core->acquire();
    f.calls(4, outcome::failure);
    const auto p = f.core->acquire();
    EXPECT_EQ(p.refusal().by, refused_by::local_breaker);
    EXPECT_EQ(f.core->snapshot().fleet_state, breaker_state::closed);
    late.success();  // of an older local era, of the fleet's own
    EXPECT_EQ(f.core->snapshot().stale, 1U);
    f.run(500ms);
    EXPECT_EQ(f.told(0), (counts{.success = 1, .failure = 4, .rejected = 1}));
    EXPECT_TRUE(f.told_stale().empty());
}

TEST(EngineFleet, OutcomesOfAnOlderFleetEraAreTotalsOnly) {
    fleet_engine f;
    auto late = f.core->acquire();
    f.calls(3, outcome::success);
    f.publish(open_view(100, 5s));
    late.failure();
    f.run(500ms);
    EXPECT_EQ(f.told(100), counts{});
    EXPECT_EQ(f.told_stale() + f.told(0), (counts{.success = 3, .failure = 1}));
    EXPECT_EQ(f.core->snapshot().stale, 1U);
}

TEST(EngineFleet, ComesBackCleanWhenTheFleetCloses) {
    fleet_engine f;
    f.calls(3, outcome::failure);
    f.publish(open_view(100, 1s));
    f.publish(view_of_era(200, breaker_state::closed));
    EXPECT_TRUE(f.core->snapshot().window.empty());
    f.calls(3, outcome::failure);
    EXPECT_EQ(f.core->state(), breaker_state::closed);
    f.calls(1, outcome::failure);
    EXPECT_EQ(f.core->state(), breaker_state::open);
}

TEST(EngineFleet, AnOwnOpeningGoesOnAfterTheFleets) {
    fleet_engine f;
    f.calls(4, outcome::failure);  // open for 1 s
    f.publish(open_view(100, 300ms));
    f.run(300ms);
    f.publish(view_of_era(200, breaker_state::closed));
    const auto p = f.core->acquire();
    EXPECT_EQ(p.refusal().by, refused_by::local_breaker);
    EXPECT_GT(p.refusal().retry_after, 600ms);
    EXPECT_LE(p.refusal().retry_after, 700ms);
}

// Its own breaker opened first, the fleet's a little later: both are over together.
TEST(EngineFleet, RecoversWithTheFleetWhereItOpenedFirst) {
    fleet_engine f;
    f.calls(4, outcome::failure);  // open for 1 s
    f.run(100ms);
    f.publish(open_view(100, 1s));
    f.run(1050ms);
    f.publish(view_of_era(200, breaker_state::closed));
    f.calls(2, outcome::success);  // its probes
    EXPECT_EQ(f.core->state(), breaker_state::closed);
}

TEST(EngineFleet, AResetOfAnOpenFleetEndsOwnOpeningsToo) {
    fleet_engine f;
    f.calls(4, outcome::failure);
    f.publish(open_view(100, 3s));
    auto closed = view_of_era(200, breaker_state::closed);
    closed.reason = "it is well (by ann)";
    f.publish(closed);
    EXPECT_EQ(f.core->state(), breaker_state::closed);
    EXPECT_TRUE(f.core->acquire());
}

TEST(EngineFleet, ARecoveryOfTheFleetDoesNot) {
    fleet_engine f;
    f.calls(4, outcome::failure);
    f.publish(open_view(100, 3s));
    auto closed = view_of_era(200, breaker_state::closed);
    closed.reason = recovered_reason;
    f.publish(closed);
    EXPECT_EQ(f.core->state(), breaker_state::open);
}

TEST(EngineFleet, AResetOfTheFleetResetsTheLocalBreakerToo) {
    fleet_engine f;
    f.calls(4, outcome::failure);
    EXPECT_EQ(f.core->state(), breaker_state::open);
    f.publish(view_of_era(100, breaker_state::closed));
    EXPECT_EQ(f.core->state(), breaker_state::closed);
    EXPECT_TRUE(f.core->acquire());
}

TEST(EngineFleet, TheEventOfALostStoreSaysWhy) {
    fleet_engine f;
    f.store.why_silent = "the server refused AUTH: WRONGPASS";
    f.store.silent = true;
    f.core->acquire().success();
    f.run(2s);
    EXPECT_EQ(f.story, std::vector<std::string>{"store_lost"});
    EXPECT_EQ(f.last_reason, "the server refused AUTH: WRONGPASS");
}

TEST(EngineFleet, StrictReadsBeforeEachCall) {
    auto o = calm();
    o.consistency = consistency::strict;
    fleet_engine f(o);
    f.run(1s);
    const auto before = f.sync->report(f.now()).looks;
    f.store.truth["b"] = open_view(100, 5s);  // nobody tells us
    const auto p = f.acquire();
    ASSERT_TRUE(p);
    EXPECT_EQ(p->refusal().by, refused_by::fleet_breaker);
    EXPECT_EQ(f.sync->report(f.now()).looks, before + 1);
}

TEST(EngineFleet, StrictFallsBackToTheLastKnownState) {
    auto o = calm();
    o.consistency = consistency::strict;
    fleet_engine f(o);
    f.store.silent = true;
    const auto p = f.acquire(150ms);
    ASSERT_TRUE(p);
    EXPECT_TRUE(*p);
}

TEST(EngineFleet, ObeysTheFleetsOverrides) {
    fleet_engine f;
    auto v = view_of_era(0, breaker_state::closed, 1);
    v.over = override_kind::forced_open;
    v.over_remaining = 10s;
    v.reason = "incident 7";
    f.publish(v);
    EXPECT_EQ(f.core->acquire().refusal().by, refused_by::operator_override);
    EXPECT_EQ(f.core->snapshot().over_reason, "incident 7");
    v.rev = 2;
    v.over = override_kind::none;
    v.reason = "";
    f.publish(v);
    EXPECT_TRUE(f.core->acquire());
    EXPECT_EQ(f.story, (std::vector<std::string>{"override_changed", "override_changed"}));
}

TEST(EngineFleet, TheFirstItHearsOfAFleetHasAReason) {
    fleet_engine f;
    fleet_port::terms t;
    t.fleet = open_view(100, 5s);
    t.fleet.reason = "drill (by ann)";
    t.as_of = f.now();
    t.rules = policy_of(calm());
    engine late("b", calm(), {});
    late.join_fleet(f.node, *f.sync);
    std::vector<std::string> said;
    late.events()->add([&](const event& e) { said.push_back(e.reason); });
    late.adopt(t);
    EXPECT_EQ(late.snapshot().reason, "drill (by ann)");
    EXPECT_EQ(said, (std::vector<std::string>{"drill (by ann)"}));
    late.leave_fleet();
}

// While there is an override a view has its reason only.
TEST(EngineFleet, AReasonThatAnOverrideHadCoveredIsLearntLater) {
    fleet_engine f;
    auto v = open_view(100, 5s);
    v.over = override_kind::observing;
    v.over_remaining = 10s;
    v.reason = "observing";
    f.publish(v);
    EXPECT_EQ(f.core->snapshot().over_reason, "observing");
    v.rev = 2;
    v.over = override_kind::none;
    v.reason = "drill (by ann)";
    f.publish(v);
    EXPECT_EQ(f.core->snapshot().reason, "drill (by ann)");
}

TEST(EngineFleet, AnOverrideEndsByItselfWhenNobodySaysSo) {
    fleet_engine f;
    auto v = view_of_era(0, breaker_state::closed, 1);
    v.over = override_kind::forced_open;
    v.over_remaining = 2s;
    f.publish(v);
    EXPECT_FALSE(f.core->acquire());
    f.store.silent = true;
    f.run(2s);
    EXPECT_TRUE(f.core->acquire());
}

TEST(EngineFleet, ManyFailuresAreUrgent) {
    breaker_options o;
    o.sync_interval = 1s;
    fleet_engine f(o);
    f.run(3s);
    const auto before = f.store.exchanges.size();
    f.calls(18, outcome::failure);  // near the minimum of twenty
    f.run(10ms);
    EXPECT_GT(f.store.exchanges.size(), before);
    EXPECT_EQ(f.told(0).failure, 18U);
}

TEST(EngineFleet, GoverningOptionsReplaceItsOwn) {
    fleet_engine f;
    auto rules = policy_of(calm());
    rules.minimum_calls = 8;
    rules.window = 20s;
    f.store.on_news = [&](const news& n) {
        auto v = f.store.plain(n);
        v.fleet.options_stamp = 900;
        v.options = to_text(rules);
        return v;
    };
    f.calls(3, outcome::failure);
    f.run(500ms);
    EXPECT_EQ(f.core->snapshot().minimum_calls, 8U);
    EXPECT_TRUE(f.core->snapshot().window.empty());  // another window starts empty
    EXPECT_EQ(f.core->snapshot().totals.failure, 3U);
    f.calls(7, outcome::failure);
    EXPECT_EQ(f.core->state(), breaker_state::closed);
    f.calls(1, outcome::failure);
    EXPECT_EQ(f.core->state(), breaker_state::open);
}

// On the store's own thread nobody may wait.
TEST(EngineFleet, NeverWaitsOnTheStoresThread) {
    fleet_engine f;
    EXPECT_EQ(f.core->operate(control_verb::trip, "x", 0ms), make_error_code(errc::would_deadlock));
    f.publish(open_view(100, 100ms));
    f.run(100ms);
    EXPECT_EQ(f.core->acquire().refusal().reason, refusal_reason::store_late);
    EXPECT_TRUE(f.acquire()->is_probe());  // and it is no obstacle for who asks rightly
}

// Options that go to and fro make no more windows than there are of them.
TEST(EngineFleet, AWindowThatComesBackIsTheOldOne) {
    fleet_engine f;
    f.calls(3, outcome::success);
    const auto use = [&](std::chrono::milliseconds window) {
        auto rules = policy_of(calm());
        rules.window = window;
        fleet_port::terms t;
        t.fleet = view_of_era(100, breaker_state::closed);
        t.as_of = f.now();
        t.rules = rules;
        f.core->adopt(t);
    };
    for (int i = 0; i < 20; ++i) {
        use(20s);
        EXPECT_TRUE(f.core->snapshot().window.empty());
        f.calls(1, outcome::failure);
        EXPECT_EQ(f.core->snapshot().window, (counts{.failure = 1}));
        use(10s);
        EXPECT_TRUE(f.core->snapshot().window.empty());
        f.calls(1, outcome::success);
        EXPECT_EQ(f.core->snapshot().window, (counts{.success = 1}));
    }
    EXPECT_EQ(f.core->windows(), 2U);
    EXPECT_EQ(f.core->snapshot().totals, (counts{.success = 23, .failure = 20}));
}

TEST(EngineFleet, LeavingTheFleetLeavesALocalBreaker) {
    fleet_engine f;
    f.publish(open_view(100, 5s));
    f.core->leave_fleet();
    EXPECT_TRUE(f.core->acquire());
    EXPECT_EQ(f.core->snapshot().fleet_state, std::nullopt);
}

TEST(EngineFleet, OptionsThatAreNotItsOwnAreToldOnceAndShown) {
    fleet_engine f;
    EXPECT_EQ(f.core->snapshot().options_differ, "");
    EXPECT_EQ(f.story, (std::vector<std::string>{}));
    policy other = policy_of(calm());
    other.quorum = 1;
    const auto govern = [&](const policy& p, std::uint64_t stamp) {
        f.store.truth["b"].options_stamp = stamp;
        f.store.on_news = [&f, p](const news& n) {
            verdict v = f.store.plain(n);
            if (n.mine.options_stamp != v.fleet.options_stamp) v.options = to_text(p);
            return v;
        };
        f.core->acquire().settle(outcome::success);
        f.run(1s);
        f.core->acquire().settle(outcome::success);
        f.run(1s);
    };
    govern(other, 10);
    EXPECT_EQ(f.core->snapshot().options_differ, "quorum=1 (here 2)");
    EXPECT_EQ(f.story, (std::vector<std::string>{"options_differ"}));
    other.minimum_calls = 9;
    govern(other, 12);
    EXPECT_EQ(f.core->snapshot().options_differ, "minimum_calls=9 (here 4), quorum=1 (here 2)");
    govern(policy_of(calm()), 14);
    EXPECT_EQ(f.core->snapshot().options_differ, "");
    EXPECT_EQ(f.story,
              (std::vector<std::string>{"options_differ", "options_differ", "options_differ"}));
}

}  // namespace
}  // namespace trinco::detail
