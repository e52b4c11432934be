// look(): what is shown without an exchange, and when that is not enough.
#include <gtest/gtest.h>

#include "record_lab.hpp"

namespace trinco::detail::test {
namespace {

struct RecordLook : ::testing::Test {
    record_lab lab;

    [[nodiscard]] look_request knowing() const {
        look_request q;
        q.breaker = "payments";
        q.mine = lab.seen();
        return q;
    }
    [[nodiscard]] glance look() const { return look(knowing()); }
    [[nodiscard]] glance look(const look_request& q) const {
        const fleet_record before = lab.r;
        glance g = trinco::detail::look(lab.r, q, lab.now);
        EXPECT_EQ(before, lab.r);
        return g;
    }
};

TEST_F(RecordLook, AnEmptyRecordAsksForAnExchange) {
    const glance g = look();
    EXPECT_TRUE(g.exchange_first);
    EXPECT_EQ(g.fleet.era, 0U);
    EXPECT_EQ(g.fleet.state, breaker_state::closed);
}

TEST_F(RecordLook, WhoKnowsWhatTheRecordKnowsNeedsNoExchange) {
    lab.hello("a");
    EXPECT_FALSE(look().exchange_first);
    lab.open_it();
    EXPECT_FALSE(look().exchange_first);
    lab.control(control_verb::disable, 1);
    EXPECT_FALSE(look().exchange_first);
    EXPECT_EQ(look().fleet.over, override_kind::disabled);
}

TEST_F(RecordLook, TimesAreLeftFromTheMomentOfTheLook) {
    lab.hello("a");
    lab.control(control_verb::trip, 1, 4s);
    EXPECT_EQ(look().fleet.remaining, 4s);
    lab.pass(1'500'001us);
    EXPECT_EQ(look().fleet.remaining, 2'500ms) << "rounded up";
    lab.now -= 1h;
    EXPECT_EQ(look().fleet.remaining, 4s) << "the record's clock does not step back";
}

TEST_F(RecordLook, OneEraOrRevMoreIsMore) {
    lab.hello("a");
    look_request q = knowing();
    ++q.mine.rev;
    EXPECT_TRUE(look(q).exchange_first);
    q.mine.rev = 0;
    ++q.mine.era;
    EXPECT_TRUE(look(q).exchange_first);
    lab.open_it();
    q.mine.era = lab.r.era - 1;
    q.mine.rev = 1'000;
    EXPECT_FALSE(look(q).exchange_first);
}

TEST_F(RecordLook, StampsMustBeEqual) {
    lab.hello("a");
    look_request q = knowing();
    for (const int by : {-1, 1}) {
        q.mine.options_stamp = lab.r.options_stamp + static_cast<std::uint64_t>(by);
        EXPECT_TRUE(look(q).exchange_first) << by;
    }
}

TEST_F(RecordLook, WhatRanOutIsNotShownAndWaitsForAnExchange) {
    lab.hello("a");
    lab.control(control_verb::force_open, 1, 1s);
    lab.pass(999'999us);
    EXPECT_FALSE(look().exchange_first);
    EXPECT_EQ(look().fleet.over_remaining, 1ms);
    lab.pass(1us);
    EXPECT_TRUE(look().exchange_first);
    EXPECT_EQ(look().fleet.over, override_kind::none);
    lab.hello("a");
    EXPECT_FALSE(look().exchange_first);
    lab.control(control_verb::set, 2, 1s, "quorum=1");
    EXPECT_FALSE(look().exchange_first);
    lab.pass(1s);
    EXPECT_TRUE(look().exchange_first);
}

TEST_F(RecordLook, ADueSuspicionWaitsForAnExchange) {
    lab.hello("a");
    lab.hello("b");
    lab.report("a", calls(0, 20));
    lab.report("b", calls(0, 20));
    ASSERT_NE(lab.r.suspect_since.count(), 0);
    EXPECT_FALSE(look().exchange_first) << "the others still answer the flush";
    lab.pass(19'999us);
    EXPECT_FALSE(look().exchange_first);
    lab.pass(1us);
    EXPECT_TRUE(look().exchange_first);
    lab.hello("a");
    EXPECT_EQ(look().fleet.state, breaker_state::open);
    EXPECT_FALSE(look().exchange_first);
}

TEST_F(RecordLook, AnImpossibleViewKnowsNothing) {
    lab.hello("a");
    look_request q = knowing();
    q.mine.era = max_era;
    q.mine.options_stamp = lab.r.options_stamp;
    EXPECT_TRUE(look(q).exchange_first) << "not even the options";
    EXPECT_EQ(look(q).fleet.era, 0U);
}

}  // namespace
}  // namespace trinco::detail::test
