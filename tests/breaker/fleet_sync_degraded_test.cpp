// Silence of the store, and its end.
#include <gtest/gtest.h>

#include <algorithm>

#include "fleet_sync_fixture.hpp"

namespace {

using namespace trinco::detail;

TEST(FleetSyncDegraded, EachBreakerIsToldOnceAfterDegradedAfter) {
    sync_world w;
    w.options.degraded_after = 1s;
    remembering_port a;
    remembering_port b;
    const auto ma = w.join("a", a);
    w.options.degraded_after = 3s;
    const auto mb = w.join("b", b);
    w.run(150ms);
    w.store.silent = true;
    a.add(1, 0);
    w.run(100ms);
    const auto silent_since = w.store.exchanges.back().at;
    w.run(silent_since + 999ms - w.now());
    EXPECT_EQ(a.story, "a");
    w.run(1ms);
    EXPECT_EQ(a.story, "aL");
    EXPECT_EQ(a.lost_live, 1U);
    EXPECT_EQ(b.story, "a");
    w.run(silent_since + 3s - w.now());
    EXPECT_EQ(b.story, "aL");
    w.run(20s);
    EXPECT_EQ(a.story, "aL");
    EXPECT_EQ(b.story, "aL");
    EXPECT_EQ(w.sync->report(w.now()).times_degraded, 1U);
    const auto alone = w.now() - (silent_since + 1s);
    EXPECT_TRUE(w.sync->report(w.now()).degraded);
    EXPECT_EQ(w.sync->report(w.now()).degraded_time, alone);
    EXPECT_EQ(w.sync->report(w.now()).degraded_for,
              std::chrono::floor<std::chrono::milliseconds>(alone));
}

TEST(FleetSyncDegraded, SaysWhyAsFarAsTheStoreKnows) {
    sync_world w;
    w.store.silent = true;
    w.store.why_silent = "the server refused AUTH: WRONGPASS";
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(2s);
    EXPECT_EQ(port.lost_why, "the server refused AUTH: WRONGPASS");
    EXPECT_EQ(w.sync->report(w.now()).trouble, "the server refused AUTH: WRONGPASS");
    w.store.silent = false;
    w.run(2s);
    EXPECT_EQ(w.sync->report(w.now()).trouble, "");
    w.store.why_silent.clear();
    w.store.silent = true;
    port.add(1, 0);
    w.run(3s);
    EXPECT_EQ(port.lost_why, "the store does not answer");
    EXPECT_EQ(w.sync->report(w.now()).trouble, "the store does not answer");
    w.store.silent = false;
    w.run(2s);
    EXPECT_EQ(w.sync->report(w.now()).trouble, "");
}

TEST(FleetSyncDegraded, SaysWhatTheStoreFailsWith) {
    sync_world w;
    w.store.writes_fail = trinco::errc::busy;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(2s);
    const auto said = make_error_code(trinco::errc::busy).message();
    EXPECT_EQ(w.sync->report(w.now()).trouble, said);
    EXPECT_EQ(port.lost_why, said);
    (void)m->refresh([](std::error_code, int) {});
    w.run(10ms);
    EXPECT_EQ(w.sync->report(w.now()).trouble, said) << "looks are answered, writes are not";
}

// One of two keys has a foreign type; what is said about the other one does not hide it.
TEST(FleetSyncDegraded, SaysWhichBreakerIsRefused) {
    sync_world w;
    const auto plain = w.store.on_news;
    w.store.on_news = [&](const news& n) {
        auto v = plain(n);
        if (n.breaker == "a") v.error = trinco::errc::conflict;
        return v;
    };
    remembering_port a;
    remembering_port b;
    const auto ma = w.join("a", a);
    const auto mb = w.join("b", b);
    w.run(150ms);
    const std::string said =
        "the store refuses the breaker \"a\": something else than a breaker lives under its key";
    EXPECT_EQ(w.sync->report(w.now()).trouble, said);
    b.add(5, 0);
    w.run(1500ms);
    EXPECT_EQ(w.sync->report(w.now()).trouble, said);
    EXPECT_EQ(a.lost_why, said);
    EXPECT_FALSE(mb->degraded());
    w.store.on_news = plain;
    w.run(3s);
    EXPECT_EQ(w.sync->report(w.now()).trouble, "");
    EXPECT_FALSE(ma->degraded());
}

TEST(FleetSyncDegraded, ARefusedBreakerThatHasLeftIsNoTrouble) {
    sync_world w;
    w.store.on_news = [&](const news&) {
        verdict v;
        v.error = trinco::errc::conflict;
        return v;
    };
    remembering_port a;
    auto ma = w.join("a", a);
    w.run(150ms);
    EXPECT_NE(w.sync->report(w.now()).trouble, "");
    ma.reset();
    w.store.on_news = [&](const news& n) { return w.store.plain(n); };
    remembering_port b;
    const auto mb = w.join("b", b);
    w.run(1s);
    EXPECT_EQ(w.sync->report(w.now()).trouble, "");
}

TEST(FleetSyncDegraded, AProbeThatIsRefusedForItsKeyIsAnAnswer) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.writes_fail = trinco::errc::conflict;
    const auto asked = m->ask_probe([](std::error_code, const probe_answer&) {});
    w.run(5ms);
    EXPECT_EQ(w.sync->report(w.now()).errors.other, 1U);
    EXPECT_NE(w.sync->report(w.now()).trouble.find("lives under its key"), std::string::npos);
    w.store.writes_fail = {};
    w.run(5s);
    EXPECT_EQ(port.story.find('L'), std::string::npos);
}

TEST(FleetSyncDegraded, IdleIsNotSilence) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    w.run(15s);  // nothing to say, nothing asked
    EXPECT_EQ(port.story, "a");
}

TEST(FleetSyncDegraded, StoreThatNeverAnsweredIsSilentToo) {
    sync_world w;
    w.store.silent = true;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(1200ms);
    EXPECT_EQ(port.story, "L");
    EXPECT_EQ(port.lost_live, 0U);
}

TEST(FleetSyncDegraded, ErrorsAtOnceAreSilenceToo) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.fails = trinco::errc::unavailable;
    port.add(1, 0);
    w.run(1200ms);
    EXPECT_EQ(port.story, "aL");
    EXPECT_LE(w.store.exchanges.size(), 14U) << "tried at the tick, not in a loop";
}

TEST(FleetSyncDegraded, KnocksOncePerDegradedAfterWithoutCollecting) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    port.add(1, 0);
    w.run(2s);
    ASSERT_TRUE(m->degraded());
    const auto collected = port.collected;
    w.store.exchanges.clear();
    for (int i = 0; i < 1000; ++i) {
        port.add(0, 1);
        m->wake(true);
        w.run(10ms);
    }
    EXPECT_GE(w.store.exchanges.size(), 9U);
    EXPECT_LE(w.store.exchanges.size(), 11U);
    EXPECT_EQ(port.collected, collected);
}

TEST(FleetSyncDegraded, FirstAnswerEndsItAfterTheViewsWereCompared) {
    sync_world w;
    remembering_port a;
    remembering_port b;
    const auto ma = w.join("a", a);
    const auto mb = w.join("b", b);
    w.run(150ms);
    w.store.silent = true;
    a.add(1, 0);
    w.run(3s);
    ASSERT_EQ(a.story + b.story, "aLaL");
    w.store.silent = false;
    w.store.truth["a"] = view_of_era(900, breaker_state::open);
    w.run(1300ms);
    EXPECT_EQ(a.story.substr(0, 4), "aLaB");
    EXPECT_EQ(a.told[1].fleet.era, 900U);
    EXPECT_EQ(b.story.substr(0, 4), "aLaB");
    EXPECT_FALSE(mb->degraded());
    // The batch from before and what came meanwhile are both counted.
    b.add(2, 0);
    w.run(1s);
    std::uint64_t counted = 0;
    for (const auto& n : w.store.sent_of("b")) {
        for (const auto& s : n.slices) counted += s.n.success;
    }
    EXPECT_EQ(counted, 2U);
    EXPECT_FALSE(w.sync->report(w.now()).degraded);
    EXPECT_EQ(w.sync->report(w.now()).degraded_for, 0ms);
    const auto degraded = w.sync->report(w.now()).degraded_time;
    w.run(5s);
    EXPECT_EQ(w.sync->report(w.now()).degraded_time, degraded);
}

TEST(FleetSyncDegraded, NewConnectionIsTriedAtOnce) {
    sync_world w;
    w.options.degraded_after = 5s;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    port.add(1, 0);
    w.run(6s);
    ASSERT_TRUE(m->degraded());
    w.store.silent = false;
    w.store.notify({notice::kind_t::new_server, "", {}});
    w.run(110ms);
    EXPECT_FALSE(m->degraded());
}

TEST(FleetSyncDegraded, SleepOfTheProcessIsNotSilenceOfTheStore) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    // Asleep from right after a question until long after degraded_after.
    w.store.delay = 50ms;
    w.run(1s);
    port.add(1, 0);
    m->wake(true);
    w.run(1ms);
    w.store.silent = true;
    w.node.pause_until(w.now() + 20s);
    w.run(19s);
    w.store.silent = false;
    w.run(10s);
    EXPECT_EQ(port.story.find('L'), std::string::npos);
}

TEST(FleetSyncDegraded, OneLostReplyIsNotSilence) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    for (int i = 0; i < 200; ++i) {
        w.store.silent = i % 10 == 0;
        port.add(1, 0);
        w.run(100ms);
    }
    EXPECT_EQ(port.story.find('L'), std::string::npos);
    EXPECT_GE(w.sync->report(w.now()).exchanges_failed, 10U);
}

TEST(FleetSyncDegraded, AnyAnswerCounts) {
    sync_world w;
    w.store.truth["b"] = view_of_era(100, breaker_state::half_open);
    w.store.on_probe = [&](const probe_request&) {
        return probe_reply{false, 10ms, w.store.truth["b"], false, 1};
    };
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    port.add(1, 0);
    w.run(150ms);  // one exchange unanswered
    for (int i = 0; i < 40; ++i) {
        w.store.silent = false;
        const auto asked = m->ask_probe([](std::error_code, const probe_answer&) {});
        w.run(15ms);
        w.store.silent = true;
        w.run(85ms);
    }
    EXPECT_EQ(port.story.find('L'), std::string::npos);
}

// Strict calls beside outcomes, as many as there are in that time.
struct FleetSyncStrict : ::testing::Test {
    FleetSyncStrict() {
        m = w.join("b", port);
        w.run(150ms);
    }
    void calls_for(boot_clock::duration d) {
        for (const auto end = w.now() + d; w.now() < end;) {
            if (calls_are_let_through) port.add(1, 0);
            reads.push_back(m->refresh([this](std::error_code ec, int) { last_read = ec; }));
            w.run(50ms);
        }
    }
    sync_world w;
    remembering_port port;
    std::unique_ptr<fleet_sync::membership> m;
    bool calls_are_let_through = true;
    std::vector<op> reads;
    std::error_code last_read;
};

TEST_F(FleetSyncStrict, LooksDoNotEndTheSilenceOfAStoreThatTakesNoWrites) {
    for (const auto full : {trinco::errc::busy, trinco::errc::unavailable}) {
        port.story.clear();
        w.store.writes_fail = full;
        calls_for(900ms);
        EXPECT_EQ(port.story.find('L'), std::string::npos);
        EXPECT_FALSE(last_read) << "it can be read";
        calls_for(350ms);
        EXPECT_EQ(std::count(port.story.begin(), port.story.end(), 'L'), 1);
        EXPECT_TRUE(m->degraded());

        w.store.writes_fail = {};
        calls_for(1200ms);
        EXPECT_FALSE(m->degraded());
        EXPECT_FALSE(w.sync->report(w.now()).degraded);
        EXPECT_FALSE(last_read);
        const auto looks = w.store.looks.size();
        calls_for(200ms);
        EXPECT_EQ(w.store.looks.size(), looks + 4) << "looks suffice again";
    }
    EXPECT_TRUE(w.sync->report(w.now()).dropped.empty());
}

TEST_F(FleetSyncStrict, LooksDoNotEndTheSilenceOfProbesThatAreNotAnswered) {
    w.store.writes_fail = trinco::errc::busy;
    std::vector<op> asks;
    for (int i = 0; i < 13; ++i) {
        asks.push_back(m->ask_probe([](std::error_code, const probe_answer&) {}));
        reads.push_back(m->refresh([](std::error_code, int) {}));
        w.run(100ms);
    }
    EXPECT_TRUE(m->degraded());
}

// An open breaker has no outcomes to send.
TEST_F(FleetSyncStrict, LooksThatAreDeniedAreSilenceThoughNothingIsWritten) {
    calls_are_let_through = false;
    const auto exchanges = w.store.exchanges.size();
    w.store.fails = trinco::errc::denied;
    calls_for(950ms);
    EXPECT_EQ(w.store.exchanges.size(), exchanges);
    EXPECT_FALSE(m->degraded());
    calls_for(200ms);
    EXPECT_TRUE(m->degraded());
}

TEST_F(FleetSyncStrict, DeniedIsSilenceAndPasses) {
    w.store.fails = trinco::errc::denied;
    calls_for(1250ms);
    EXPECT_EQ(last_read, trinco::errc::denied);
    EXPECT_EQ(std::count(port.story.begin(), port.story.end(), 'L'), 1);
    w.store.fails = {};
    calls_for(1200ms);
    EXPECT_FALSE(m->degraded());
    EXPECT_FALSE(last_read);
}

TEST_F(FleetSyncStrict, AWriteThatFailsOnceIsNoSilence) {
    for (int i = 0; i < 10; ++i) {
        w.store.writes_fail = trinco::errc::busy;
        calls_for(300ms);
        w.store.writes_fail = {};
        calls_for(300ms);
    }
    EXPECT_EQ(port.story.find('L'), std::string::npos);
    // Nor does it make one of a look that fails after it.
    calls_are_let_through = false;
    w.store.silent = true;
    calls_for(50ms);
    w.store.silent = false;
    calls_for(2s);
    EXPECT_EQ(port.story.find('L'), std::string::npos);
}

TEST(FleetSyncDegraded, GapsAllTheTimeDoNotHastenTheKnocking) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.fails = trinco::errc::denied;
    port.add(1, 0);
    w.run(2s);
    ASSERT_TRUE(m->degraded());
    w.store.exchanges.clear();
    for (int i = 0; i < 100; ++i) {
        w.store.notify({notice::kind_t::gap, "", {}});
        w.run(100ms);
    }
    EXPECT_GE(w.store.exchanges.size(), 9U);
    EXPECT_LE(w.store.exchanges.size(), 12U) << "the first, and one each degraded_after";
}

// The connection to the same server is back.
TEST(FleetSyncDegraded, OneGapIsTriedAtOnce) {
    sync_world w;
    w.options.degraded_after = 5s;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    port.add(1, 0);
    w.run(6s);
    ASSERT_TRUE(m->degraded());
    w.store.silent = false;
    w.store.notify({notice::kind_t::gap, "", {}});
    w.run(110ms);
    EXPECT_FALSE(m->degraded());
}

}  // namespace
