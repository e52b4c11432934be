// What governs a call: flags over the file over the defaults.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/command_line/arguments.hpp"
#include "core/breaker/policy.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using entries = std::vector<policy_entry>;

// The rules, or the sentence of the problem in their place.
std::variant<call_rules, std::string> read(const std::vector<std::string>& words,
                                           const entries& file = {}) {
    call_flags flags;
    arguments all;
    flags.declare(all);
    if (const auto bad = all.parse(words)) return bad->sentence;
    auto rules = flags.rules(file);
    if (const auto* bad = std::get_if<problem>(&rules)) {
        EXPECT_EQ(64, bad->code);
        return bad->sentence;
    }
    return std::get<call_rules>(rules);
}

call_rules rules_of(const std::vector<std::string>& words, const entries& file = {}) {
    const auto r = read(words, file);
    if (const auto* why = std::get_if<std::string>(&r)) ADD_FAILURE() << *why;
    return std::holds_alternative<call_rules>(r) ? std::get<call_rules>(r) : call_rules{};
}

std::string complaint(const std::vector<std::string>& words, const entries& file = {}) {
    const auto r = read(words, file);
    return std::holds_alternative<std::string>(r) ? std::get<std::string>(r) : "(none)";
}

#define EXPECT_SAYS(part, sentence) \
    EXPECT_NE(std::string::npos, std::string(sentence).find(part)) << (sentence)

TEST(CallRules, DefaultsAreOfRareCalls) {
    const call_rules r = rules_of({});
    EXPECT_EQ(0.5, r.options.failure_rate);
    EXPECT_EQ(5U, r.options.minimum_calls);
    EXPECT_EQ(5min, r.options.window);
    EXPECT_EQ(75, r.code_open);
    EXPECT_EQ(without_store::run, r.no_store);
    EXPECT_FALSE(r.configured);
    EXPECT_FALSE(r.timeout);
    EXPECT_TRUE(r.fallback.empty());
    EXPECT_FALSE(validate(r.options));
}

TEST(CallRules, AShareMayBeWrittenInPercent) {
    EXPECT_EQ(0.3, rules_of({"--failure-rate", "30%"}).options.failure_rate);
    EXPECT_EQ(0.3, rules_of({}, {{"failure_rate", "30%", "f:1"}}).options.failure_rate);
    EXPECT_EQ(0.125, rules_of({}, {{"failure_rate", "12.5 %", "f:1"}}).options.failure_rate);
    EXPECT_SAYS("allowed is more than 0", complaint({}, {{"failure_rate", "300%", "f:1"}}));
    EXPECT_SAYS("allowed is more than 0", complaint({}, {{"failure_rate", "%", "f:1"}}));
    EXPECT_SAYS("is not a number", complaint({"--failure-rate", "x%"}));
    EXPECT_SAYS("--minimum-calls", complaint({"--minimum-calls", "30%"}));
}

TEST(CallRules, WhatDoesNotFitTogetherIsNamedWithItsPlace) {
    const entries file{{"open_for", "20min", "f:1"}, {"open_max", "10min", "f:2"}};
    EXPECT_EQ(0U, complaint({}, file).find("f:2: "));
    const std::string of_flag = complaint({"--open-max", "11min"}, file);
    EXPECT_SAYS("open_max is 11 min", of_flag);
    EXPECT_EQ(std::string::npos, of_flag.find("f:")) << of_flag;
}

TEST(CallRules, EveryOptionOfTheFleetHasAFlag) {
    const call_rules r = rules_of(
        {"--failure-rate",   "0.25", "--minimum-calls", "7",    "--window",           "20s",
         "--window-slices",  "4",    "--failure-count", "9",    "--slow-call-after",  "1s",
         "--slow-call-rate", "0.9",  "--open-for",      "3s",   "--open-backoff",     "1.5",
         "--open-max",       "1min", "--jitter",        "0",    "--half-open-probes", "2",
         "--probe-timeout",  "4s",   "--recovery-ramp", "6s",   "--quorum",           "1",
         "--live-for",       "30s",  "--sync-interval", "50ms", "--exchange-budget",  "100",
         "--key-ttl",        "2h",   "--store-timeout", "2s"});
    detail::policy wanted{0.25, 7, 20s, 4,  9, 0.9, true, 3s,  1.5, 1min,
                          0,    2, 4s,  6s, 1, 30s, 50ms, 100, 2h};
    EXPECT_EQ(wanted, detail::policy_of(r.options));
    EXPECT_EQ(1s, r.options.slow_call_after);
    EXPECT_EQ(2s, r.options.store_timeout);
    EXPECT_TRUE(r.configured);
}

TEST(CallRules, FlagsBeatTheFile) {
    const entries file = {{"failure_rate", "0.2", "t:1"},   {"window", "20s", "t:2"},
                          {"timeout", "3s", "t:3"},         {"failure_exit", "1", "t:4"},
                          {"fallback", "cat x", "t:5"},     {"code_open", "0", "t:6"},
                          {"on_no_store", "refuse", "t:7"}, {"grace", "1s", "t:8"}};
    const call_rules r =
        rules_of({"--window", "30s", "--timeout", "5s", "--fallback", "cat y"}, file);
    EXPECT_EQ(0.2, r.options.failure_rate);
    EXPECT_EQ(30s, r.options.window);
    EXPECT_EQ(5s, r.timeout);
    EXPECT_EQ(1s, r.grace);
    EXPECT_EQ("y", r.fallback.at(1));
    EXPECT_EQ(0, r.code_open);
    EXPECT_EQ(without_store::refuse, r.no_store);
    EXPECT_TRUE(r.exits.failures.value_or(exit_code_set()).test(1));
}

TEST(CallRules, OnlyWhatTheFleetAgreesOnConfiguresIt) {
    EXPECT_FALSE(rules_of({"--timeout", "5s", "--failure-exit", "1", "--store-timeout", "2s",
                           "--slow-call-after", "1s"})
                     .configured);
    EXPECT_TRUE(rules_of({"--open-for", "5s"}).configured);
    EXPECT_TRUE(rules_of({}, {{"window", "5s", "t:1"}}).configured);
    EXPECT_FALSE(rules_of({}, {{"timeout", "5s", "t:1"}}).configured);
}

TEST(CallRules, DefaultsFollowWhatIsGiven) {
    EXPECT_EQ(5min, rules_of({"--timeout", "1min"}).options.probe_timeout);
    EXPECT_EQ(10min + 4s, rules_of({"--timeout", "10min"}).options.probe_timeout);
    EXPECT_EQ(1h, rules_of({"--timeout", "2h"}).options.probe_timeout);
    EXPECT_EQ(1s, rules_of({"--timeout", "10min", "--probe-timeout", "1s"}).options.probe_timeout);
    EXPECT_EQ(20min, rules_of({"--open-for", "20min"}).options.open_max);
    EXPECT_SAYS("open_max is 1 min", complaint({"--open-for", "20min", "--open-max", "1min"}));
}

TEST(CallRules, MistakesOfTheFileNameTheirPlace) {
    EXPECT_EQ("t:9: the option window: \"20\" has no unit: 20s are seconds, 20ms milliseconds",
              complaint({}, {{"window", "20", "t:9"}}));
    EXPECT_SAYS("t:9: ", complaint({}, {{"timeout", "-1s", "t:9"}}));
    EXPECT_SAYS("t:9: ", complaint({}, {{"failure_exit", "x", "t:9"}}));
    EXPECT_SAYS("has no window of its own", complaint({}, {{"count_window", "20", "t:9"}}));
    EXPECT_SAYS("did you mean window?", complaint({}, {{"windwo", "2s", "t:9"}}));
    EXPECT_SAYS("run or refuse", complaint({}, {{"on_no_store", "x", "t:9"}}));
    EXPECT_SAYS("0 to 255", complaint({}, {{"code_open", "1-2", "t:9"}}));
}

TEST(CallRules, MistakesOfFlags) {
    EXPECT_SAYS("more than 0", complaint({"--failure-rate", "0"}));
    EXPECT_SAYS("--failure-rate", complaint({"--failure-rate", "1.5"}));
    EXPECT_SAYS("--ignore-exit", complaint({"--ignore-exit", "1-"}));
    EXPECT_SAYS("--failure-exit and in --ignore-exit",
                complaint({"--ignore-exit", "1", "--failure-exit", "1"}));
    EXPECT_SAYS("--code-open", complaint({"--code-open", "256"}));
    EXPECT_SAYS("run or refuse", complaint({"--on-no-store", "fail"}));
    EXPECT_SAYS("no word to run", complaint({"--fallback", " "}));
    EXPECT_SAYS("no unit", complaint({"--timeout", "3"}));
    EXPECT_SAYS("--timeout", complaint({"--timeout", "0s"}));
}

}  // namespace
}  // namespace trinco::program
