// Silence of the store, and its end.
#include <gtest/gtest.h>

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
    EXPECT_EQ(w.sync->statistics().times_degraded, 1U);
    EXPECT_EQ(w.sync->statistics().degraded_time, w.now() - (silent_since + 1s));
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
    const auto degraded = w.sync->statistics().degraded_time;
    w.run(5s);
    EXPECT_EQ(w.sync->statistics().degraded_time, degraded);
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
    EXPECT_GE(w.sync->statistics().exchanges_failed, 10U);
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

}  // namespace
