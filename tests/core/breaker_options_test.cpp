#include "trinco/breaker_options.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "core/breaker_options_table.hpp"

namespace trinco {
namespace {

using namespace std::chrono_literals;
using o = breaker_options;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct bad_option {
    std::function<void(o&)> spoil;
    const char* sentence;
};

void expect_sentences(const std::vector<bad_option>& table) {
    for (const auto& bad : table) {
        o options;
        bad.spoil(options);
        const auto error = validate(options);
        ASSERT_TRUE(error) << "not refused: " << bad.sentence;
        EXPECT_EQ(error->message(), bad.sentence);
        EXPECT_NE(detail::find_option(error->key), nullptr) << error->key;
    }
}

TEST(BreakerOptions, TheDefaultsFit) {
    const auto error = validate(o{});
    EXPECT_FALSE(error) << error->message();
}

TEST(BreakerOptions, EachBadRateIsOneSentence) {
    const char* const share = ", but must be more than 0 and at most 1";
    for (const auto& [value, text] :
         std::vector<std::pair<double, std::string>>{{nan_value, "nan"},
                                                     {0, "0"},
                                                     {-0.5, "-0.5"},
                                                     {1.5, "1.5"},
                                                     {infinity, "inf"},
                                                     {-infinity, "-inf"}}) {
        o failure, slow;
        failure.failure_rate = value;
        slow.slow_call_rate = value;
        ASSERT_TRUE(validate(failure)) << text;
        ASSERT_TRUE(validate(slow)) << text;
        EXPECT_EQ(validate(failure)->message(), "failure_rate is " + text + share);
        EXPECT_EQ(validate(slow)->message(), "slow_call_rate is " + text + share);
    }
    expect_sentences({
        {[](o& x) { x.jitter = -0.1; }, "jitter is -0.1, but must be 0 to 1"},
        {[](o& x) { x.jitter = 1.1; }, "jitter is 1.1, but must be 0 to 1"},
        {[](o& x) { x.jitter = nan_value; }, "jitter is nan, but must be 0 to 1"},
        {[](o& x) { x.open_backoff = 0.5; }, "open_backoff is 0.5, but must be 1 to 10"},
        {[](o& x) { x.open_backoff = 0; }, "open_backoff is 0, but must be 1 to 10"},
        {[](o& x) { x.open_backoff = nan_value; }, "open_backoff is nan, but must be 1 to 10"},
        {[](o& x) { x.open_backoff = infinity; }, "open_backoff is inf, but must be 1 to 10"},
    });
}

TEST(BreakerOptions, EachBadNumberIsOneSentence) {
    expect_sentences({
        {[](o& x) { x.minimum_calls = 0; },
         "minimum_calls is 0, but must be 1 to 1,000,000, and at most count_window when that is "
         "on"},
        {[](o& x) { x.minimum_calls = 1'000'001; },
         "minimum_calls is 1000001, but must be 1 to 1,000,000, and at most count_window when that "
         "is on"},
        {[](o& x) { x.window_slices = 1; },
         "window_slices is 1, but must be 2 to 60, and each slice at least 10 ms long"},
        {[](o& x) { x.window_slices = 61; },
         "window_slices is 61, but must be 2 to 60, and each slice at least 10 ms long"},
        {[](o& x) { x.count_window = 100'001; },
         "count_window is 100001, but must be 0 (off) or 1 to 100,000"},
        {[](o& x) { x.consecutive_failures = 1'000'001; },
         "consecutive_failures is 1000001, but must be 0 (off) or 1 to 1,000,000"},
        {[](o& x) { x.failure_count = 1'000'001; },
         "failure_count is 1000001, but must be 0 (off) or 1 to 1,000,000"},
        {[](o& x) { x.half_open_probes = 0; }, "half_open_probes is 0, but must be 1 to 1,000"},
        {[](o& x) { x.half_open_probes = 1'001; },
         "half_open_probes is 1001, but must be 1 to 1,000"},
        {[](o& x) { x.quorum = 0; }, "quorum is 0, but must be 1 to 100"},
        {[](o& x) { x.quorum = 101; }, "quorum is 101, but must be 1 to 100"},
        {[](o& x) { x.exchange_budget = 0; }, "exchange_budget is 0, but must be 1 to 100,000"},
        {[](o& x) { x.exchange_budget = 100'001; },
         "exchange_budget is 100001, but must be 1 to 100,000"},
        {[](o& x) { x.consistency = static_cast<consistency>(7); },
         "consistency is 7, but must be cached or strict"},
    });
}

TEST(BreakerOptions, EachBadDurationIsOneSentence) {
    expect_sentences({
        {[](o& x) { x.window = 99ms; }, "window is 99 ms, but must be 100 ms to 1 h"},
        {[](o& x) { x.window = -10s; }, "window is -10000 ms, but must be 100 ms to 1 h"},
        {[](o& x) { x.window = 1h + 1ms; }, "window is 3600001 ms, but must be 100 ms to 1 h"},
        {[](o& x) { x.slow_call_after = -1ms; },
         "slow_call_after is -1 ms, but must be 0 (off) or 1 ms to 1 h"},
        {[](o& x) { x.slow_call_after = 2h; },
         "slow_call_after is 2 h, but must be 0 (off) or 1 ms to 1 h"},
        {[](o& x) { x.call_timeout = -1ms; },
         "call_timeout is -1 ms, but must be 0 (off) or 1 ms to 1 h"},
        {[](o& x) { x.overdue_after = -1ms; },
         "overdue_after is -1 ms, but must be 0 (off) or 1 ms to 1 h, and less than call_timeout "
         "when both are set"},
        {[](o& x) { x.overdue_after = 61min; },
         "overdue_after is 61 min, but must be 0 (off) or 1 ms to 1 h, and less than call_timeout "
         "when both are set"},
        {[](o& x) { x.open_for = 9ms; }, "open_for is 9 ms, but must be 10 ms to 24 h"},
        {[](o& x) { x.open_for = 0ms; }, "open_for is 0 ms, but must be 10 ms to 24 h"},
        {[](o& x) { x.open_for = 25h; }, "open_for is 25 h, but must be 10 ms to 24 h"},
        {[](o& x) { x.open_max = 48h; },
         "open_max is 2 days, but must be 10 ms to 24 h, and at least open_for"},
        {[](o& x) { x.probe_timeout = 0ms; }, "probe_timeout is 0 ms, but must be 10 ms to 1 h"},
        {[](o& x) { x.probe_timeout = 61min; },
         "probe_timeout is 61 min, but must be 10 ms to 1 h"},
        {[](o& x) { x.recovery_ramp = 9ms; },
         "recovery_ramp is 9 ms, but must be 0 (off) or 10 ms to 1 h"},
        {[](o& x) { x.live_for = 999ms; }, "live_for is 999 ms, but must be 1 s to 1 h"},
        {[](o& x) { x.sync_interval = 9ms; }, "sync_interval is 9 ms, but must be 10 ms to 10 s"},
        {[](o& x) { x.store_timeout = 0ms; }, "store_timeout is 0 ms, but must be 1 ms to 10 s"},
        {[](o& x) { x.degraded_after = 61s; },
         "degraded_after is 61 s, but must be 1 ms to 1 min, and at least store_timeout"},
        {[](o& x) { x.key_ttl = 31 * 24h; },
         "key_ttl is 31 days, but must be 1 s to 30 days, and at least live_for"},
        {[](o& x) { x.open_for = o::milliseconds::max(); },
         "open_for is 9223372036854774784 ms, but must be 10 ms to 24 h"},
        {[](o& x) { x.open_for = o::milliseconds::min(); },
         "open_for is -9223372036854775808 ms, but must be 10 ms to 24 h"},
    });
}

TEST(BreakerOptions, EachContradictionIsOneSentence) {
    expect_sentences({
        {[](o& x) { x.window = 500ms, x.window_slices = 51; },
         "window_slices is 51, but must be 2 to 50, so that each slice of window (500 ms) is at "
         "least 10 ms long"},
        {[](o& x) { x.count_window = 10; },
         "minimum_calls is 20, but must be 1 to count_window (10), since more calls than that are "
         "never in the window"},
        {[](o& x) { x.overdue_after = 2s, x.call_timeout = 2s; },
         "overdue_after is 2 s, but must be less than call_timeout (2 s)"},
        {[](o& x) { x.open_max = 5s; }, "open_max is 5 s, but must be open_for (10 s) to 24 h"},
        {[](o& x) { x.degraded_after = 50ms; },
         "degraded_after is 50 ms, but must be store_timeout (100 ms) to 1 min"},
        {[](o& x) { x.key_ttl = 59s; }, "key_ttl is 59 s, but must be live_for (1 min) to 30 days"},
    });
}

TEST(BreakerOptions, TheEndsOfRangesFit) {
    const std::vector<std::function<void(o&)>> good = {
        [](o& x) { x.failure_rate = 1, x.slow_call_rate = 1e-9; },
        [](o& x) { x.minimum_calls = 1, x.count_window = 1; },
        [](o& x) { x.window = 100ms, x.window_slices = 10; },
        [](o& x) { x.overdue_after = 1999ms, x.call_timeout = 2s; },
        [](o& x) { x.overdue_after = 0ms, x.slow_call_after = 1s; },
        [](o& x) { x.open_max = x.open_for = 24h; },
        [](o& x) { x.jitter = 0, x.open_backoff = 1; },
        [](o& x) { x.degraded_after = x.store_timeout = 1ms; },
        [](o& x) { x.live_for = 1s, x.key_ttl = 1s; },
        [](o& x) { x.consistency = consistency::strict; },
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
        o options;
        good[i](options);
        const auto error = validate(options);
        EXPECT_FALSE(error) << i << ": " << error->message();
    }
}

TEST(BreakerOptionsTable, EveryRowIsComplete) {
    for (const auto& row : detail::breaker_option_table()) {
        EXPECT_EQ(detail::find_option(row.key), &row) << "twice: " << row.key;
        EXPECT_FALSE(row.why.empty()) << row.key;
        EXPECT_FALSE(row.watch.empty()) << row.key;
        EXPECT_FALSE(detail::range_text(row).empty()) << row.key;
        EXPECT_LT(row.lowest, row.highest) << row.key;
    }
    EXPECT_EQ(detail::breaker_option_table().size(), 26U);
    EXPECT_EQ(detail::find_option("no_such_option"), nullptr);
}

TEST(BreakerOptionsTable, DefaultsAreShownAsPeopleWriteThem) {
    const auto shown = [](std::string_view key) {
        return detail::default_text(*detail::find_option(key));
    };
    EXPECT_EQ(shown("failure_rate"), "0.5");
    EXPECT_EQ(shown("minimum_calls"), "20");
    EXPECT_EQ(shown("window"), "10 s");
    EXPECT_EQ(shown("open_max"), "5 min");
    EXPECT_EQ(shown("key_ttl"), "1 h");
    EXPECT_EQ(shown("sync_interval"), "100 ms");
    EXPECT_EQ(shown("recovery_ramp"), "off");
    EXPECT_EQ(shown("failure_count"), "off");
    EXPECT_EQ(shown("overdue_after"), "unset");
    EXPECT_EQ(shown("consistency"), "cached");
    EXPECT_EQ(detail::unit_of(*detail::find_option("failure_rate")), "share of 1");
    EXPECT_EQ(detail::unit_of(*detail::find_option("window")), "duration");
}

TEST(BreakerOptionsTable, EveryOptionSurvivesTheWire) {
    o from;
    from.failure_rate = 1.0 / 3;
    from.overdue_after = 1234ms;
    from.consistency = consistency::strict;
    from.quorum = 7;
    o to;
    for (const auto& row : detail::breaker_option_table()) {
        if (!row.value(from)) continue;
        EXPECT_TRUE(detail::set_from_wire(row, detail::wire_value(row, from), to)) << row.key;
    }
    EXPECT_EQ(from, to);
    for (const char* text : {"", " 1", "1 ", "one", "0x10", "1,5", "99999999999999999999"}) {
        EXPECT_FALSE(detail::set_from_wire(*detail::find_option("window"), text, to)) << text;
        EXPECT_FALSE(detail::set_from_wire(*detail::find_option("quorum"), text, to)) << text;
        EXPECT_FALSE(detail::set_from_wire(*detail::find_option("consistency"), text, to)) << text;
    }
}

}  // namespace
}  // namespace trinco
