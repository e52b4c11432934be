// Strict reads, and an operator's hand.
#include <gtest/gtest.h>

#include "fleet_sync_fixture.hpp"

namespace {

using namespace trinco::detail;

struct FleetSyncReads : ::testing::Test {
    FleetSyncReads() {
        m = w.join("b", port);
        w.run(150ms);
        w.store.exchanges.clear();
    }
    sync_world w;
    remembering_port port;
    std::unique_ptr<fleet_sync::membership> m;
};

TEST_F(FleetSyncReads, ARefreshIsOneLookAndNoExchangeWhenNothingIsNew) {
    port.add(5, 1);
    const auto told = port.told.size();
    for (int i = 1; i <= 10; ++i) {
        w.store.truth["b"] =
            view_of_era(0, breaker_state::closed, 2 + static_cast<std::uint64_t>(i));
        bool done = false;
        const auto read = m->refresh([&](std::error_code ec, int) {
            EXPECT_FALSE(ec);
            EXPECT_EQ(port.told.size(), told + static_cast<std::size_t>(i)) << "adopted before";
            done = true;
        });
        w.run(2ms);
        EXPECT_TRUE(done);
        EXPECT_EQ(w.store.looks.size(), static_cast<std::size_t>(i));
    }
    EXPECT_EQ(port.told.back().fleet.rev, 12U);
    EXPECT_EQ(port.collected, 1) << "outcomes stay in batches";
    EXPECT_TRUE(w.store.exchanges.empty());
    const auto r = w.sync->report(w.now());
    EXPECT_EQ(r.looks, 10U);
    EXPECT_EQ(r.strict_exchanges, 0U);
    EXPECT_EQ(r.look_round_trips.count, 10U);
    EXPECT_EQ(r.look_round_trips.longest, 1ms);
}

TEST_F(FleetSyncReads, WhatIsKnownIsAdoptedAgainOnlyWhileATimeOfItRuns) {
    const auto told_by_looks = [&](int looks) {
        const auto before = port.told.size();
        for (int i = 0; i < looks; ++i) {
            bool done = false;
            const auto read = m->refresh([&](std::error_code, int) { done = true; });
            w.run(2ms);
            EXPECT_TRUE(done);
        }
        return port.told.size() - before;
    };
    w.store.truth["b"] = view_of_era(0, breaker_state::closed, 3);
    EXPECT_EQ(told_by_looks(3), 1U);
    w.store.truth["b"].remaining = 5s;
    EXPECT_EQ(told_by_looks(3), 3U);
    EXPECT_GT(port.told.back().fleet.remaining, 4900ms);
    w.store.truth["b"].remaining = 0ms;
    w.store.truth["b"].over_remaining = 5s;
    EXPECT_EQ(told_by_looks(2), 2U);
}

TEST_F(FleetSyncReads, TheLookCarriesWhatThisProcessKnows) {
    m.reset();
    w.store.truth["c"] = view_of_era(40, breaker_state::open);
    w.store.truth["c"].options_stamp = 8;
    w.store.truth["c"].remaining = 5s;
    w.store.on_news = [this](const news& n) {
        verdict v = w.store.plain(n);
        if (n.mine.options_stamp != 8) v.options = "open_for_ms=5000";
        return v;
    };
    const auto c = w.join("c", port);
    w.run(150ms);
    const auto read = c->refresh([](std::error_code, int) {});
    ASSERT_EQ(w.store.looks.size(), 1U);
    const view& mine = w.store.looks[0].request.mine;
    EXPECT_EQ(w.store.looks[0].request.breaker, "c");
    EXPECT_EQ(mine.era, 40U);
    EXPECT_EQ(mine.options_stamp, 8U);
    EXPECT_LT(mine.remaining, 5s);
    EXPECT_EQ(w.store.looks[0].by, w.now() + w.options.store_timeout);
}

TEST_F(FleetSyncReads, RefreshExchangesWhenTheLookSaysSo) {
    w.store.on_look = [this](const look_request& q) {
        glance g;
        g.fleet = w.store.truth[q.breaker];
        g.exchange_first = true;
        return g;
    };
    w.store.truth["b"] = view_of_era(0, breaker_state::closed, 9);
    port.add(5, 5);
    std::uint64_t known_then = 0;
    const auto start = w.now();
    const auto read = m->refresh([&](std::error_code ec, int) {
        EXPECT_FALSE(ec);
        known_then = port.told.back().fleet.rev;
    });
    w.run(3ms);
    EXPECT_EQ(known_then, 9U);
    EXPECT_EQ(w.store.looks.size(), 1U);
    ASSERT_EQ(w.store.exchanges.size(), 1U);
    EXPECT_EQ(w.store.exchanges[0].request.at(0).seq, 0U) << "outcomes stay in batches";
    EXPECT_EQ(w.store.exchanges[0].by, start + w.options.store_timeout) << "one bound for both";
    EXPECT_EQ(w.sync->report(w.now()).strict_exchanges, 1U);
}

// The exchange that has to follow the look is answered by nobody: what the look showed is known.
TEST_F(FleetSyncReads, AnOpeningThatALookShowsIsToldAtOnce) {
    w.store.truth["b"] = view_of_era(500, breaker_state::open);
    w.store.on_look = [this](const look_request& q) {
        w.store.silent = true;
        return glance{.fleet = w.store.truth[q.breaker]};
    };
    const auto read = m->refresh([](std::error_code, int) {});
    w.run(5ms);
    EXPECT_EQ(w.store.exchanges.size(), 1U);
    EXPECT_EQ(port.told.back().fleet.era, 500U);
}

// Whether this voter was set aside is told by verdicts.
TEST_F(FleetSyncReads, AnotherEraIsNotReliedOnBeforeItsVerdict) {
    w.store.truth["b"] = view_of_era(500, breaker_state::closed);
    w.store.on_news = [this](const news& n) {
        verdict v = w.store.plain(n);
        v.set_aside = true;
        return v;
    };
    bool set_aside_then = false;
    const auto read =
        m->refresh([&](std::error_code, int) { set_aside_then = port.told.back().set_aside; });
    w.run(5ms);
    EXPECT_TRUE(set_aside_then);
    EXPECT_EQ(w.store.looks.size(), 1U);
    EXPECT_EQ(w.store.exchanges.size(), 1U);
    // Known by a notice: the exchange comes at once.
    w.store.truth["b"] = view_of_era(600, breaker_state::closed);
    w.store.notify({notice::kind_t::changed, "b", w.store.truth["b"]});
    w.run(1ms);
    w.store.exchanges.clear();
    const auto again = m->refresh([](std::error_code, int) {});
    EXPECT_EQ(w.store.looks.size(), 1U);
    EXPECT_EQ(w.store.exchanges.size(), 1U);
    w.run(5ms);
    const auto third = m->refresh([](std::error_code, int) {});
    EXPECT_EQ(w.store.looks.size(), 2U);
}

TEST_F(FleetSyncReads, WithoutOptionsOfItsOwnAndAfterAGapItExchanges) {
    const auto fresh = w.join("c", port);
    const auto first = fresh->refresh([](std::error_code, int) {});
    EXPECT_TRUE(w.store.looks.empty());
    ASSERT_EQ(w.store.sent_of("c").size(), 1U);
    EXPECT_NE(w.store.sent_of("c")[0].options, "");
    w.run(150ms);
    w.store.exchanges.clear();
    w.store.notify({notice::kind_t::gap, {}, {}});
    const auto second = m->refresh([](std::error_code, int) {});
    EXPECT_TRUE(w.store.looks.empty());
    EXPECT_EQ(w.store.sent_of("b").size(), 1U);
}

TEST_F(FleetSyncReads, RefreshBeginsAfterTheCallSoLaterOnesShareTheNext) {
    w.store.delay = 10ms;
    std::vector<boot_clock::time_point> done;
    std::vector<op> reads;
    const auto start = w.now();
    for (int i = 0; i < 5; ++i) {
        reads.push_back(m->refresh([&](std::error_code, int) { done.push_back(w.now()); }));
        w.run(1ms);
    }
    w.run(50ms);
    EXPECT_EQ(w.store.looks.size(), 2U);
    EXPECT_TRUE(w.store.exchanges.empty());
    ASSERT_EQ(done.size(), 5U);
    EXPECT_EQ(done[0], start + 10ms);
    EXPECT_EQ(done[4], start + 20ms);
}

TEST_F(FleetSyncReads, RefreshWithoutAnAnswerFailsAtStoreTimeout) {
    w.store.silent = true;
    std::error_code result;
    boot_clock::time_point at{};
    const auto start = w.now();
    const auto read = m->refresh([&](std::error_code ec, int) {
        result = ec;
        at = w.now();
    });
    w.run(500ms);
    EXPECT_EQ(result, trinco::errc::unknown_outcome);
    EXPECT_EQ(at, start + w.options.store_timeout);
    const auto r = w.sync->report(w.now());
    EXPECT_EQ(r.looks_failed, 1U);
    EXPECT_GE(r.errors.unanswered, 1U);
    EXPECT_EQ(r.look_round_trips.count, 0U);
}

TEST_F(FleetSyncReads, ALookThatIsRefusedIsNoSilence) {
    w.store.fails = trinco::errc::not_supported;
    std::error_code result;
    std::vector<op> reads;
    for (int i = 0; i < 30; ++i) {
        w.store.fails = trinco::errc::not_supported;
        reads.push_back(m->refresh([&](std::error_code ec, int) { result = ec; }));
        w.run(2ms);
        w.store.fails = {};
        w.run(98ms);
    }
    EXPECT_EQ(result, trinco::errc::not_supported);
    EXPECT_EQ(port.story.find('L'), std::string::npos);
    EXPECT_EQ(w.sync->report(w.now()).errors.other, 30U);
}

TEST_F(FleetSyncReads, CancelledRefreshNeverCompletes) {
    bool ran = false;
    auto read = m->refresh([&](std::error_code, int) { ran = true; });
    read.cancel();
    w.run(50ms);
    EXPECT_FALSE(ran);
}

TEST_F(FleetSyncReads, AMembershipThatEndsBetweenLookAndExchangeIsLeftAlone) {
    w.store.on_look = [](const look_request&) {
        glance g;
        g.exchange_first = true;
        return g;
    };
    w.store.delay = 5ms;
    bool ran = false;
    const auto read = m->refresh([&](std::error_code, int) { ran = true; });
    w.run(7ms);
    EXPECT_EQ(w.store.exchanges.size(), 1U);
    m.reset();
    w.run(50ms);
    EXPECT_FALSE(ran);
}

TEST_F(FleetSyncReads, UnansweredRefreshesLeadToDegraded) {
    w.store.silent = true;
    std::vector<op> reads;
    for (int i = 0; i < 15; ++i) {
        reads.push_back(m->refresh([](std::error_code, int) {}));
        w.run(100ms);
    }
    EXPECT_EQ(port.story, "aL");
}

TEST_F(FleetSyncReads, ControlIsAttributedAndItsViewAdopted) {
    w.store.truth["b"] = view_of_era(700, breaker_state::open);
    control_request r;
    r.breaker = "b";
    r.verb = control_verb::trip;
    std::optional<view> after;
    const auto call = w.sync->control(r, w.now() + 2s, [&](std::error_code ec, const view& v) {
        EXPECT_FALSE(ec);
        after = v;
    });
    w.run(10ms);
    ASSERT_TRUE(after);
    EXPECT_EQ(after->era, 700U);
    EXPECT_EQ(port.told.back().fleet.era, 700U);
    EXPECT_NE(w.store.controls.at(0).request.id, 0U);
    EXPECT_EQ(w.store.controls.at(0).request.who, "me-1");
}

TEST_F(FleetSyncReads, ControlIsRepeatedUnderOneIdUntilAnswered) {
    w.store.silent = true;
    control_request r;
    r.breaker = "b";
    bool done = false;
    const auto call =
        w.sync->control(r, w.now() + 2s, [&](std::error_code ec, const view&) { done = !ec; });
    w.run(400ms);
    w.store.silent = false;
    w.run(400ms);
    EXPECT_TRUE(done);
    ASSERT_GE(w.store.controls.size(), 3U);
    for (const auto& c : w.store.controls) EXPECT_EQ(c.request.id, w.store.controls[0].request.id);
}

TEST_F(FleetSyncReads, ControlWithoutAnAnswerEndsUnknownByItsDeadline) {
    w.store.silent = true;
    control_request r;
    r.breaker = "b";
    std::error_code result;
    boot_clock::time_point at{};
    const auto by = w.now() + 1s;
    const auto call = w.sync->control(r, by, [&](std::error_code ec, const view&) {
        result = ec;
        at = w.now();
    });
    w.run(3s);
    EXPECT_EQ(result, trinco::errc::unknown_outcome);
    EXPECT_LE(at, by);
}

TEST_F(FleetSyncReads, RefusedControlIsNotRepeated) {
    w.store.fails = trinco::errc::invalid;
    control_request r;
    r.breaker = "b";
    std::error_code result;
    const auto call =
        w.sync->control(r, w.now() + 1s, [&](std::error_code ec, const view&) { result = ec; });
    w.run(1s);
    EXPECT_EQ(result, trinco::errc::invalid);
    EXPECT_EQ(w.store.controls.size(), 1U);
}

struct FleetSyncDoubt : FleetSyncReads {
    // The first attempt has no answer, those after it are answered `then`.
    std::error_code control_after_silence(std::error_code then) {
        control_request r;
        r.breaker = "b";
        std::error_code result;
        w.store.silent = true;
        const auto call =
            w.sync->control(r, w.now() + 1s, [&](std::error_code ec, const view&) { result = ec; });
        w.store.silent = false;
        w.store.fails = then;
        w.run(2s);
        EXPECT_GE(w.store.controls.size(), 2U);
        return result;
    }
};

TEST_F(FleetSyncDoubt, WhatMayHaveHappenedIsNotSaidToBeUndone) {
    for (const auto then : {trinco::errc::unavailable, trinco::errc::busy, trinco::errc::denied,
                            trinco::errc::conflict}) {
        w.store.controls.clear();
        EXPECT_EQ(control_after_silence(then), trinco::errc::unknown_outcome)
            << make_error_code(then).message();
    }
}

TEST_F(FleetSyncDoubt, AnAnswerEndsIt) {
    EXPECT_FALSE(control_after_silence({}));
}

TEST_F(FleetSyncDoubt, WhatNeverReachedTheStoreIsSaidToBeUndone) {
    w.store.fails = trinco::errc::unavailable;
    control_request r;
    r.breaker = "b";
    std::error_code result;
    const auto call =
        w.sync->control(r, w.now() + 1s, [&](std::error_code ec, const view&) { result = ec; });
    w.run(2s);
    EXPECT_GE(w.store.controls.size(), 2U);
    EXPECT_EQ(result, trinco::errc::unavailable);
}

// A completion that drops its own op, and says whether it outlived that.
template <class T>
completion<T> dropping(op& own, bool& outlived) {
    return [&own, &outlived, mine = std::make_shared<int>(0)](std::error_code, const T&) {
        const std::weak_ptr<int> watch = mine;
        bool& told = outlived;
        own.cancel();
        told = !watch.expired();
    };
}

TEST_F(FleetSyncReads, AnOpMayBeDroppedInsideItsCompletion) {
    bool outlived[4] = {};
    op read;
    read = m->refresh(dropping<int>(read, outlived[0]));
    op hand;
    control_request r;
    r.breaker = "b";
    hand = w.sync->control(r, w.now() + 1s, dropping<view>(hand, outlived[1]));
    op probe;
    probe = m->ask_probe(dropping<probe_answer>(probe, outlived[2]));
    w.run(10ms);
    op stop;
    stop = w.sync->stop(w.now() + 1s, dropping<int>(stop, outlived[3]));
    w.run(10ms);
    for (std::size_t i = 0; i < std::size(outlived); ++i) EXPECT_TRUE(outlived[i]) << i;
}

TEST_F(FleetSyncReads, AStopThatIsNotAnsweredMayBeDroppedInsideItsCompletion) {
    bool outlived = false;
    w.store.silent = true;
    port.add(1, 0);
    op stop;
    stop = w.sync->stop(w.now() + 50ms, dropping<int>(stop, outlived));
    w.run(100ms);
    EXPECT_TRUE(outlived);
}

}  // namespace
