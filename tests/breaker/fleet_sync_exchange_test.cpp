// When fleet_sync exchanges, and that a batch stays what it was.
#include <gtest/gtest.h>

#include "fleet_sync_fixture.hpp"

namespace {

using namespace trinco::detail;

TEST(FleetSyncExchange, RegistersWithinOneIntervalThenIsQuietWithoutNews) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(101ms);
    ASSERT_EQ(w.store.exchanges.size(), 1U);
    EXPECT_EQ(w.store.sent_of("b")[0].seq, 0U);
    EXPECT_EQ(port.story, "a");
    w.run(10s);
    EXPECT_EQ(w.store.exchanges.size(), 1U);
}

TEST(FleetSyncExchange, PhaseOfTheTickIsRandom) {
    std::vector<boot_clock::duration> phases;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        sync_world w(seed);
        remembering_port port;
        const auto m = w.join("b", port);
        w.run(101ms);
        ASSERT_EQ(w.store.exchanges.size(), 1U);
        phases.push_back(w.store.exchanges[0].at.time_since_epoch() % 100ms);
    }
    std::sort(phases.begin(), phases.end());
    EXPECT_LT(phases.front(), 25ms);
    EXPECT_GT(phases.back(), 75ms);
}

TEST(FleetSyncExchange, NewsTravelOncePerIntervalWithGrowingSeq) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.exchanges.clear();
    for (int i = 0; i < 100; ++i) {
        port.add(1, 0);
        w.run(10ms);
    }
    const auto sent = w.store.sent_of("b");
    EXPECT_EQ(sent.size(), 10U);
    std::uint64_t last = 0;
    for (const auto& n : sent) {
        EXPECT_GT(n.seq, last);
        last = n.seq;
        ASSERT_EQ(n.slices.size(), 1U);
        EXPECT_EQ(n.slices[0].n.success, 10U);
    }
}

TEST(FleetSyncExchange, VerdictStretchesTheInterval) {
    sync_world w;
    w.store.on_news = [&](const news& n) {
        auto v = w.store.plain(n);
        v.next_exchange = 950ms;
        return v;
    };
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.exchanges.clear();
    for (int i = 0; i < 1000; ++i) {
        port.add(1, 0);
        w.run(10ms);
    }
    EXPECT_EQ(w.store.exchanges.size(), 10U);
}

TEST(FleetSyncExchange, SlowRoundTripsDoubleTheIntervalUpToTwoSeconds) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    const auto go = [&](boot_clock::duration d) {
        w.store.exchanges.clear();
        for (boot_clock::duration t{}; t < d; t += 10ms) {
            port.add(1, 0);
            w.run(10ms);
        }
        return w.store.exchanges.size();
    };
    EXPECT_EQ(go(2s), 20U);
    w.store.delay = 20ms;  // 20 medians
    // 200, 400, 800, 1600, 2000 ms: until the median itself is slow.
    EXPECT_LE(go(10s), 9U);
    w.store.delay = 1ms;
    go(10s);
    EXPECT_EQ(go(2s), 20U);
}

TEST(FleetSyncExchange, UrgentGoesAtOnceButTwoMillisecondsApart) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.exchanges.clear();
    const auto start = w.now();
    for (int i = 0; i < 10; ++i) {
        port.add(0, 1);
        m->wake(true);
        w.run(500us);
    }
    ASSERT_GE(w.store.exchanges.size(), 2U);
    EXPECT_EQ(w.store.exchanges[0].at, start);
    for (std::size_t i = 1; i < w.store.exchanges.size(); ++i) {
        EXPECT_GE(w.store.exchanges[i].at - w.store.exchanges[i - 1].at, 2ms);
    }
    EXPECT_EQ(w.store.exchanges[1].at - start, 2ms);
}

TEST(FleetSyncExchange, WakeWithoutNewsSendsNothing) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    m->wake(true);
    w.run(5s);
    EXPECT_EQ(w.store.exchanges.size(), 1U);
}

TEST(FleetSyncExchange, SoftWakeExchangesAtTheNextTickWithoutNews) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    m->wake(false);
    w.run(101ms);
    EXPECT_EQ(w.store.exchanges.size(), 2U);
}

TEST(FleetSyncExchange, WhatBecameUrgentWhileABatchWaitedGoesRightAfterIt) {
    sync_world w;
    w.store.delay = 30ms;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.exchanges.clear();
    port.add(0, 1);
    m->wake(true);
    w.run(10ms);
    port.add(0, 2);
    m->wake(true);
    w.run(10ms);
    EXPECT_EQ(w.store.exchanges.size(), 1U) << "one exchange in flight at a time";
    w.run(15ms);
    ASSERT_EQ(w.store.exchanges.size(), 2U);
    EXPECT_EQ(w.store.sent_of("b")[1].slices[0].n.failure, 2U);
}

TEST(FleetSyncExchange, AtMostSixtyFourElementsUrgentFirst) {
    sync_world w;
    std::vector<std::unique_ptr<remembering_port>> ports;
    std::vector<std::unique_ptr<fleet_sync::membership>> members;
    for (int i = 0; i < 150; ++i) {
        ports.push_back(std::make_unique<remembering_port>());
        std::string name = "b";
        name += std::to_string(1000 + i);
        members.push_back(w.join(name, *ports.back()));
    }
    w.run(300ms);
    ASSERT_EQ(w.store.exchanges.size(), 3U);
    EXPECT_EQ(w.store.exchanges[0].request.size(), 64U);
    EXPECT_EQ(w.store.exchanges[1].request.size(), 64U);
    EXPECT_EQ(w.store.exchanges[2].request.size(), 22U);
    w.store.exchanges.clear();
    for (auto& p : ports) p->add(1, 0);
    members[149]->wake(true);
    w.run(0ms);
    ASSERT_EQ(w.store.exchanges.size(), 1U);
    EXPECT_EQ(w.store.exchanges[0].request[0].breaker, "b1149");
    w.run(150ms);
    std::size_t sent = 0;
    for (const auto& e : w.store.exchanges) sent += e.request.size();
    EXPECT_EQ(sent, 150U);
}

TEST(FleetSyncExchange, UnansweredBatchIsSentAgainUnchanged) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    port.add(3, 1);
    w.run(350ms);  // sent, failed after 100 ms, sent again
    port.add(5, 0);
    w.store.silent = false;
    w.run(400ms);
    const auto sent = w.store.sent_of("b");
    ASSERT_GE(sent.size(), 4U);
    const auto& first = sent[1];
    ASSERT_NE(first.seq, 0U);
    std::uint64_t successes = 0;
    std::uint64_t last_seq = 0;
    for (std::size_t i = 1; i < sent.size(); ++i) {
        if (sent[i].seq == first.seq) {
            ASSERT_EQ(sent[i].slices.size(), 1U);
            EXPECT_EQ(sent[i].slices[0].n, first.slices[0].n);
            EXPECT_EQ(sent[i].mine.era, first.mine.era);
        }
        if (sent[i].seq != last_seq && !sent[i].slices.empty()) {
            successes += sent[i].slices[0].n.success;
        }
        last_seq = sent[i].seq;
    }
    EXPECT_EQ(successes, 8U);
    EXPECT_GE(w.sync->report(w.now()).batches_retried, 1U);
    EXPECT_EQ(w.sync->report(w.now()).batches, 2U);
    EXPECT_TRUE(w.sync->report(w.now()).dropped.empty());
}

TEST(FleetSyncExchange, BatchIsDroppedAfterOneWindowAndSaidSo) {
    sync_world w;
    w.options.window = 2s;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    port.add(3, 1);
    w.run(1900ms);
    EXPECT_TRUE(w.sync->report(w.now()).dropped.empty());
    w.run(3s);
    EXPECT_EQ(w.sync->report(w.now()).dropped.success, 3U);
    EXPECT_EQ(w.sync->report(w.now()).dropped.failure, 1U);
    // What came meanwhile was not collected to be dropped as well.
    port.add(7, 0);
    w.run(5s);
    w.store.silent = false;
    w.run(3s);
    EXPECT_EQ(w.sync->report(w.now()).dropped.success, 3U);
    EXPECT_EQ(w.store.sent_of("b").back().slices.at(0).n.success, 7U);
}

TEST(FleetSyncExchange, ResyncsEveryThirdOfLiveForWithoutNews) {
    sync_world w;
    w.options.live_for = 6s;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(20s);
    EXPECT_GE(w.store.exchanges.size(), 10U);
    EXPECT_LE(w.store.exchanges.size(), 11U);
    EXPECT_TRUE(w.store.sent_of("b").back().slices.empty());
}

TEST(FleetSyncExchange, OwnOptionsTravelUntilStampedThenOnlyWhenTheStoreLacksThem) {
    sync_world w;
    w.options.minimum_calls = 33;
    w.store.on_news = [&](const news& n) {
        auto v = w.store.plain(n);
        if (n.own_stamp == 0 && !n.options.empty()) {
            w.store.truth["b"].options_stamp = v.own_stamp = 77;
            v.fleet = w.store.truth["b"];
        }
        return v;
    };
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    auto send = [&] {
        port.add(1, 0);
        w.run(100ms);
        return w.store.sent_of("b").back();
    };
    EXPECT_NE(w.store.sent_of("b")[0].options.find("minimum_calls=33"), std::string::npos);
    const auto quiet = send();
    EXPECT_EQ(quiet.own_stamp, 77U);
    EXPECT_EQ(quiet.options, "");
    EXPECT_EQ(quiet.mine.options_stamp, 77U);
    w.store.notify({notice::kind_t::new_server, "", {}});
    const auto after = send();
    EXPECT_NE(after.options.find("minimum_calls=33"), std::string::npos);
    EXPECT_EQ(send().options, "");
}

TEST(FleetSyncExchange, GoverningOptionsReachTheBreaker) {
    sync_world w;
    auto others = w.options;
    others.failure_rate = 0.25;
    others.sync_interval = 400ms;
    w.store.on_news = [&](const news& n) {
        w.store.truth["b"].options_stamp = 99;
        auto v = w.store.plain(n);
        if (n.mine.options_stamp != 99) v.options = to_text(policy_of(others));
        return v;
    };
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    ASSERT_FALSE(port.told.empty());
    EXPECT_EQ(port.told.back().rules, policy_of(others));
    w.store.exchanges.clear();
    for (int i = 0; i < 100; ++i) {
        port.add(1, 0);
        w.run(20ms);
    }
    EXPECT_LE(w.store.exchanges.size(), 6U) << "the governing interval is kept";
    EXPECT_EQ(w.store.sent_of("b").back().mine.options_stamp, 99U);
}

TEST(FleetSyncExchange, CollectsForTheEraItKnows) {
    sync_world w;
    w.store.truth["b"] = view_of_era(500, breaker_state::closed);
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    port.add(1, 0);
    w.run(100ms);
    EXPECT_EQ(port.last_era, 500U);
    EXPECT_EQ(w.store.sent_of("b").back().mine.era, 500U);
}

TEST(FleetSyncExchange, WindowAndUrgencyFollowTheVerdict) {
    sync_world w;
    w.store.on_news = [&](const news& n) {
        auto v = w.store.plain(n);
        v.window.success = 700;
        v.window.failure = 300;
        v.live = 100;
        return v;
    };
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    EXPECT_EQ(port.told.back().urgent_after, 167U);
    EXPECT_EQ(port.told.back().live, 100U);
    EXPECT_EQ(m->terms().window.failure, 300U);
}

TEST(FleetSyncExchange, OneRefusedBreakerLeavesTheOthersAlone) {
    sync_world w;
    w.store.on_news = [&](const news& n) {
        auto v = w.store.plain(n);
        if (n.breaker == "bad") v.error = trinco::errc::invalid;
        return v;
    };
    remembering_port good;
    remembering_port bad;
    const auto g = w.join("good", good);
    const auto b = w.join("bad", bad);
    for (int i = 0; i < 50; ++i) {
        good.add(1, 0);
        w.run(100ms);
    }
    EXPECT_EQ(bad.story, "L");
    EXPECT_TRUE(b->degraded());
    EXPECT_EQ(good.story.find('L'), std::string::npos);
    EXPECT_GE(w.store.sent_of("good").size(), 49U);
    EXPECT_LE(w.store.sent_of("bad").size(), 18U) << "then once a degraded_after";
    w.store.on_news = [&](const news& n) { return w.store.plain(n); };
    w.run(2s);
    EXPECT_EQ(bad.story, "LaB");
}

TEST(FleetSyncExchange, NothingRunsAfterTheMembershipEnds) {
    sync_world w;
    w.store.delay = 20ms;
    remembering_port port;
    auto m = w.join("b", port);
    w.run(100ms);
    port.add(1, 0);
    w.run(110ms);
    m.reset();
    const auto story = port.story;
    w.run(30s);
    EXPECT_EQ(port.story, story);
    const auto sent = w.store.exchanges.size();
    w.run(30s);
    EXPECT_EQ(w.store.exchanges.size(), sent);
}

TEST(FleetSyncExchange, RejoinedNameGoesOnCounting) {
    sync_world w;
    remembering_port port;
    auto m = w.join("b", port);
    w.run(100ms);
    port.add(1, 0);
    w.run(150ms);
    const auto before = w.store.sent_of("b").back().seq;
    m.reset();
    m = w.join("b", port);
    port.add(1, 0);
    w.run(150ms);
    EXPECT_GT(w.store.sent_of("b").back().seq, before);
}

TEST(FleetSyncExchange, EndOfTheSyncCancelsEverything) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    bool answered = false;
    w.run(150ms);
    auto read = m->refresh([&](std::error_code, int) { answered = true; });
    w.sync.reset();
    m->wake(true);
    w.run(5s);
    EXPECT_FALSE(answered);
    EXPECT_EQ(port.story, "a");
}

TEST(FleetSyncStop, SendsWhatIsLeftOnceAndCompletes) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    port.add(4, 2);
    std::error_code result = trinco::errc::busy;
    auto stopping = w.sync->stop(w.now() + 1s, [&](std::error_code ec, int) { result = ec; });
    w.run(10ms);
    EXPECT_FALSE(result);
    EXPECT_EQ(w.store.sent_of("b").back().slices.at(0).n.success, 4U);
}

TEST(FleetSyncStop, WithoutAnAnswerEndsAtItsDeadlineUnknown) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(150ms);
    w.store.silent = true;
    port.add(4, 2);
    std::error_code result;
    const auto by = w.now() + 500ms;
    boot_clock::time_point at{};
    auto stopping = w.sync->stop(by, [&](std::error_code ec, int) {
        result = ec;
        at = w.now();
    });
    w.run(2s);
    EXPECT_EQ(result, trinco::errc::unknown_outcome);
    EXPECT_EQ(at, by);
}

}  // namespace
