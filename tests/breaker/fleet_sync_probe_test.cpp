// Probes: one ask in flight, cached refusals, and no lease left behind.
#include <gtest/gtest.h>

#include "fleet_sync_fixture.hpp"

namespace {

using namespace trinco::detail;

struct FleetSyncProbe : ::testing::Test {
    FleetSyncProbe() {
        w.store.truth["b"] = view_of_era(100, breaker_state::half_open);
        m = w.join("b", port);
        w.run(150ms);
    }
    op ask() {
        answer.reset();
        return m->ask_probe([this](std::error_code ec, const probe_answer& a) {
            EXPECT_FALSE(ec);
            answer = a;
        });
    }
    // The steps asked for, as letters: t(ake), s(uccess), f(ailure), g(ive back).
    std::string steps() const {
        std::string s;
        for (const auto& p : w.store.probes) s += "tsfg"[static_cast<int>(p.request.step)];
        return s;
    }
    void refuse(std::chrono::milliseconds retry_after) {
        w.store.on_probe = [this, retry_after](const probe_request&) {
            return probe_reply{false, retry_after, w.store.truth["b"], false, 1};
        };
    }

    sync_world w;
    remembering_port port;
    std::unique_ptr<fleet_sync::membership> m;
    std::optional<probe_answer> answer;
};

TEST_F(FleetSyncProbe, GrantCountsFromBeforeTheQuestion) {
    const auto before = w.now();
    w.store.delay = 40ms;
    const auto asked = ask();
    EXPECT_FALSE(answer) << "never inside the call";
    w.run(50ms);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->granted);
    EXPECT_EQ(answer->era, 100U);
    EXPECT_EQ(answer->expires, before + w.options.probe_timeout);
    EXPECT_EQ(w.store.probes[0].request.token, answer->token);
    EXPECT_EQ(w.store.probes[0].request.lease, w.options.probe_timeout);
    EXPECT_EQ(w.store.probes[0].by, before + w.options.store_timeout);
}

TEST_F(FleetSyncProbe, ViewOfTheGrantIsAdoptedBeforeTheAnswer) {
    w.store.on_probe = [&](const probe_request&) {
        w.store.truth["b"] = view_of_era(200, breaker_state::half_open);
        return probe_reply{true, {}, w.store.truth["b"], false, 1};
    };
    era_t known_then = 0;
    const auto asked = m->ask_probe([&](std::error_code, const probe_answer& a) {
        answer = a;
        known_then = port.told.back().fleet.era;
    });
    w.run(10ms);
    EXPECT_EQ(known_then, 200U);
    EXPECT_EQ(answer->era, 200U);
}

TEST_F(FleetSyncProbe, SecondAskIsRefusedWhileOneIsInFlight) {
    w.store.delay = 30ms;
    const auto first = ask();
    std::optional<probe_answer> second;
    EXPECT_GT(m->probe_wait(w.now()), 0ms);
    const auto other = m->ask_probe([&](std::error_code, const probe_answer& a) { second = a; });
    w.run(1ms);
    ASSERT_TRUE(second);
    EXPECT_FALSE(second->granted);
    EXPECT_GE(second->retry_after, 10ms);
    w.run(50ms);
    EXPECT_TRUE(answer->granted);
    EXPECT_EQ(w.store.probes.size(), 1U);
}

TEST_F(FleetSyncProbe, RefusalIsCachedUntilItsRetryAfter) {
    refuse(500ms);
    auto asked = ask();
    w.run(10ms);
    EXPECT_FALSE(answer->granted);
    EXPECT_NEAR(static_cast<double>(answer->retry_after.count()), 500, 2);
    for (int i = 0; i < 40; ++i) {
        asked = ask();
        w.run(10ms);
        EXPECT_FALSE(answer->granted);
    }
    EXPECT_EQ(w.store.probes.size(), 1U);
    w.run(100ms);
    EXPECT_EQ(m->probe_wait(w.now()), 0ms);
    asked = ask();
    w.run(10ms);
    EXPECT_EQ(w.store.probes.size(), 2U);
}

TEST_F(FleetSyncProbe, RefusalWithoutATimeIsCachedTenMilliseconds) {
    refuse(0ms);
    auto asked = ask();
    w.run(2ms);
    EXPECT_GE(answer->retry_after, 9ms);
    asked = ask();
    w.run(5ms);
    EXPECT_EQ(w.store.probes.size(), 1U);
    w.run(10ms);
    asked = ask();
    w.run(5ms);
    EXPECT_EQ(w.store.probes.size(), 2U);
}

TEST_F(FleetSyncProbe, NewEraForgetsTheRefusal) {
    refuse(5s);
    auto asked = ask();
    w.run(10ms);
    w.store.notify({notice::kind_t::changed, "b", view_of_era(300, breaker_state::half_open)});
    EXPECT_EQ(m->probe_wait(w.now()), 0ms);
    asked = ask();
    w.run(10ms);
    EXPECT_EQ(w.store.probes.size(), 2U);
}

TEST_F(FleetSyncProbe, SettlementNamesTheLease) {
    auto asked = ask();
    w.run(10ms);
    EXPECT_TRUE(m->settle_probe(answer->token, probe_step::success));
    EXPECT_FALSE(m->settle_probe(answer->token, probe_step::success)) << "once";
    w.run(10ms);
    ASSERT_EQ(steps(), "ts");
    EXPECT_EQ(w.store.probes[1].request.token, answer->token);
    w.run(30s);
    EXPECT_EQ(steps(), "ts");
    EXPECT_EQ(w.sync->report(w.now()).probes_overdue, 0U);
}

TEST_F(FleetSyncProbe, GiveBackIsASettlement) {
    auto asked = ask();
    w.run(10ms);
    EXPECT_TRUE(m->settle_probe(answer->token, probe_step::give_back));
    w.run(10ms);
    EXPECT_EQ(steps(), "tg");
}

TEST_F(FleetSyncProbe, OverdueProbeIsSettledAsFailureAtItsDeadline) {
    auto asked = ask();
    w.run(10ms);
    w.run(answer->expires - w.now() - 1ms);
    EXPECT_EQ(steps(), "t");
    w.run(1ms);
    EXPECT_EQ(steps(), "tf");
    EXPECT_EQ(w.store.probes[1].at, answer->expires);
    EXPECT_FALSE(m->settle_probe(answer->token, probe_step::success)) << "too late";
    EXPECT_EQ(w.sync->report(w.now()).probes_overdue, 1U);
}

TEST_F(FleetSyncProbe, SuccessAfterASleepBeyondTheDeadlineIsAFailure) {
    auto asked = ask();
    w.run(10ms);
    const auto token = answer->token;
    w.node.pause_until(answer->expires + 1s);
    w.node.post([&] { EXPECT_FALSE(m->settle_probe(token, probe_step::success)); });
    w.run(15s);
    EXPECT_EQ(steps(), "tf");
}

TEST_F(FleetSyncProbe, SettlementIsRepeatedUntilAnswered) {
    auto asked = ask();
    w.run(10ms);
    w.store.silent = true;
    m->settle_probe(answer->token, probe_step::success);
    w.run(450ms);
    w.store.silent = false;
    w.run(2s);
    const auto all = steps();
    EXPECT_GE(all.size(), 4U);
    EXPECT_EQ(all.find_first_not_of('s', 1), std::string::npos);
    const auto sent = w.store.probes.size();
    w.run(20s);
    EXPECT_EQ(w.store.probes.size(), sent);
}

TEST_F(FleetSyncProbe, SettlementIsGivenUpWhenTheStoreHasReclaimedTheLease) {
    auto asked = ask();
    w.run(10ms);
    w.store.silent = true;
    m->settle_probe(answer->token, probe_step::success);
    w.run(w.options.probe_timeout * 11 / 10 + 1500ms);
    const auto sent = w.store.probes.size();
    w.run(20s);
    EXPECT_EQ(w.store.probes.size(), sent);
}

TEST_F(FleetSyncProbe, AskWithoutAnAnswerIsRefusedAndGivenBack) {
    w.store.silent = true;
    auto asked = ask();
    w.run(99ms);
    EXPECT_FALSE(answer);
    w.run(1ms);
    ASSERT_TRUE(answer) << "at store_timeout";
    EXPECT_FALSE(answer->granted);
    w.store.silent = false;
    w.run(500ms);
    EXPECT_EQ(steps().substr(0, 2), "tg");
    EXPECT_EQ(w.store.probes[1].request.token, w.store.probes[0].request.token);
}

TEST_F(FleetSyncProbe, AskThatDidNotReachTheStoreLeavesNothing) {
    w.store.fails = trinco::errc::unavailable;
    auto asked = ask();
    w.run(10ms);
    EXPECT_FALSE(answer->granted);
    w.store.fails = {};
    w.run(1s);
    EXPECT_EQ(steps(), "t");
}

TEST_F(FleetSyncProbe, GrantWhoseAskerHasGoneIsGivenBack) {
    w.store.delay = 20ms;
    auto asked = ask();
    w.run(5ms);
    asked.cancel();
    w.run(30ms);
    EXPECT_FALSE(answer);
    EXPECT_EQ(steps(), "tg");
}

TEST_F(FleetSyncProbe, GrantOfAnEraThatIsOverIsGivenBack) {
    w.store.delay = 20ms;
    auto asked = ask();
    w.run(5ms);
    w.store.notify({notice::kind_t::changed, "b", view_of_era(400, breaker_state::open)});
    w.run(30ms);
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->granted);
    EXPECT_EQ(steps(), "tg");
}

TEST_F(FleetSyncProbe, EndOfTheMembershipGivesAllBack) {
    auto asked = ask();
    w.run(10ms);
    w.store.delay = 20ms;
    asked = ask();
    w.run(5ms);
    m.reset();
    w.run(50ms);
    EXPECT_EQ(steps(), "ttgg");
}

TEST_F(FleetSyncProbe, NobodyWaitsWhileTheStoreIsLate) {
    w.store.silent = true;
    port.add(1, 0);
    w.run(250ms);  // the exchange went unanswered
    const auto sent = w.store.probes.size();
    auto asked = ask();
    w.run(0ms);
    ASSERT_TRUE(answer) << "at once";
    EXPECT_FALSE(answer->granted);
    EXPECT_GE(answer->retry_after, 10ms);
    EXPECT_EQ(w.store.probes.size(), sent);
    w.store.silent = false;
    w.run(500ms);
    asked = ask();
    w.run(10ms);
    EXPECT_TRUE(answer->granted);
}

TEST_F(FleetSyncProbe, NoneIsAskedForDuringProbeTimeoutAfterANewServer) {
    w.store.notify({notice::kind_t::new_server, "", {}});
    auto asked = ask();
    w.run(10ms);
    EXPECT_FALSE(answer->granted);
    EXPECT_GT(answer->retry_after, 9900ms);
    w.run(9980ms);
    asked = ask();
    w.run(5ms);
    EXPECT_EQ(steps(), "");
    w.run(10ms);
    asked = ask();
    w.run(5ms);
    EXPECT_TRUE(answer->granted);
}

TEST_F(FleetSyncProbe, BreakerThatJoinsAfterANewServerWaitsAsWell) {
    w.store.notify({notice::kind_t::new_server, "", {}});
    w.run(4s);
    remembering_port other;
    w.store.truth["c"] = view_of_era(100, breaker_state::half_open);
    const auto late = w.join("c", other);
    w.run(150ms);
    EXPECT_GT(late->probe_wait(w.now()), 5s);
    w.run(6s);
    EXPECT_EQ(late->probe_wait(w.now()), 0ms);
}

TEST_F(FleetSyncProbe, GrantOfTheServerBeforeIsGivenBack) {
    w.store.delay = 20ms;
    auto asked = ask();
    w.run(5ms);
    w.store.notify({notice::kind_t::new_server, "", {}});
    w.run(30ms);
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->granted);
    EXPECT_EQ(steps(), "tg");
}

TEST_F(FleetSyncProbe, NoneIsAskedForWhileStopping) {
    auto stopping = w.sync->stop(w.now() + 1s, [](std::error_code, int) {});
    auto asked = ask();
    w.run(10ms);
    EXPECT_FALSE(answer->granted);
    EXPECT_EQ(steps(), "");
}

TEST_F(FleetSyncProbe, StopWaitsForSettlementsUnderWay) {
    auto asked = ask();
    w.run(10ms);
    w.store.delay = 30ms;
    m->settle_probe(answer->token, probe_step::success);
    boot_clock::time_point done{};
    const auto start = w.now();
    auto stopping = w.sync->stop(w.now() + 1s, [&](std::error_code ec, int) {
        EXPECT_FALSE(ec);
        done = w.now();
    });
    w.run(100ms);
    EXPECT_EQ(done, start + 30ms);
}

TEST_F(FleetSyncProbe, SetAsideIsLearntFromProbesToo) {
    w.store.on_probe = [&](const probe_request&) {
        auto& v = w.store.truth["b"];
        ++v.rev;
        return probe_reply{false, 1s, v, true, 3};
    };
    auto asked = ask();
    w.run(10ms);
    EXPECT_TRUE(port.told.back().set_aside);
}

}  // namespace
