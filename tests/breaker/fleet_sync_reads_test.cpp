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

TEST_F(FleetSyncReads, RefreshReadsAtOnceAndAdoptsBeforeItCompletes) {
    w.store.truth["b"] = view_of_era(500, breaker_state::open);
    port.add(5, 5);
    era_t known_then = 0;
    const auto read = m->refresh([&](std::error_code ec, int) {
        EXPECT_FALSE(ec);
        known_then = port.told.back().fleet.era;
    });
    w.run(2ms);
    EXPECT_EQ(known_then, 500U);
    ASSERT_EQ(w.store.exchanges.size(), 1U);
    EXPECT_EQ(w.store.exchanges[0].request.at(0).seq, 0U) << "outcomes stay in batches";
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
    EXPECT_EQ(w.store.exchanges.size(), 2U);
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
}

TEST_F(FleetSyncReads, CancelledRefreshNeverCompletes) {
    bool ran = false;
    auto read = m->refresh([&](std::error_code, int) { ran = true; });
    read.cancel();
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

}  // namespace
