#include "core/breaker_options_table.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace trinco::detail {
namespace {

using std::chrono::milliseconds;
using o = breaker_options;
using u = option_unit;

constexpr double million = 1e6;
constexpr double second = 1e3;
constexpr double hour = 3600 * second;
constexpr double day = 24 * hour;

// clang-format off
constexpr std::array<option_row, 26> table{{
    {"failure_rate", u::share, &o::failure_rate, 0, 1, false, "",
     "a dependency that fails every second call is not worth waiting for",
     "the share of failures on a normal bad day: stay well above it",
     "error_threshold_percentage"},
    {"minimum_calls", u::number, &o::minimum_calls, 1, million, false,
     "and at most count_window when that is on",
     "one unlucky call of a quiet service opens nothing",
     "calls per window at night: below this number nothing is judged",
     "request_volume_threshold"},
    {"window", u::duration, &o::window, 100, hour, false, "",
     "long enough for a rate to mean something, short enough to react within seconds",
     "traffic: minimum_calls have to fit into it",
     "rolling_window"},
    {"window_slices", u::number, &o::window_slices, 2, 60, false,
     "and each slice at least 10 ms long",
     "old calls leave in steps of a tenth of the window",
     "nothing in normal use; more slices follow more smoothly and cost memory",
     "buckets"},
    {"count_window", u::number, &o::count_window, 1, 1e5, true, "",
     "a window of time forgets by itself; the last N calls may be hours old",
     "needs every outcome judged one by one, and counts for this process only",
     "ring_buffer_size"},
    {"consecutive_failures", u::number, &o::consecutive_failures, 1, million, true, "",
     "a row of failures says little under load, where successes always lie between",
     "useful at a few calls per minute; counts for this process only",
     ""},
    {"failure_count", u::number, &o::failure_count, 1, million, true, "",
     "a number of failures means another share at every traffic",
     "grows with the traffic of the whole fleet, whose window it is judged on",
     "failure_threshold"},
    {"slow_call_after", u::duration, &o::slow_call_after, 1, hour, true, "",
     "how slow is too slow only the caller knows",
     "the 99th percentile of healthy calls: stay well above it",
     "slow_call_duration_threshold"},
    {"slow_call_rate", u::share, &o::slow_call_rate, 0, 1, false, "",
     "opens only when every call is slow, until somebody who knows the dependency says otherwise",
     "has no effect while slow_call_after and overdue_after are off",
     "slow_call_rate_threshold"},
    {"call_timeout", u::duration, &o::call_timeout, 1, hour, true, "",
     "only a function that looks at its stop_token can be stopped",
     "longer than the slowest call that is still useful to the caller",
     "invocation_timeout"},
    {"overdue_after", u::duration, &o::overdue_after, 1, hour, true,
     "and less than call_timeout when both are set",
     "follows slow_call_after, so that a breaker opens while the first calls still hang",
     "as slow_call_after",
     ""},
    {"open_for", u::duration, &o::open_for, 10, day, false, "",
     "a restart takes about that long",
     "how long the dependency needs to come back; callers are refused meanwhile",
     "cooldown_time, reset_timeout"},
    {"open_backoff", u::factor, &o::open_backoff, 1, 10, false, "",
     "the longer it is down, the less a sooner try is worth",
     "1 keeps every opening at open_for",
     "exponential_backoff"},
    {"open_max", u::duration, &o::open_max, 10, day, false,
     "and at least open_for",
     "after a long outage nobody waits more than minutes for the next try",
     "how late you may notice that the dependency is back",
     "max_reset_timeout"},
    {"jitter", u::share, &o::jitter, 0, 1, true, "",
     "breakers which opened together do not probe together",
     "more for many processes without a store",
     "jitter"},
    {"half_open_probes", u::number, &o::half_open_probes, 1, 1e3, false, "",
     "one lucky call closes nothing, one unlucky call keeps nothing open",
     "what the dependency bears while it starts; 0 could never recover",
     "success_threshold, permitted_calls_in_half_open"},
    {"probe_timeout", u::duration, &o::probe_timeout, 10, hour, false, "",
     "a probe whose caller never reports may hold its place this long, no longer",
     "longer than the slowest successful call: a probe not settled by then has failed",
     "max_wait_in_half_open"},
    {"recovery_ramp", u::duration, &o::recovery_ramp, 10, hour, true, "",
     "most dependencies bear their full load at once",
     "dependencies with cold caches or few connections; a tenth of the calls at first",
     "slow_start"},
    {"quorum", u::number, &o::quorum, 1, 100, false, "",
     "one bad machine opens nothing but its own",
     "1 lets any instance open it for all; never more than are alive are required",
     ""},
    {"live_for", u::duration, &o::live_for, second, hour, false, "",
     "three missed signs of life",
     "a machine that is gone counts for the quorum this long",
     ""},
    {"consistency", u::choice, &o::consistency, 0, 1, false, "",
     "no call waits for a round trip while the breaker is closed or open",
     "strict costs one round trip per call, and degrades with the store",
     ""},
    {"sync_interval", u::duration, &o::sync_interval, 10, 10 * second, false, "",
     "failures of the fleet are added up within a tenth of a second",
     "commands per second at the store: one per interval, breaker and instance with news; half of "
     "window when that is shorter",
     ""},
    {"exchange_budget", u::number, &o::exchange_budget, 1, 1e5, false, "",
     "a small store serves a thousand breakers of this kind",
     "the store's load; the interval of each instance is stretched to keep within it",
     ""},
    {"store_timeout", u::duration, &o::store_timeout, 1, 10 * second, false, "",
     "longer than a round trip to another zone, shorter than anybody's patience",
     "the 99.9th percentile of the store's answers",
     ""},
    {"degraded_after", u::duration, &o::degraded_after, 1, 60 * second, false,
     "and at least store_timeout",
     "a fail-over of the store need not be noticed when it is quick",
     "until then the last known state of the fleet is in force",
     ""},
    {"key_ttl", u::duration, &o::key_ttl, second, 30 * day, false,
     "and at least live_for",
     "the database becomes empty when the fleet is gone",
     "longer than a deployment during which no instance runs",
     ""},
}};
// clang-format on

constexpr std::string_view duration_suffix = "_ms";

constexpr std::array<std::string_view, 2> consistency_words = {"cached", "strict"};

template <class T>
std::string number_text(T x) {
    std::array<char, 32> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
    return {buffer.data(), end};
}

template <class T>
bool parse_number(std::string_view text, T& x) {
    const auto end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, x);
    return result.ec == std::errc{} && result.ptr == end;
}

std::string grouped(std::uint64_t n) {
    auto text = std::to_string(n);
    for (auto at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

std::string limit_text(const option_row& option, double limit) {
    if (option.unit != option_unit::number) return value_text(option, limit);
    return grouped(static_cast<std::uint64_t>(limit));
}

// One member, read from text; the overloads are the types that options have.
bool assign(std::string_view text, double& value) {
    return parse_number(text, value);
}
bool assign(std::string_view text, std::uint32_t& value) {
    return parse_number(text, value);
}

bool assign(std::string_view text, milliseconds& value) {
    std::int64_t ms = 0;
    if (!parse_number(text, ms)) return false;
    value = milliseconds(ms);
    return true;
}

bool assign(std::string_view text, std::optional<milliseconds>& value) {
    return assign(text, value.emplace());
}

bool assign(std::string_view text, consistency& value) {
    const auto word = std::find(consistency_words.begin(), consistency_words.end(), text);
    if (word == consistency_words.end()) return false;
    value = static_cast<consistency>(word - consistency_words.begin());
    return true;
}

double as_number(double value) {
    return value;
}
double as_number(std::uint32_t value) {
    return value;
}
double as_number(milliseconds value) {
    return static_cast<double>(value.count());
}
double as_number(consistency value) {
    return static_cast<double>(value);
}
std::optional<double> as_number(const std::optional<milliseconds>& value) {
    if (!value) return std::nullopt;
    return as_number(*value);
}

}  // namespace

std::optional<double> option_row::value(const breaker_options& options) const {
    return std::visit(
        [&options](auto pointer) -> std::optional<double> { return as_number(options.*pointer); },
        field);
}

std::span<const option_row> breaker_option_table() noexcept {
    return table;
}

const option_row* find_option(std::string_view key) noexcept {
    const auto found = std::find_if(table.begin(), table.end(),
                                    [key](const option_row& option) { return option.key == key; });
    return found == table.end() ? nullptr : &*found;
}

std::string duration_text(milliseconds d) {
    struct named {
        std::int64_t ms;
        std::int64_t from;  // shown from here on: "24 h" rather than "1 days"
        const char* name;
    };
    static constexpr named units[] = {{86'400'000, 172'800'000, " days"},
                                      {3'600'000, 3'600'000, " h"},
                                      {60'000, 60'000, " min"},
                                      {1'000, 1'000, " s"}};
    const auto ms = d.count();
    for (const auto& unit : units) {
        if (ms >= unit.from && ms % unit.ms == 0) return std::to_string(ms / unit.ms) + unit.name;
    }
    return std::to_string(ms) + " ms";
}

std::string value_text(const option_row& option, double value) {
    if (option.unit == option_unit::duration) {
        // The greatest double that is an int64_t: longer durations show as this.
        return duration_text(
            milliseconds(static_cast<std::int64_t>(std::min(value, 0x1.fffffffffffffp62))));
    }
    if (option.unit == option_unit::choice && value >= 0 && value <= option.highest) {
        return std::string(consistency_words[static_cast<std::size_t>(value)]);
    }
    // A double of a million would be written 1e+06, which is no number of an option.
    if (option.unit == option_unit::number) return number_text(static_cast<std::int64_t>(value));
    return number_text(value);
}

std::string default_text(const option_row& option) {
    const auto value = option.value(breaker_options{});
    if (!value) return "unset";
    return *value == 0 && option.zero_is_off ? "off" : value_text(option, *value);
}

std::string_view unit_of(const option_row& option) noexcept {
    switch (option.unit) {
        case option_unit::share: return "share of 1";
        case option_unit::factor: return "factor";
        case option_unit::number: return "number";
        case option_unit::duration: return "duration";
        case option_unit::choice: return "choice";
    }
    return "";
}

std::string range_text(const option_row& option) {
    if (option.unit == option_unit::choice) return "cached or strict";
    std::string text;
    if (option.unit == option_unit::share) {
        text = option.zero_is_off ? "0 to " : "more than 0 and at most ";
    } else {
        if (option.zero_is_off) text = "0 (off) or ";
        text += limit_text(option, option.lowest) + " to ";
    }
    text += limit_text(option, option.highest);
    if (!option.bound.empty()) text += ", " + std::string(option.bound);
    return text;
}

std::string wire_key(const option_row& option) {
    std::string key(option.key);
    if (option.unit == option_unit::duration) key += duration_suffix;
    return key;
}

bool is_wire_key(const option_row& option, std::string_view text) noexcept {
    if (option.unit == option_unit::duration) {
        if (!text.ends_with(duration_suffix)) return false;
        text.remove_suffix(duration_suffix.size());
    }
    return text == option.key;
}

std::string wire_value(const option_row& option, const breaker_options& options) {
    const auto value = option.value(options);
    if (!value) return "unset";
    if (option.unit != option_unit::duration) return value_text(option, *value);
    return number_text(static_cast<std::int64_t>(*value));
}

bool set_from_wire(const option_row& option, std::string_view text, breaker_options& options) {
    return std::visit([&](auto pointer) { return assign(text, options.*pointer); }, option.field);
}

}  // namespace trinco::detail
