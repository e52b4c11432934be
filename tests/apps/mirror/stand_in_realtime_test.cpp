// The breaker that stands in for a server's, over a store in memory: what it makes of what the
// server says, and that it can decide by itself then.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "apps/trinco/call/call_breaker.hpp"
#include "apps/trinco/mirror/row.hpp"
#include "apps/trinco/mirror/stand_in.hpp"
#include "core/breaker/policy.hpp"
#include "trinco/memory.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using kind = admission::kind_t;
using detail::view;

class StandIn : public testing::Test {
protected:
    static breaker_options options() {
        breaker_options o = call_defaults();
        o.store_timeout = 5s;
        o.degraded_after = 5s;
        o.jitter = 0;
        o.open_for = 10s;
        return o;
    }
    static told says(breaker_state state, std::chrono::milliseconds remaining = 0ms,
                     override_kind over = override_kind::none) {
        told t;
        t.fleet.era = 77;
        t.fleet.state = state;
        t.fleet.remaining = remaining;
        t.fleet.over = over;
        t.fleet.over_remaining = over == override_kind::none ? 0ms : 1h;
        t.fleet.reason = "as there";
        t.options = {to_text(detail::policy_of(options())), 2'000};
        return t;
    }
    void hear(const told& t, counts n = {}) {
        stand_in here(at_, "pay");
        here.agree(t);
        here.count(n, t.options.text);
    }
    kind call(outcome how) {
        call_breaker here(at_, "pay", options(), false);
        const kind k = here.ask({}).kind;
        EXPECT_FALSE(here.settle(how, 1ms));
        return k;
    }
    detail::report row() {
        auto r = row::read(at_, "pay");
        return r ? *r : detail::report{};
    }

    store at_ = open("memory:", {drivers::memory()}, {.instance = "i", .voter = "v"});
};

TEST_F(StandIn, SaysAndCountsWhatTheServerDoes) {
    counts failed;
    failed.failure = 1;
    hear(says(breaker_state::closed), failed);
    EXPECT_EQ(1U, row().now.window.failure);
    hear(says(breaker_state::open, 1min));
    EXPECT_EQ(breaker_state::open, row().now.fleet.state);
    EXPECT_GT(row().now.fleet.remaining, 50s);
    EXPECT_EQ("as there", row().now.fleet.reason);
    hear(says(breaker_state::open, 1min, override_kind::forced_open));
    EXPECT_EQ(override_kind::forced_open, row().now.fleet.over);
    hear(says(breaker_state::closed));
    EXPECT_EQ(override_kind::none, row().now.fleet.over);
    EXPECT_EQ(breaker_state::closed, row().now.fleet.state);
    EXPECT_EQ(0U, row().now.window.judged());
}

TEST_F(StandIn, KeepsItsWindowWhileTheyAgree) {
    counts failed;
    failed.failure = 1;
    for (int i = 0; i < 3; ++i) hear(says(breaker_state::closed), failed);
    EXPECT_EQ(3U, row().now.window.failure);
}

TEST_F(StandIn, TakesBackWhatItDecidedAlone) {
    hear(says(breaker_state::closed));
    for (int i = 0; i < 5; ++i) call(outcome::failure);
    EXPECT_EQ(breaker_state::open, row().now.fleet.state);
    hear(says(breaker_state::closed));
    EXPECT_EQ(breaker_state::closed, row().now.fleet.state);
    EXPECT_EQ(0U, row().now.window.judged());
}

TEST_F(StandIn, DecidesNothingWhileItOnlyHears) {
    counts failed;
    failed.failure = 1;
    for (int i = 0; i < 5; ++i) hear(says(breaker_state::closed), failed);
    EXPECT_EQ(breaker_state::closed, row().now.fleet.state);
}

TEST_F(StandIn, CountsWhatTheServerDidNotAndKeepsItsState) {
    counts failed;
    failed.failure = 1;
    hear(says(breaker_state::open, 1min));
    hear(says(breaker_state::closed));
    stand_in(at_, "pay").count(failed, says(breaker_state::closed).options.text);
    EXPECT_EQ(1U, row().now.window.failure);
    for (int i = 0; i < 5; ++i) call(outcome::failure);
    const auto era = row().now.fleet.era;
    EXPECT_EQ(breaker_state::open, row().now.fleet.state);
    stand_in(at_, "pay").count(failed, says(breaker_state::closed).options.text);
    EXPECT_EQ(era, row().now.fleet.era);
}

// The probes of the server bind nobody here.
TEST_F(StandIn, ProbesByItselfAfterAnOpeningThatItHeardOf) {
    hear(says(breaker_state::open, 0ms));
    for (int i = 0; call(outcome::success) == kind::refused; ++i) ASSERT_LT(i, 1'000);
    EXPECT_EQ(breaker_state::half_open, row().now.fleet.state);
}

TEST_F(StandIn, WaitsAtMostHalfOfOpenForInPlaceOfProbesOfOthers) {
    for (int i = 0; i < 20; ++i) {
        hear(says(breaker_state::closed));
        hear(says(breaker_state::half_open));
        EXPECT_EQ(breaker_state::open, row().now.fleet.state);
        EXPECT_LE(row().now.fleet.remaining, options().open_for / 2);
    }
    const auto era = row().now.fleet.era;
    hear(says(breaker_state::half_open));
    EXPECT_EQ(era, row().now.fleet.era);
}

TEST_F(StandIn, SetOptionsAreSetAndUnsetOnesAreNot) {
    told t = says(breaker_state::closed);
    detail::policy p = detail::policy_of(options());
    p.window = 20s;
    t.options = {to_text(p), 2'001};
    hear(t);
    EXPECT_TRUE(row().options_set);
    EXPECT_EQ(t.options.text, row().options);
    // Options of a call do not replace them.
    call_breaker own(at_, "pay", options(), true);
    EXPECT_EQ(kind::counted, own.ask({}).kind);
    EXPECT_FALSE(own.settle(outcome::success, 1ms));
    EXPECT_EQ(t.options.text, row().options);
    t.options = {to_text(detail::policy_of(options())), 2'002};
    hear(t);
    EXPECT_FALSE(row().options_set);
    EXPECT_EQ(t.options.text, row().options);
}

TEST_F(StandIn, OverridesAloneLeaveTheState) {
    hear(says(breaker_state::closed));
    for (int i = 0; i < 5; ++i) call(outcome::failure);
    stand_in(at_, "pay")
        .agree_on_override(says(breaker_state::closed, 0ms, override_kind::observing).fleet);
    EXPECT_EQ(override_kind::observing, row().now.fleet.over);
    EXPECT_EQ(breaker_state::open, row().now.fleet.state);
    stand_in(at_, "pay").agree_on_override(says(breaker_state::closed).fleet);
    EXPECT_EQ(override_kind::none, row().now.fleet.over);
}

}  // namespace
}  // namespace trinco::program
