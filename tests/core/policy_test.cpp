#include "core/breaker/policy.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/core/property.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

double some_rate() {
    return (static_cast<double>(*rc::gen::arbitrary<std::uint32_t>()) + 1.0) / 4294967296.0;
}

milliseconds between(milliseconds low, milliseconds high) {
    return milliseconds(*rc::gen::inRange<std::int64_t>(low.count(), high.count() + 1));
}

std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return *rc::gen::inRange<std::uint32_t>(low, high + 1);
}

policy some_policy() {
    policy p;
    p.failure_rate = some_rate();
    p.minimum_calls = number(1, 1'000'000);
    p.window = between(600ms, 1h);
    p.window_slices = number(2, 60);
    p.failure_count = number(0, 1'000'000);
    p.slow_call_rate = some_rate();
    p.slow_calls = *rc::gen::arbitrary<bool>();
    p.open_for = between(10ms, 24h);
    p.open_backoff = 1.0 + 9.0 * some_rate();
    p.open_max = between(p.open_for, 24h);
    p.jitter = some_rate();
    p.half_open_probes = number(1, 1'000);
    p.probe_timeout = between(10ms, 1h);
    p.recovery_ramp = *rc::gen::arbitrary<bool>() ? between(10ms, 1h) : 0ms;
    p.quorum = number(1, 100);
    p.live_for = between(1s, 1h);
    p.sync_interval = between(10ms, 300ms);
    p.exchange_budget = number(1, 100'000);
    p.key_ttl = between(p.live_for, 30 * 24h);
    return p;
}

TEST(PolicyText, RoundTrips) {
    EXPECT_TRUE(test::holds("parse_policy(to_text(p)) == p", 2000, [] {
        const auto p = some_policy();
        const auto read = parse_policy(to_text(p), policy{});
        if (const auto* error = std::get_if<option_error>(&read)) RC_FAIL(error->message());
        RC_ASSERT(std::get<policy>(read) == p);
    }));
}

TEST(PolicyText, RoundNumbersRoundTrip) {
    policy p;
    p.minimum_calls = 1'000'000;
    p.failure_count = 200'000;
    p.exchange_budget = 100'000;
    const auto read = parse_policy(to_text(p), policy{});
    ASSERT_NE(std::get_if<policy>(&read), nullptr) << to_text(p);
    EXPECT_EQ(std::get<policy>(read), p);
}

TEST(PolicyText, IsTheLineThatIsDocumented) {
    EXPECT_EQ(to_text(policy{}),
              "failure_rate=0.5 minimum_calls=20 window_ms=10000 window_slices=10 failure_count=0 "
              "slow_call_rate=1 slow_calls=0 open_for_ms=10000 open_backoff=2 open_max_ms=300000 "
              "jitter=0.1 half_open_probes=5 probe_timeout_ms=10000 recovery_ramp_ms=0 quorum=2 "
              "live_for_ms=60000 sync_interval_ms=100 exchange_budget=200 key_ttl_ms=3600000");
}

TEST(PolicyText, UnnamedKeysKeepTheBase) {
    policy base;
    base.quorum = 9;
    base.slow_calls = true;
    const auto read = parse_policy("open_for_ms=500 failure_rate=0.25", base);
    auto expected = base;
    expected.open_for = 500ms;
    expected.failure_rate = 0.25;
    EXPECT_EQ(std::get<policy>(read), expected);
    EXPECT_EQ(std::get<policy>(parse_policy("", base)), base);
}

TEST(PolicyText, EachErrorIsOneSentence) {
    const auto error = [](std::string_view text) {
        const auto read = parse_policy(text, policy{});
        const auto* bad = std::get_if<option_error>(&read);
        return bad == nullptr ? std::string("taken") : bad->message();
    };
    EXPECT_EQ(error("quorum"), "an option is \"quorum\", but must be key=value");
    EXPECT_EQ(error("quorum=2  jitter=0"), "an option is \"\", but must be key=value");
    EXPECT_EQ(error("quorum=2 quorum=2"), "quorum is \"2\", but must be given only once");
    EXPECT_EQ(error("quorum=two"), "quorum is \"two\", but must be 1 to 100");
    EXPECT_EQ(error("quorum=-1"), "quorum is \"-1\", but must be 1 to 100");
    EXPECT_EQ(error("quorum=0"), "quorum is 0, but must be 1 to 100");
    EXPECT_EQ(error("window_ms=10s"), "window_ms is \"10s\", but must be 100 ms to 1 h");
    EXPECT_EQ(error("failure_rate=nan"),
              "failure_rate is nan, but must be more than 0 and at most 1");
    EXPECT_EQ(error("slow_calls=yes"), "slow_calls is \"yes\", but must be 0 or 1");
    EXPECT_EQ(error("open_max_ms=5000"), "open_max is 5 s, but must be open_for (10 s) to 24 h");
    const std::string one_of = ", but must be one of failure_rate, minimum_calls, window_ms, ";
    EXPECT_EQ(error("window=10000").find("the key of an option is \"window\"" + one_of), 0U);
    EXPECT_EQ(
        error("store_timeout_ms=5").find("the key of an option is \"store_timeout_ms\"" + one_of),
        0U);
}

TEST(PolicyText, AnyBytesAreAnAnswerAndNeverMore) {
    EXPECT_TRUE(test::holds("parse_policy takes any bytes", 1000, [](const std::string& text) {
        const auto read = parse_policy(text, policy{});
        if (const auto* bad = std::get_if<option_error>(&read)) {
            RC_ASSERT(bad->message().size() < 1'000U);
        }
    }));
}

TEST(Policy, SendsAtLeastTwiceInAWindow) {
    breaker_options o;
    o.window = 100ms;
    EXPECT_FALSE(validate(o));
    EXPECT_EQ(policy_of(o).sync_interval, 50ms);
    o.window = 200ms;
    EXPECT_EQ(policy_of(o).sync_interval, 100ms);
}

TEST(Policy, TakesItsMembersFromTheOptions) {
    breaker_options o;
    o.quorum = 7;
    o.key_ttl = 2h;
    EXPECT_FALSE(policy_of(o).slow_calls);
    EXPECT_EQ(policy_of(o).quorum, 7U);
    EXPECT_EQ(policy_of(o).key_ttl, 2h);
    o.overdue_after = 0ms;
    EXPECT_FALSE(policy_of(o).slow_calls);
    o.overdue_after = 1ms;
    EXPECT_TRUE(policy_of(o).slow_calls);
    o.overdue_after.reset();
    o.slow_call_after = 1s;
    EXPECT_TRUE(policy_of(o).slow_calls);
}

counts calls(std::uint64_t success, std::uint64_t failure, std::uint64_t slow = 0) {
    counts n;
    n.success = success;
    n.failure = failure;
    n.slow_success = slow;
    return n;
}

TEST(Judge, OpensAtTheRateAndNotBelow) {
    policy p;
    EXPECT_EQ(judge(calls(10, 10), p), trip_reason::failure_rate);
    EXPECT_EQ(judge(calls(11, 10), p), trip_reason::none);
    EXPECT_EQ(judge(calls(0, 19), p), trip_reason::none) << "below minimum_calls";
    EXPECT_EQ(judge(calls(0, 20), p), trip_reason::failure_rate);
    EXPECT_EQ(judge(calls(0, 0), p), trip_reason::none);
}

TEST(Judge, ARateIsTheDecimalThatAPersonWrote) {
    policy p;
    p.minimum_calls = 1;
    for (std::uint32_t percent = 1; percent <= 100; ++percent) {
        p.failure_rate = std::strtod(
            ("0." + std::string(percent < 10 ? "0" : "") + std::to_string(percent)).c_str(),
            nullptr);
        if (percent == 100) p.failure_rate = 1;
        EXPECT_EQ(judge(calls(100 - percent, percent), p), trip_reason::failure_rate) << percent;
        EXPECT_EQ(judge(calls(101 - percent, percent - 1), p), trip_reason::none) << percent;
    }
}

TEST(Judge, FailureCountNeedsNoMinimumAndNoRate) {
    policy p;
    p.failure_count = 3;
    EXPECT_EQ(judge(calls(0, 2), p), trip_reason::none);
    EXPECT_EQ(judge(calls(0, 3), p), trip_reason::failure_count);
    EXPECT_EQ(judge(calls(1'000'000, 3), p), trip_reason::failure_count);
}

TEST(Judge, SlowCallsCountOnlyWhereThereAreAny) {
    policy p;
    p.slow_call_rate = 0.5;
    EXPECT_EQ(judge(calls(20, 0, 20), p), trip_reason::none);
    p.slow_calls = true;
    EXPECT_EQ(judge(calls(20, 0, 10), p), trip_reason::slow_call_rate);
    EXPECT_EQ(judge(calls(20, 0, 9), p), trip_reason::none);
    EXPECT_EQ(judge(calls(10, 10, 10), p), trip_reason::failure_rate) << "the failure rate first";
}

TEST(Voter, FailsByItsOwnRateWithoutMinimum) {
    policy p;
    EXPECT_FALSE(voter_is_failing(calls(0, 0), p, 3));
    EXPECT_TRUE(voter_is_failing(calls(1, 1), p, 3));
    EXPECT_FALSE(voter_is_failing(calls(2, 1), p, 3));
    p.slow_calls = true;
    EXPECT_TRUE(voter_is_failing(calls(1, 0, 1), p, 3));
}

TEST(Voter, FailsByItsFairShareOfTheCount) {
    policy p;
    p.failure_count = 10;
    EXPECT_FALSE(voter_is_failing(calls(1'000, 3), p, 3));
    EXPECT_TRUE(voter_is_failing(calls(1'000, 4), p, 3));
    EXPECT_FALSE(voter_is_failing(calls(1'000, 9), p, 0)) << "nobody alive counts as one";
    EXPECT_TRUE(voter_is_failing(calls(1'000, 10), p, 0));
}

TEST(OpenDuration, GrowsToTheMaximumAndIsSpreadBeyond) {
    const policy p;
    EXPECT_EQ(open_duration(p, 0, 0), 10s);
    EXPECT_EQ(open_duration(p, 1, 0), 20s);
    EXPECT_EQ(open_duration(p, 4, 0), 160s);
    EXPECT_EQ(open_duration(p, 5, 0), 300s);
    EXPECT_EQ(open_duration(p, 255, 0), 300s);
    EXPECT_EQ(open_duration(p, 0, 1), 11s);
    EXPECT_EQ(open_duration(p, 0, 0.5), 10'500ms);
    EXPECT_EQ(open_duration(p, 255, 1), 330s);
    EXPECT_EQ(open_duration(p, 0, 7), 11s) << "a share is at most one";
}

TEST(Probes, DecideAsSoonAsClosingIsImpossible) {
    policy p;
    EXPECT_FALSE(closing_is_impossible(2, p));
    EXPECT_TRUE(closing_is_impossible(3, p));
    p.failure_rate = 0.01;
    EXPECT_FALSE(closing_is_impossible(0, p));
    EXPECT_TRUE(closing_is_impossible(1, p));
    p.failure_rate = 1;
    EXPECT_FALSE(closing_is_impossible(4, p));
    EXPECT_TRUE(closing_is_impossible(5, p));
}

TEST(TripReason, EachHasItsOwnName) {
    std::set<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(trip_reason::fleet); ++i) {
        names.insert(name_of(static_cast<trip_reason>(i)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(trip_reason::fleet) + 1);
    EXPECT_EQ(names.count("unknown"), 0U);
}

TEST(Policy, ADifferenceNamesEachKeyWithBothValues) {
    policy own;
    policy in_force;
    EXPECT_EQ(difference_of(in_force, own), "");
    in_force.quorum = 1;
    EXPECT_EQ(difference_of(in_force, own), "quorum=1 (here 2)");
    in_force.failure_rate = 0.25;
    in_force.key_ttl = std::chrono::hours(2);
    own.slow_calls = true;
    EXPECT_EQ(difference_of(in_force, own),
              "failure_rate=0.25 (here 0.5), slow_calls=0 (here 1), quorum=1 (here 2), "
              "key_ttl_ms=7200000 (here 3600000)");
}

}  // namespace
}  // namespace trinco::detail
