// Views in words.
#include <gtest/gtest.h>

#include <string>

#include "apps/trinco/breakers/view_words.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::view;

view in(breaker_state state, std::string reason = {}, std::chrono::milliseconds remaining = 0ms) {
    view v;
    v.state = state;
    v.reason = std::move(reason);
    v.remaining = remaining;
    return v;
}

TEST(ViewWords, SayTheStateAndWhatComesNext) {
    EXPECT_EQ("a is closed", sentence_of("a", {}));
    EXPECT_EQ("a is recovering (recovered); all calls go through in 3 s",
              sentence_of("a", in(breaker_state::closed, "recovered", 3s)));
    EXPECT_EQ("a is open (failure_rate); probes begin in 8.4 s",
              sentence_of("a", in(breaker_state::open, "failure_rate", 8'400ms)));
    EXPECT_EQ("a is open (x); the next call probes",
              sentence_of("a", in(breaker_state::open, "x")));
    EXPECT_EQ("a is half open (probing)",
              sentence_of("a", in(breaker_state::half_open, "probing")));
}

TEST(ViewWords, SayWhatAnOperatorLaidOverIt) {
    view v = in(breaker_state::open, "maintenance (by ann@shop)", 2s);
    v.over = override_kind::forced_open;
    v.over_remaining = 90min;
    EXPECT_EQ(
        "a is forced open, by an operator: maintenance (by ann@shop); for another 1 h 30 min; "
        "beneath it is open; probes begin in 2 s",
        sentence_of("a", v));
    EXPECT_EQ("forced_open", word_of(v));
    v.over = override_kind::observing;
    EXPECT_EQ("observing", word_of(v));
    v.over = override_kind::none;
    EXPECT_EQ("open", word_of(v));
}

TEST(ViewWords, ARefusalNamesWhoWhyAndWhen) {
    const view open = in(breaker_state::open, "failure_rate", 8'400ms);
    EXPECT_EQ(
        "a is open (failure_rate), refused by the shared breaker; retry in 8.4 s",
        refusal_sentence("a", open, {refused_by::fleet_breaker, refusal_reason::open, 8'400ms}));
    EXPECT_EQ(
        "a is open (failure_rate), refused by the breaker that stands in on this machine; retry in "
        "1 s",
        refusal_sentence("a", open, {refused_by::fleet_breaker, refusal_reason::open, 1s}, true));
    EXPECT_EQ("a is open (operator trip, by ann@shop), refused by the shared breaker; retry in 1 s",
              refusal_sentence("a", in(breaker_state::open, "operator trip (by ann@shop)", 1s),
                               {refused_by::fleet_breaker, refusal_reason::open, 1s}));
    const view probing = in(breaker_state::half_open, "probing");
    EXPECT_EQ(
        "a is half open (probing) and all its probes are out, refused by the shared breaker; retry "
        "in 10 ms",
        refusal_sentence("a", probing,
                         {refused_by::fleet_breaker, refusal_reason::no_probe_left, 10ms}));
    view forced = in(breaker_state::closed, "maintenance (by ann@shop)");
    forced.over = override_kind::forced_open;
    EXPECT_EQ("a is forced open (maintenance, by ann@shop), refused by the operator; retry in 1 h",
              refusal_sentence("a", forced,
                               {refused_by::operator_override, refusal_reason::forced_open, 1h}));
    EXPECT_EQ("a is recovering (recovered), refused by the recovery ramp; retry in 10 ms",
              refusal_sentence("a", in(breaker_state::closed, "recovered", 5s),
                               {refused_by::ramp, refusal_reason::recovering, 10ms}));
}

TEST(ViewWords, Shares) {
    EXPECT_EQ("-", share_text(0, 0));
    EXPECT_EQ("0 %", share_text(0, 7));
    EXPECT_EQ("33.3 %", share_text(1, 3));
    EXPECT_EQ("50 %", share_text(5, 10));
    EXPECT_EQ("100 %", share_text(4, 4));
}

TEST(ViewWords, Json) {
    view v = in(breaker_state::open, "say \"no\"", 2s);
    v.era = 7;
    v.rev = 2;
    v.backoff_level = 3;
    json_object plain;
    add_view(plain, v);
    EXPECT_EQ(R"({"state":"open","in_force":"open","reason":"say \"no\"","override":null,)"
              R"("remaining_ms":2000,"backoff_level":3,"era":7,"rev":2})",
              plain.text());
    v.over = override_kind::disabled;
    v.over_remaining = 5s;
    json_object laid_over;
    add_view(laid_over, v);
    EXPECT_EQ(
        R"({"state":"open","in_force":"disabled","reason":null,"override":{"kind":"disabled",)"
        R"("reason":"say \"no\"","remaining_ms":5000},"remaining_ms":2000,"backoff_level":3,)"
        R"("era":7,"rev":2})",
        laid_over.text());
}

}  // namespace
}  // namespace trinco::program
