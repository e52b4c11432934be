// The breaker of one call, over a store in memory that all "processes" of a test share.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "apps/trinco/breakers/operator.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/call/call_breaker.hpp"
#include "apps/trinco/mirror/told.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "trinco/memory.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using kind = admission::kind_t;
using detail::control_verb;

breaker_options quick() {
    breaker_options o = call_defaults();
    o.store_timeout = 5s;  // nothing here is about time that a busy machine may take
    o.degraded_after = 5s;
    o.open_for = 10ms;
    o.jitter = 0;
    o.half_open_probes = 2;
    return o;
}

class CallBreaker : public testing::Test {
protected:
    // A process of one call.
    struct process {
        process(const driver& kept_in, const std::string& instance, const breaker_options& options,
                bool configured)
            : in{open("memory:", {kept_in}, {.instance = instance, .voter = "machine"}), "", {}},
              breaker(in.at, "pay", options, configured) {}
        breakers_place in;
        call_breaker breaker;
    };

    std::unique_ptr<process> start(bool configured = true) { return start(options_, configured); }
    std::unique_ptr<process> start(const breaker_options& options, bool configured = true) {
        return std::make_unique<process>(kept_in_, "p" + std::to_string(++started_), options,
                                         configured);
    }

    // One whole call; what it was admitted as.
    kind call(outcome how) {
        const auto p = start();
        const kind k = p->breaker.ask({}).kind;
        EXPECT_FALSE(p->breaker.settle(how, 1ms));
        return k;
    }

    void fail(int times) {
        for (int i = 0; i < times; ++i) call(outcome::failure);
    }

    report now() {
        const auto p = start();
        const auto read = read_report(p->in, "pay", "read");
        const auto* found = std::get_if<std::optional<report>>(&read);
        return found != nullptr && *found ? **found : report{};
    }

    void operate_on_it(control_verb verb, std::chrono::milliseconds lasts = 0ms) {
        const auto p = start();
        detail::control_request what;
        what.breaker = "pay";
        what.verb = verb;
        what.expires = lasts;
        EXPECT_TRUE(std::holds_alternative<detail::view>(operate(p->in, what, "change")));
    }

    // Until probes are due.
    void wait_for_probes() { std::this_thread::sleep_for(now().now.fleet.remaining + 1ms); }

    driver kept_in_ = drivers::memory();
    breaker_options options_ = quick();
    int started_ = 0;
};

TEST_F(CallBreaker, CountsWhatCallsEndWith) {
    EXPECT_EQ(kind::counted, call(outcome::success));
    EXPECT_EQ(kind::counted, call(outcome::failure));
    EXPECT_EQ(kind::counted, call(outcome::ignored));
    const report r = now();
    EXPECT_EQ(1U, r.now.window.success);
    EXPECT_EQ(1U, r.now.window.failure);
    EXPECT_EQ(1U, r.now.window.ignored);
    EXPECT_EQ(r.now.window, r.totals);
    EXPECT_EQ(1U, r.now.live);
}

TEST_F(CallBreaker, AskingAloneLeavesNoTrace) {
    const auto p = start();
    EXPECT_EQ(kind::counted, p->breaker.ask({}).kind);
    EXPECT_TRUE(now().breaker.empty());
}

TEST_F(CallBreaker, TheCallThatCrossesTheThresholdOpensIt) {
    options_.open_for = 1min;
    fail(4);
    EXPECT_EQ(breaker_state::closed, now().now.fleet.state);
    const auto fifth = start();
    EXPECT_EQ(kind::counted, fifth->breaker.ask({}).kind);
    EXPECT_FALSE(fifth->breaker.settle(outcome::failure, 1ms));
    EXPECT_EQ(breaker_state::open, fifth->breaker.fleet().state);

    const auto next = start();
    const admission refused = next->breaker.ask({});
    EXPECT_EQ(kind::refused, refused.kind);
    EXPECT_EQ(refused_by::fleet_breaker, refused.why.by);
    EXPECT_EQ(refusal_reason::open, refused.why.reason);
    EXPECT_GT(refused.why.retry_after, 30s);
    EXPECT_LE(refused.why.retry_after, 1min);
    EXPECT_FALSE(next->breaker.settle(outcome::ignored, 0ms));
    EXPECT_EQ(1U, now().totals.rejected);
}

TEST_F(CallBreaker, ASuccessCanCrossItToo) {
    options_.open_for = 1min;
    fail(4);
    call(outcome::success);
    EXPECT_EQ(breaker_state::open, now().now.fleet.state);
}

TEST_F(CallBreaker, NoMoreProbesThanAllowedAreOutAndTheirSuccessCloses) {
    fail(5);
    wait_for_probes();
    const auto first = start();
    const auto second = start();
    const auto third = start();
    EXPECT_EQ(kind::probe, first->breaker.ask({}).kind);
    EXPECT_EQ(kind::probe, second->breaker.ask({}).kind);
    const admission refused = third->breaker.ask({});
    EXPECT_EQ(kind::refused, refused.kind);
    EXPECT_EQ(refusal_reason::no_probe_left, refused.why.reason);
    EXPECT_GE(refused.why.retry_after, 10ms);
    EXPECT_FALSE(first->breaker.settle(outcome::success, 1ms));
    EXPECT_EQ(breaker_state::half_open, now().now.fleet.state);
    EXPECT_FALSE(second->breaker.settle(outcome::success, 1ms));
    EXPECT_EQ(breaker_state::closed, now().now.fleet.state);
    EXPECT_EQ(2U, now().totals.success);
}

TEST_F(CallBreaker, AFailedProbeOpensAgainForLonger) {
    fail(5);
    wait_for_probes();
    EXPECT_EQ(kind::probe, call(outcome::failure));
    const detail::view after = now().now.fleet;
    EXPECT_EQ(breaker_state::open, after.state);
    EXPECT_EQ(1, after.backoff_level);
}

TEST_F(CallBreaker, AnIgnoredProbeGivesItsPlaceToTheNext) {
    options_.half_open_probes = 1;
    fail(5);
    wait_for_probes();
    EXPECT_EQ(kind::probe, call(outcome::ignored));
    EXPECT_EQ(kind::probe, call(outcome::success));
    EXPECT_EQ(breaker_state::closed, now().now.fleet.state);
}

TEST_F(CallBreaker, AProbeThatIsNotSettledIsGivenBackAtTheEnd) {
    options_.half_open_probes = 1;
    fail(5);
    wait_for_probes();
    EXPECT_EQ(kind::probe, start()->breaker.ask({}).kind);
    EXPECT_EQ(kind::probe, start()->breaker.ask({}).kind);
}

TEST_F(CallBreaker, AProbeOfAKilledProcessIsReclaimed) {
    options_.half_open_probes = 1;
    options_.probe_timeout = 300ms;
    fail(5);
    wait_for_probes();
    const auto killed = start();
    static_cast<void>(killed->breaker.ask(20ms));
    // A process that is killed settles nothing; here, it just waits. Its lease was short, and the
    // store waits a tenth of probe_timeout longer.
    kind next = kind::refused;
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (next == kind::refused && std::chrono::steady_clock::now() < end) {
        next = start()->breaker.ask({}).kind;
    }
    // One that vanished of one that is allowed opens it again; then the next may try.
    EXPECT_EQ(kind::probe, next);
}

TEST_F(CallBreaker, ASuccessAfterTheLeaseIsAFailureAndSaysSo) {
    fail(5);
    wait_for_probes();
    const auto slow = start();
    EXPECT_EQ(kind::probe, slow->breaker.ask(10ms).kind);
    std::this_thread::sleep_for(15ms);
    EXPECT_FALSE(slow->breaker.settle(outcome::success, 15ms));
    EXPECT_TRUE(slow->breaker.was_late());
    EXPECT_EQ(breaker_state::open, now().now.fleet.state);
}

TEST_F(CallBreaker, AnOutcomeOfAnOlderEraMovesNothing) {
    const auto old = start();
    EXPECT_EQ(kind::counted, old->breaker.ask({}).kind);
    call(outcome::success);
    operate_on_it(control_verb::reset);
    EXPECT_FALSE(old->breaker.settle(outcome::failure, 1ms));
    EXPECT_EQ(0U, now().now.window.failure);
    EXPECT_EQ(1U, now().totals.failure);
}

TEST_F(CallBreaker, ObeysOperators) {
    call(outcome::success);
    operate_on_it(control_verb::force_open, 1h);
    const admission refused = start()->breaker.ask({});
    EXPECT_EQ(kind::refused, refused.kind);
    EXPECT_EQ(refused_by::operator_override, refused.why.by);
    EXPECT_GT(refused.why.retry_after, 59min);
    operate_on_it(control_verb::disable);
    EXPECT_EQ(kind::counted, call(outcome::success));
    operate_on_it(control_verb::trip, 1h);
    EXPECT_EQ(kind::counted, call(outcome::success));
    operate_on_it(control_verb::observe);
    EXPECT_EQ(kind::uncounted, call(outcome::failure));
    EXPECT_EQ(1U, now().totals.rejected);
    operate_on_it(control_verb::resume);
    EXPECT_EQ(kind::refused, start()->breaker.ask({}).kind);
}

TEST_F(CallBreaker, OneThatWasOpenedBeforeAnybodyUsedItRecovers) {
    operate_on_it(control_verb::trip, 1ms);
    std::this_thread::sleep_for(2ms);
    EXPECT_EQ(kind::probe, call(outcome::success));
    EXPECT_EQ(kind::probe, call(outcome::success));
    EXPECT_EQ(kind::counted, call(outcome::success));
}

TEST_F(CallBreaker, WithoutOptionsOfItsOwnItTakesWhatGoverns) {
    breaker_options service = options_;
    service.window = 10s;
    service.minimum_calls = 3;
    const auto of_service = start(service);
    static_cast<void>(of_service->breaker.ask({}));
    EXPECT_FALSE(of_service->breaker.settle(outcome::failure, 1ms));
    const auto script = start(call_defaults(), false);
    static_cast<void>(script->breaker.ask({}));
    EXPECT_FALSE(script->breaker.settle(outcome::failure, 1ms));
    EXPECT_EQ(10s, script->breaker.rules().window);
    EXPECT_EQ(2U, now().now.window.failure);  // another window would have begun empty
    const auto other = start(options_, true);
    static_cast<void>(other->breaker.ask({}));
    EXPECT_FALSE(other->breaker.settle(outcome::failure, 1ms));
    EXPECT_EQ(1U, now().now.window.failure);
    EXPECT_EQ(5min, other->breaker.rules().window);
}

// Also when it has options of its own.
TEST_F(CallBreaker, WhatAnOperatorSetDecides) {
    options_.open_for = 1min;
    call(outcome::success);
    const auto p = start();
    detail::control_request what;
    what.breaker = "pay";
    what.verb = control_verb::set;
    what.options = "failure_count=2";
    ASSERT_TRUE(std::holds_alternative<detail::view>(operate(p->in, what, "change")));
    fail(2);
    EXPECT_EQ(breaker_state::open, now().now.fleet.state);
}

TEST_F(CallBreaker, WithoutOptionsAnywhereItBringsTheDefaults) {
    const auto script = start(call_defaults(), false);
    static_cast<void>(script->breaker.ask({}));
    EXPECT_FALSE(script->breaker.settle(outcome::success, 1ms));
    EXPECT_NE(std::string::npos, now().options.find("minimum_calls=5 window_ms=300000"));
}

TEST_F(CallBreaker, SettlesOnce) {
    const auto p = start();
    static_cast<void>(p->breaker.ask({}));
    EXPECT_FALSE(p->breaker.settle(outcome::failure, 1ms));
    EXPECT_FALSE(p->breaker.settle(outcome::success, 1ms));
    EXPECT_EQ(1U, now().totals.judged());
}

TEST_F(CallBreaker, MarksSlowCalls) {
    options_.slow_call_after = 50ms;
    const auto p = start();
    static_cast<void>(p->breaker.ask({}));
    EXPECT_FALSE(p->breaker.settle(outcome::success, 50ms));
    const auto q = start();
    static_cast<void>(q->breaker.ask({}));
    EXPECT_FALSE(q->breaker.settle(outcome::success, 49ms));
    EXPECT_EQ(1U, now().now.window.slow_success);
    EXPECT_EQ(2U, now().now.window.success);
}

// All calls of a machine share a few names, so some numbers of batches are overtaken.
TEST_F(CallBreaker, NoOutcomeIsLostOrCountedTwiceUnderASharedName) {
    constexpr int threads = 6;
    constexpr int calls = 40;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            for (int i = 0; i < calls; ++i) {
                process p(kept_in_, t % 2 == 0 ? "shared:1" : "shared:2", options_, true);
                EXPECT_EQ(kind::counted, p.breaker.ask({}).kind);
                EXPECT_FALSE(p.breaker.settle(outcome::success, 1ms));
            }
        });
    }
    for (auto& t : all) t.join();
    EXPECT_EQ(std::uint64_t{threads * calls}, now().totals.success);
}

// A store that has lost its data is told what it said before.
class Lost : public CallBreaker {
protected:
    Lost() { options_.open_for = 1min; }

    told told_by_now() {
        const auto p = start();
        EXPECT_NE(kind::unanswered, p->breaker.ask({}).kind);
        const report r = now();
        return {p->breaker.fleet_now(), {r.options, r.now.fleet.options_stamp}};
    }
    kind call_after(const told& before) {
        const auto p = start(false);
        p->breaker.remember(before.fleet, [&] { return before.options; });
        return p->breaker.ask({}).kind;
    }
    void lose() { kept_in_ = drivers::memory(); }
    void set(const std::string& options) {
        const auto p = start();
        detail::control_request what;
        what.breaker = "pay";
        what.verb = control_verb::set;
        what.options = options;
        EXPECT_TRUE(std::holds_alternative<detail::view>(operate(p->in, what, "set")));
    }
};

TEST_F(Lost, ItIsOpenAgainAndKnowsItsOptions) {
    fail(5);
    const told before = told_by_now();
    EXPECT_EQ(breaker_state::open, before.fleet.state);
    lose();
    EXPECT_EQ(kind::refused, call_after(before));
    EXPECT_EQ(before.fleet.era, now().now.fleet.era);
    EXPECT_EQ(before.fleet.rev, now().now.fleet.rev);
    EXPECT_EQ(before.options.text, now().options);
    EXPECT_EQ(before.options.stamp, now().now.fleet.options_stamp);
}

TEST_F(Lost, WhatAnOperatorHadSetIsSetAgain) {
    fail(5);
    set("failure_count=7");
    const told before = told_by_now();
    EXPECT_TRUE(before.options.are_set());
    lose();
    call_after(before);
    EXPECT_TRUE(now().options_set);
    // A process that brings its own does not replace it.
    call(outcome::success);
    EXPECT_EQ(before.options.text, now().options);
    operate_on_it(control_verb::unset);
    EXPECT_FALSE(now().options_set);
}

TEST_F(Lost, WhatWasSetThereMeanwhileIsLater) {
    fail(5);
    set("failure_count=7");
    const told before = told_by_now();
    lose();
    set("failure_count=9");
    EXPECT_EQ(kind::refused, call_after(before));
    EXPECT_NE(std::string::npos, now().options.find("failure_count=9"));
}

TEST_F(Lost, WhoKnowsMoreIsNotTold) {
    fail(5);
    const told old = told_by_now();
    operate_on_it(control_verb::reset);
    EXPECT_EQ(kind::counted, call_after(old));
    EXPECT_EQ(breaker_state::closed, now().now.fleet.state);
}

TEST_F(CallBreaker, WhoReplacesOptionsOfOthersIsTold) {
    call(outcome::success);
    breaker_options other = options_;
    other.window = 30s;
    const auto p = start(other);
    EXPECT_EQ(kind::counted, p->breaker.ask({}).kind);
    EXPECT_FALSE(p->breaker.settle(outcome::success, 1ms));
    EXPECT_EQ(to_text(detail::policy_of(options_)), p->breaker.replaced_options());
    for (const bool configured : {true, false}) {
        const auto same = start(other, configured);
        EXPECT_EQ(kind::counted, same->breaker.ask({}).kind);
        EXPECT_FALSE(same->breaker.settle(outcome::success, 1ms));
        EXPECT_EQ("", same->breaker.replaced_options());
    }
}

TEST(CallInstanceName, IsOneOfAFewForThisLifeOfTheMachine) {
    const std::string name = call_instance_name();
    EXPECT_LE(name.size(), 64U);
    EXPECT_EQ(name, call_instance_name());
    EXPECT_NE(std::string::npos, name.find(":call:"));
}

TEST(RampShare, GrowsFromATenthToAll) {
    detail::view v;
    v.remaining = 10s;
    EXPECT_DOUBLE_EQ(0.1, ramp_share(v, 10s));
    v.remaining = 5s;
    EXPECT_DOUBLE_EQ(0.55, ramp_share(v, 10s));
    v.remaining = 0s;
    EXPECT_DOUBLE_EQ(1, ramp_share(v, 10s));
    EXPECT_DOUBLE_EQ(1, ramp_share(v, 0s));
    v.remaining = 1h;
    EXPECT_DOUBLE_EQ(0.1, ramp_share(v, 10s));
}

}  // namespace
}  // namespace trinco::program
