// What act (b) claims of what its processes have told: each claim can fail.
#include "apps/trinco/demo/breaker_story.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr microseconds began = 1'000s;

outage without_breaker() {
    outage all;
    all.finished = true;
    all.phases = {{mood::healthy, began},
                  {mood::hanging, began + 1s, 300, 0, 0},
                  {mood::failing, began + 4s, 200, 0, 0},
                  {mood::healthy, began + 6s, 100, 0, 0}};
    all.services.resize(callers);
    for (auto& one : all.services) {
        for (int i = 0; i < 60; ++i) {
            one.calls.push_back({began + 1s + i * 50ms, 2s + 1ms, call_fate::timeout});
        }
    }
    return all;
}

outage with_breaker() {
    auto all = without_breaker();
    all.phases[1].came = 80;
    all.phases[2] = {mood::failing, began + 4s, 2, 2, 2};
    all.phases[3].most_probes = 5;  // each service's own breaker: no claim about those
    for (auto& one : all.services) {
        for (auto& call : one.calls) {
            if (call.at < began + 1'800ms) continue;
            call = {call.at, 2us, call_fate::refused};
        }
        one.changes = {{began + 1'800ms, breaker_state::open},
                       {began + 5s, breaker_state::half_open},
                       {began + 5'100ms, breaker_state::open},
                       {began + 7s, breaker_state::half_open},
                       {began + 7'500ms, breaker_state::closed}};
    }
    return all;
}

bool held(const act_result& what, std::string_view name) {
    const auto found = std::find_if(what.claims.begin(), what.claims.end(),
                                    [&](const claim& one) { return one.name == name; });
    EXPECT_NE(found, what.claims.end()) << name;
    return found != what.claims.end() && found->held;
}

// All others hold.
void expect_only(const outage& without, const outage& with, std::string_view broken) {
    const auto what = judge_outages(without, with);
    ASSERT_EQ(what.claims.size(), 5U);
    for (const auto& one : what.claims) EXPECT_EQ(one.held, one.name != broken) << one.name;
}

TEST(BreakerStory, claims_what_was_seen_with_its_figures) {
    const auto what = judge_outages(without_breaker(), with_breaker());
    ASSERT_EQ(what.claims.size(), 5U);
    EXPECT_EQ(what.claims[0].sentence,
              "all 5 stopped after 0.80 s; the first hanging call returned after 2.00 s");
    EXPECT_EQ(what.claims[1].sentence, "82 calls reached the dead gateway, without a breaker 500");
    EXPECT_EQ(what.claims[2].sentence,
              "while it hung a call took 2.0 us, without a breaker 2.00 s (median)");
    EXPECT_EQ(what.claims[3].sentence, "while it was dead 2 probes tried it, at most 2 at a time");
    EXPECT_EQ(what.claims[4].sentence, "all 5 call again 1.50 s after it was well");
    for (const auto& one : what.claims) {
        EXPECT_TRUE(one.held) << one.name;
        EXPECT_LE(one.sentence.size(), 72U) << one.sentence;
    }
    for (const auto& line : what.summary) EXPECT_LE(line.size(), 76U) << line;
    EXPECT_NE(what.figures.text().find("\"reached_while_dead\":82"), std::string::npos);
}

TEST(BreakerStory, a_service_that_stops_after_the_first_return_or_never_breaks_the_claim) {
    auto late = with_breaker();
    late.services[3].changes[0].at = began + 3'100ms;
    expect_only(without_breaker(), late, "stopped_before_the_first_return");
    auto never = with_breaker();
    never.services[3].changes = {{began + 7'500ms, breaker_state::closed}};
    expect_only(without_breaker(), never, "stopped_before_the_first_return");
    auto before = with_breaker();  // that was another trouble
    before.services[3].changes = {{began + 500ms, breaker_state::open},
                                  {began + 7'500ms, breaker_state::closed}};
    expect_only(without_breaker(), before, "stopped_before_the_first_return");
}

TEST(BreakerStory, as_many_calls_as_without_break_the_claim) {
    auto many = with_breaker();
    many.phases[1].came = 300;
    expect_only(without_breaker(), many, "fewer_calls_reached_the_dead_gateway");
}

TEST(BreakerStory, refusals_that_take_long_break_the_claim) {
    auto slow = with_breaker();
    for (auto& service : slow.services) {
        for (auto& call : service.calls) {
            if (call.fate == call_fate::refused) call.took = 20ms;
        }
    }
    expect_only(without_breaker(), slow, "refused_at_once");
    auto quick = without_breaker();
    for (auto& service : quick.services) {
        for (auto& call : service.calls) call.took = 15ms;
    }
    EXPECT_FALSE(held(judge_outages(quick, with_breaker()), "refused_at_once"));
}

TEST(BreakerStory, too_many_probes_at_a_time_or_none_break_the_claim) {
    auto herd = with_breaker();
    herd.phases[2].most_probes = 3;
    expect_only(without_breaker(), herd, "few_probes");
    auto none = with_breaker();
    none.phases[2].probes = 0;
    expect_only(without_breaker(), none, "few_probes");
}

TEST(BreakerStory, a_service_that_stays_open_breaks_the_claim) {
    auto open = with_breaker();
    open.services[0].changes.pop_back();
    expect_only(without_breaker(), open, "recovered");
    auto reopened = with_breaker();
    reopened.services[0].changes.push_back({began + 8s, breaker_state::open});
    expect_only(without_breaker(), reopened, "recovered");
}

TEST(BreakerStory, reads_the_lines_of_its_services) {
    const auto call = call_in("call 1500000 2345 refused");
    ASSERT_TRUE(call.has_value());
    EXPECT_EQ(call->at, 1'500ms);
    EXPECT_EQ(call->took, std::chrono::nanoseconds(2'345));
    EXPECT_EQ(call->fate, call_fate::refused);
    EXPECT_FALSE(call->probe);
    EXPECT_TRUE(call_in("call 1 2 ok probe")->probe);
    for (const char* other : {"", "call", "call 1 2", "call 1 2 fine", "call x 2 ok", "ready"}) {
        EXPECT_FALSE(call_in(other).has_value()) << other;
    }
    const auto change = state_in("state 7 half_open");
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->at, 7us);
    EXPECT_EQ(change->to, breaker_state::half_open);
    for (const char* other : {"", "state", "state 1", "state 1 broken", "call 1 2 ok"}) {
        EXPECT_FALSE(state_in(other).has_value()) << other;
    }
    EXPECT_EQ(mood_of("hanging"), mood::hanging);
    EXPECT_FALSE(mood_of("cheerful").has_value());
}

TEST(BreakerStory, its_breaker_has_valid_options_that_stop_before_a_call_returns) {
    const auto options = caller_breaker();
    EXPECT_FALSE(validate(options).has_value());
    EXPECT_EQ(options.call_timeout, call_limit);
    EXPECT_LT(*options.overdue_after, call_limit / 2);
}

}  // namespace
}  // namespace trinco::program::demo
