// The options of a circuit breaker, and the check of their ranges.
//
// One struct serves the breaker of one process and the fleet's: what the fleet's breaker ignores is
// said at the member. Durations are chrono types; rates are fractions of one. All options are
// validated together when a breaker is made; the first that is out of range is an error that names
// the key, the value and the range. Nothing is ever clamped silently.
//
// A plain value: copy freely; no thread-safety of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace trinco {

enum class consistency : std::uint8_t {
    cached,  // calls are decided on the last known state: no round trip while closed or open
    strict   // one read of the store before each call; outcomes still travel in batches
};

struct breaker_options {
    using milliseconds = std::chrono::milliseconds;

    // ---- when it opens ---------------------------------------------------------------------
    // Failed share of the judged calls of the window at which the breaker opens (>=). (0, 1].
    // Default 0.5: a dependency that fails every second call is not worth waiting for.
    double failure_rate = 0.5;
    // No rate is judged below this many calls in the window. 1 ... 1,000,000. Default 20, so that
    // one unlucky call of a quiet service opens nothing.
    std::uint32_t minimum_calls = 20;
    // Length of the sliding time window. 100 ms ... 1 h. Default 10 s.
    milliseconds window{10'000};
    // Slices of the window: old calls leave it one slice at a time. 2 ... 60; each slice must be at
    // least 10 ms long. Default 10.
    std::uint32_t window_slices = 10;
    // Off when 0. Otherwise rates are judged over the last N calls instead of over `window`, in the
    // breaker of this process only (a fleet sums windows of time). 1 ... 100,000, and not less than
    // minimum_calls, which could otherwise never be reached.
    std::uint32_t count_window = 0;
    // Off when 0. Opens after this many failures in a row, in this process only. 1 ... 1,000,000.
    std::uint32_t consecutive_failures = 0;
    // Off when 0. Opens at this many failures in the window, whatever the rate and the minimum of
    // calls: `failure_threshold` of the classic design. 1 ... 1,000,000.
    std::uint32_t failure_count = 0;
    // Off when 0. A call that took at least this long is slow, whether it failed or not.
    // 1 ms ... 1 h.
    milliseconds slow_call_after{0};
    // Slow share of the judged calls at which the breaker opens (>=), with minimum_calls.
    // (0, 1]. Default 1.0. Has no effect while slow_call_after and overdue_after are off.
    double slow_call_rate = 1.0;

    // ---- calls that hang -------------------------------------------------------------------
    // Off when 0. call() asks the guarded function to stop after this long (std::stop_token), and
    // the call counts as a failure from then on. 1 ms ... 1 h.
    milliseconds call_timeout{0};
    // A permit still out after this long counts as slow at once, not when it returns; at
    // call_timeout as a failure. Default: slow_call_after when that is set, else off.
    // 0 (off) or 1 ms ... 1 h, and less than call_timeout when both are set.
    std::optional<milliseconds> overdue_after{};

    // ---- while open, and back --------------------------------------------------------------
    // How long the first opening lasts: `cooldown_time` of the classic design. 10 ms ... 24 h.
    milliseconds open_for{10'000};
    // Each re-opening lasts this times longer. 1.0 ... 10.0. Default 2.0.
    double open_backoff = 2.0;
    // Longest opening; also the time of health after which the backoff starts anew.
    // open_for ... 24 h. Default 5 min.
    milliseconds open_max{300'000};
    // Openings are longer by a random share of 0 ... jitter. 0 ... 1.0. Default 0.1, so that
    // breakers which opened together do not probe together.
    double jitter = 0.1;
    // Calls let through while half open; the breaker closes when all have settled with a failure
    // rate under `failure_rate`, and opens again as soon as that has become impossible.
    // 1 ... 1,000. Default 5. Zero could never recover and is refused.
    std::uint32_t half_open_probes = 5;
    // A probe that is not settled by then counts as failed. 10 ms ... 1 h. Default 10 s.
    milliseconds probe_timeout{10'000};
    // Off when 0. After closing, the admitted share of calls grows from a tenth to all over this
    // time. 10 ms ... 1 h.
    milliseconds recovery_ramp{0};

    // ---- the fleet -------------------------------------------------------------------------
    // Failure domains (machines) that must each see the trouble before the fleet's breaker opens or
    // re-opens; never more than are alive. 1 ... 100. Default 2: one bad machine opens nothing but
    // its own. 1 lets any instance open it for all.
    std::uint32_t quorum = 2;
    // An instance not heard for this long is no longer counted. 1 s ... 1 h. Default 60 s.
    milliseconds live_for{60'000};
    trinco::consistency consistency = trinco::consistency::cached;
    // Outcomes are sent this often when there are any; at half of the window where that is shorter,
    // because older ones decide nothing any more. 10 ms ... 10 s. Default 100 ms.
    milliseconds sync_interval{100};
    // Exchanges per second that one breaker may cost the store, all instances together.
    // 1 ... 100,000. Default 200.
    std::uint32_t exchange_budget = 200;
    // Longest wait for an answer of the store. 1 ms ... 10 s. Default 100 ms.
    milliseconds store_timeout{100};
    // Without an answer for this long the breaker of this process decides alone, starting from the
    // fleet's last state. store_timeout ... 60 s. Default 1 s.
    milliseconds degraded_after{1'000};
    // The state is kept in the store this long after the last instance was heard, beyond all
    // deadlines in it. live_for ... 30 days. Default 1 h.
    milliseconds key_ttl{3'600'000};

    bool operator==(const breaker_options&) const = default;
};

// What is wrong with one option.
struct option_error {
    std::string key;      // the member's name in breaker_options
    std::string value;    // as given
    std::string allowed;  // the range, in words with units
    // One sentence: what, value, allowed range.
    [[nodiscard]] std::string message() const;
};

// The first option that is out of range or contradicts another one; nothing when all fit.
// Rates that are NaN, negative or zero are refused like any other value out of range.
[[nodiscard]] std::optional<option_error> validate(const breaker_options& options);

}  // namespace trinco
