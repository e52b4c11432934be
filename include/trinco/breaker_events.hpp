// What a breaker tells about itself: a snapshot on request, an event at each change.
//
// Plain values: copy freely, no thread-safety of their own. Cost of a snapshot: it adds up the
// window under the breaker's lock, about 0.2 us with the defaults on two cores.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trinco/breaker_options.hpp"
#include "trinco/breaker_types.hpp"

namespace trinco {

// All of a breaker at one moment. Durations only; what is left of something counts from the call.
struct snapshot {
    std::string breaker;

    // The fleet's state when it is not closed, otherwise this process's. An override lies over it
    // and does not change it: with `over` forced_open calls are refused though the state is closed.
    breaker_state state = breaker_state::closed;
    breaker_state local_state = breaker_state::closed;
    std::optional<breaker_state>
        fleet_state;  // nothing without a store, or before its first answer
    // Why the last transition happened, one or a few words: "failure rate", "probes succeeded"; of
    // an operator's, the reason given (in a fleet with who gave it: "drill (by ann)").
    std::string reason;
    std::chrono::milliseconds retry_after{0};  // open: what is left of it
    std::uint32_t backoff_level = 0;           // re-openings in a row
    double admitted_share = 1.0;               // below 1 while recovering along the ramp
    // The breaker's own number of its transitions, local ones and the fleet's together.
    std::uint64_t transitions = 0;

    override_kind over = override_kind::none;
    std::string over_reason;
    std::chrono::milliseconds over_remaining{0};

    counts window;                       // of this process, in the running window and era
    std::optional<counts> fleet_window;  // of all processes, as last heard
    std::uint32_t live = 0;              // machines heard for this breaker, as last heard
    bool degraded = false;               // the store does not answer: this process decides alone

    std::uint32_t probes_in_flight = 0;  // of this process
    // Calls that are still out after overdue_after, from whatever era. One that has reached
    // call_timeout has been counted as failed and is none of them any more.
    std::uint64_t overdue = 0;

    // Since the breaker was made. At quiescence success + failure + ignored + rejected + stale is
    // the number of calls that were asked for. Stale are outcomes that came in a later era than the
    // one they were admitted in.
    counts totals;
    std::uint64_t stale = 0;
    std::uint64_t would_have_rejected = 0;  // admitted only because the breaker was observing

    // In force: the fleet's where a fleet governs.
    double failure_rate = 0.5;
    std::uint32_t minimum_calls = 20;
    // Where a fleet's options govern that are not this process's own (another process was started
    // later with others, or an operator has set some): each of them with both values, "quorum=1
    // (here 2), open_for_ms=5000 (here 10000)". Empty: this process's own are in force.
    std::string options_differ;
};

enum class event_kind : std::uint8_t {
    state_changed,     // from -> to
    override_changed,  // an operator's hand, or its expiry
    store_lost,        // the store does not answer: this process decides alone from now on
    store_back,        // the fleet decides again
    // Other options than this process's own govern from now on, or others than before; or its own
    // do again. Once at each such change; reason and snapshot name them.
    options_differ
};

struct event {
    event_kind kind = event_kind::state_changed;
    breaker_state from = breaker_state::closed;  // as in snapshot; equal unless state_changed
    breaker_state to = breaker_state::closed;
    // Of a transition as in the snapshot. Of an override the operator's, also the one given to
    // resume, by the breaker that it was called on; empty elsewhere and when it has expired. Of
    // options_differ what the snapshot says. Of store_lost why, as far as the store knows: "the
    // server refused AUTH: WRONGPASS".
    std::string reason;
    snapshot now;  // taken at the change, under the breaker's lock
    // Since when calls have met the change: a fleet's opening is obeyed up to a few milliseconds
    // before it is told.
    std::chrono::steady_clock::time_point at{};
    // Events that were dropped just before this one, because more than 1,000 were waiting for a
    // callback that did not return.
    std::uint64_t missed = 0;
};

[[nodiscard]] std::string_view text_of(breaker_state state) noexcept;
[[nodiscard]] std::string_view text_of(override_kind over) noexcept;
[[nodiscard]] std::string_view text_of(outcome what) noexcept;
[[nodiscard]] std::string_view text_of(event_kind kind) noexcept;

}  // namespace trinco
