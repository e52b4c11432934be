#include "core/breaker/policy.hpp"

#include <algorithm>
#include <array>
#include <bitset>

#include "core/breaker_options_table.hpp"
#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

using std::chrono::milliseconds;

// Calls f(member of p, the option of the same name), for each member that is one.
template <class Policy, class Options, class F>
void pair_members(Policy& p, Options& o, F f) {
    f(p.failure_rate, o.failure_rate);
    f(p.minimum_calls, o.minimum_calls);
    f(p.window, o.window);
    f(p.window_slices, o.window_slices);
    f(p.failure_count, o.failure_count);
    f(p.slow_call_rate, o.slow_call_rate);
    f(p.open_for, o.open_for);
    f(p.open_backoff, o.open_backoff);
    f(p.open_max, o.open_max);
    f(p.jitter, o.jitter);
    f(p.half_open_probes, o.half_open_probes);
    f(p.probe_timeout, o.probe_timeout);
    f(p.recovery_ramp, o.recovery_ramp);
    f(p.quorum, o.quorum);
    f(p.live_for, o.live_for);
    f(p.sync_interval, o.sync_interval);
    f(p.exchange_budget, o.exchange_budget);
    f(p.key_ttl, o.key_ttl);
}

// In the order of the members. slow_calls is no option: it says that there are slow calls at all.
constexpr std::string_view slow_calls_key = "slow_calls";
constexpr std::string_view shared_keys[] = {
    "failure_rate",   "minimum_calls",    "window",          "window_slices", "failure_count",
    "slow_call_rate", slow_calls_key,     "open_for",        "open_backoff",  "open_max",
    "jitter",         "half_open_probes", "probe_timeout",   "recovery_ramp", "quorum",
    "live_for",       "sync_interval",    "exchange_budget", "key_ttl"};

breaker_options options_of(const policy& p) {
    breaker_options o;
    pair_members(p, o, [](const auto& from, auto& to) { to = from; });
    return o;
}

// Their rows of the table of options; null is slow_calls.
using shared_rows = std::array<const option_row*, std::size(shared_keys)>;

const shared_rows& rows_of_shared() noexcept {
    static const auto rows = [] {
        shared_rows all;
        std::transform(std::begin(shared_keys), std::end(shared_keys), all.begin(), find_option);
        return all;
    }();
    return rows;
}

std::string key_on_wire(const option_row* row) {
    return row == nullptr ? std::string(slow_calls_key) : wire_key(*row);
}

bool is_key_on_wire(const option_row* row, std::string_view key) noexcept {
    return row == nullptr ? key == slow_calls_key : is_wire_key(*row, key);
}

std::string all_keys() {
    std::string text;
    for (const auto* row : rows_of_shared()) text += (text.empty() ? "" : ", ") + key_on_wire(row);
    return text;
}

// What is being read: the options, since they carry the ranges, and what is no option.
struct reading {
    breaker_options options;
    bool slow_calls = false;
    std::bitset<std::size(shared_keys)> seen;
};

std::optional<option_error> read_pair(std::string_view pair, reading& r) {
    const auto middle = pair.find('=');
    if (middle == std::string_view::npos)
        return option_error{"an option", detail::quoted(pair), "key=value"};
    const auto key = pair.substr(0, middle);
    const auto value = pair.substr(middle + 1);
    const auto& rows = rows_of_shared();
    const auto known = std::find_if(
        rows.begin(), rows.end(), [&](const option_row* row) { return is_key_on_wire(row, key); });
    if (known == rows.end()) {
        return option_error{"the key of an option", detail::quoted(key), "one of " + all_keys()};
    }
    const auto place = static_cast<std::size_t>(known - rows.begin());
    if (r.seen[place])
        return option_error{std::string(key), detail::quoted(value), "given only once"};
    r.seen.set(place);
    if (*known == nullptr) {
        r.slow_calls = value == "1";
        if (value == "0" || value == "1") return std::nullopt;
        return option_error{std::string(key), detail::quoted(value), "0 or 1"};
    }
    if (set_from_wire(**known, value, r.options)) return std::nullopt;
    return option_error{std::string(key), detail::quoted(value), range_text(**known)};
}

}  // namespace

policy policy_of(const breaker_options& options) {
    policy p;
    pair_members(p, options, [](auto& to, const auto& from) { to = from; });
    p.sync_interval = std::min(p.sync_interval, p.window / 2);
    const auto overdue = options.overdue_after.value_or(milliseconds(0));
    p.slow_calls = options.slow_call_after.count() != 0 || overdue.count() != 0;
    return p;
}

std::string to_text(const policy& p) {
    const auto options = options_of(p);
    std::string text;
    for (const auto* row : rows_of_shared()) {
        if (!text.empty()) text += ' ';
        text.append(key_on_wire(row)).append("=");
        if (row == nullptr) {
            text += p.slow_calls ? '1' : '0';
        } else {
            text += wire_value(*row, options);
        }
    }
    return text;
}

std::string difference_of(const policy& in_force, const policy& own) {
    std::string all;
    const std::string governing = to_text(in_force);
    const std::string mine = to_text(own);
    // Both have the same keys in the same order.
    for (std::string_view a = governing, b = mine; !a.empty();) {
        const std::string_view pair = a.substr(0, a.find(' '));
        const std::string_view here = b.substr(0, b.find(' '));
        a.remove_prefix(std::min(pair.size() + 1, a.size()));
        b.remove_prefix(std::min(here.size() + 1, b.size()));
        if (pair == here) continue;
        if (!all.empty()) all += ", ";
        all.append(pair).append(" (here ").append(here.substr(here.find('=') + 1)).append(")");
    }
    return all;
}

std::variant<policy, option_error> parse_policy(std::string_view text, const policy& base) {
    reading r{options_of(base), base.slow_calls, {}};
    while (!text.empty()) {
        const auto end = text.find(' ');
        const auto pair = text.substr(0, end);
        if (auto bad = read_pair(pair, r)) return *bad;
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
    if (auto bad = validate(r.options)) return *bad;
    auto p = policy_of(r.options);
    p.slow_calls = r.slow_calls;
    return p;
}

std::string_view name_of(trip_reason r) noexcept {
    switch (r) {
        case trip_reason::none: return "none";
        case trip_reason::failure_rate: return "failure_rate";
        case trip_reason::slow_call_rate: return "slow_call_rate";
        case trip_reason::failure_count: return "failure_count";
        case trip_reason::consecutive_failures: return "consecutive_failures";
        case trip_reason::probes_failed: return "probes_failed";
        case trip_reason::probes_vanished: return "probes_vanished";
        case trip_reason::operator_trip: return "operator_trip";
        case trip_reason::fleet: return "fleet";
    }
    return "unknown";
}

// Rates are compared after division: k / n, correctly rounded, equals the decimal that a person
// writes for it, which rate * n does not (0.07 * 100 > 7).
static bool at_rate(std::uint64_t hits, std::uint64_t calls, double rate) noexcept {
    return hits != 0 && static_cast<double>(hits) / static_cast<double>(calls) >= rate;
}

trip_reason judge(const counts& window, const policy& p) noexcept {
    if (p.failure_count != 0 && window.failure >= p.failure_count) {
        return trip_reason::failure_count;
    }
    const auto calls = window.judged();
    if (calls < p.minimum_calls) return trip_reason::none;
    if (at_rate(window.failure, calls, p.failure_rate)) return trip_reason::failure_rate;
    if (p.slow_calls && at_rate(window.slow(), calls, p.slow_call_rate)) {
        return trip_reason::slow_call_rate;
    }
    return trip_reason::none;
}

bool voter_is_failing(const counts& share, const policy& p, std::uint32_t live) noexcept {
    const auto calls = share.judged();
    if (at_rate(share.failure, calls, p.failure_rate)) return true;
    if (p.slow_calls && at_rate(share.slow(), calls, p.slow_call_rate)) return true;
    if (p.failure_count == 0) return false;
    const std::uint64_t voters = std::max(1U, live);
    return share.failure >= (p.failure_count + voters - 1) / voters;
}

milliseconds open_duration(const policy& p, std::uint8_t backoff_level, double spread) noexcept {
    const auto most = static_cast<double>(p.open_max.count());
    auto lasts = static_cast<double>(p.open_for.count());
    for (unsigned level = 0; level < backoff_level && lasts < most; ++level)
        lasts *= p.open_backoff;
    lasts = std::min(lasts, most);
    lasts *= 1.0 + p.jitter * std::clamp(spread, 0.0, 1.0);
    return milliseconds(static_cast<std::int64_t>(lasts + 0.5));
}

bool closing_is_impossible(std::uint32_t failed, const policy& p) noexcept {
    return at_rate(failed, p.half_open_probes, p.failure_rate);
}

}  // namespace trinco::detail
