// The part of a breaker's options that decides, in the form in which it travels to a store, and the
// one function that judges counts by it. Both breakers of a series, the local one and the record,
// judge here, so that they can never disagree about what "too many failures" means.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/breaker/view.hpp"
#include "trinco/breaker_options.hpp"

namespace trinco::detail {

// What a fleet must agree on. Ranges as in breaker_options, whose members of the same names these
// are.
struct policy {
    double failure_rate = 0.5;
    std::uint32_t minimum_calls = 20;
    std::chrono::milliseconds window{10'000};
    std::uint32_t window_slices = 10;
    std::uint32_t failure_count = 0;
    double slow_call_rate = 1.0;  // judged only where slow calls are counted at all
    bool slow_calls = false;      // slow_call_after or overdue_after is set
    std::chrono::milliseconds open_for{10'000};
    double open_backoff = 2.0;
    std::chrono::milliseconds open_max{300'000};
    double jitter = 0.1;
    std::uint32_t half_open_probes = 5;
    std::chrono::milliseconds probe_timeout{10'000};
    std::chrono::milliseconds recovery_ramp{0};
    std::uint32_t quorum = 2;
    std::chrono::milliseconds live_for{60'000};
    std::chrono::milliseconds sync_interval{100};
    std::uint32_t exchange_budget = 200;
    std::chrono::milliseconds key_ttl{3'600'000};

    bool operator==(const policy&) const = default;
    [[nodiscard]] std::chrono::microseconds slice_length() const noexcept {
        return std::chrono::microseconds(window) / window_slices;
    }
};

[[nodiscard]] policy policy_of(const breaker_options& options);

// One line of key=value pairs separated by single spaces, in the order of the members; durations in
// whole milliseconds with the suffix _ms at the key. parse(to_text(p)) == p.
[[nodiscard]] std::string to_text(const policy& p);

// Reads pairs in any order over `base`; keys not named keep base's value. An unknown key, a value
// out of range or a malformed pair is an option_error.
[[nodiscard]] std::variant<policy, option_error> parse_policy(std::string_view text,
                                                              const policy& base);

// Where two policies differ: "key=<in force> (here <own>)" for each such key, with ", " between, in
// the order and form of to_text. Empty when they are equal.
[[nodiscard]] std::string difference_of(const policy& in_force, const policy& own);

enum class trip_reason : std::uint8_t {
    none,
    failure_rate,
    slow_call_rate,
    failure_count,
    consecutive_failures,
    probes_failed,
    probes_vanished,
    operator_trip,
    fleet
};
[[nodiscard]] std::string_view name_of(trip_reason r) noexcept;

// Whether a window with these counts opens a breaker, and why: failure_count first (it has no
// minimum), then the failure rate, then the slow rate, both with minimum_calls and >=.
[[nodiscard]] trip_reason judge(const counts& window, const policy& p) noexcept;

// Whether one voter's share alone is at or above a threshold: the rates of `judge` without a
// minimum of calls (at least one bad call), or its fair share, ceil(failure_count / live), of
// failure_count.
[[nodiscard]] bool voter_is_failing(const counts& share, const policy& p,
                                    std::uint32_t live) noexcept;

// How long an opening at this backoff level lasts: open_for * open_backoff^level, at most open_max,
// longer by `spread` (0 ... 1) of jitter.
[[nodiscard]] std::chrono::milliseconds open_duration(const policy& p, std::uint8_t backoff_level,
                                                      double spread) noexcept;

// Probes decide: whether `failed` of N (half_open_probes) already make closing impossible.
[[nodiscard]] bool closing_is_impossible(std::uint32_t failed, const policy& p) noexcept;

}  // namespace trinco::detail
