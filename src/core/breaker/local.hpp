// The breaker of one process, without threads and without a window of time: the state machine that
// circuit_breaker drives under its lock. Pure; the time and the randomness come from the caller.
//
// States     closed -> open -> half_open -> closed (ramping when recovery_ramp is set) or open
//            again. suspended: the fleet's breaker is not closed and decides alone; the own state
//            stands still, but the time of its opening goes on.
// Eras       a process counter, one more at each transition, suspension and resumption. Probes and
//            outcomes carry theirs; those of another era change nothing.
// Opens      by judge() on the counts it is shown, by consecutive failures, by its count window
//            (which, when there is one, is judged instead of the counts shown). A window of time is
//            the caller's (core/breaker/window), and starts empty with every era.
// Half-open  begins with the first probe asked for after the time of open; time alone changes
//            nothing.
// Probes     at most half_open_probes in flight, of whatever era, or settled in this one: a probe
//            that is still out when the breaker opens again keeps its slot. Each has a deadline, at
//            which it frees its slot and, in its own era, counts as failed; at the latest when the
//            next probe is asked for: half-open never lasts because a result is missing. Ignored
//            gives the slot back. A slow probe is judged
//            as in a window: by slow_call_rate. Closes when all have settled under the thresholds,
//            opens again as soon as that has become impossible.
// Backoff    Opening again from half-open: one level more, at most 32. Opening from closed: the
//            level of before, or 0 after open_max of health.
// Ramp       After half_open -> closed the admitted share grows from 0.1 to 1 over recovery_ramp.
// Inherit    The store is lost while the fleet's breaker is not closed: this one takes over the
//            fleet's remaining time and backoff level; until it has closed, its openings last an
//            extra random 0 ... open_for / 2 and it uses max(1, N / live) probes, so that the
//            instances together do not probe more than the fleet would. Its own state from before
//            is kept aside.
// Resume     The fleet's breaker closed (again, or the store is back and says so): starts clean,
//            unless it was open itself before, or the fleet closed without this voter (set aside):
//            then it opens. An own opening from before goes on for what is left of its time, which
//            the dependency was left alone by all meanwhile; when that is nothing, as after half
//            open, the next call may be a probe. So who opened together with the fleet recovers
//            with it, by probes of its own, and not an open_for later.
// Operators  trip opens now and recovers as usual; reset closes, with nothing remembered.
//
// Time is nanoseconds since any origin, by a monotonic clock. It never goes back in here: a step
// back of less than a second is threads that overtook each other and counts as no time; a larger
// one is a clock that was set, and time goes on from there at its pace, so that no deadline moves
// away.
//
// Not thread-safe. Cost: no allocation after construction except for probes; all linear in the
// probes in flight.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/breaker/count_window.hpp"
#include "core/breaker/policy.hpp"
#include "core/breaker/view.hpp"

namespace trinco::detail {

// The rules of a local breaker: the policy of the series, and what only one process can judge.
struct local_rules {
    policy shared;
    std::uint32_t count_window = 0;          // 0: off
    std::uint32_t consecutive_failures = 0;  // 0: off
    bool operator==(const local_rules&) const = default;
};
[[nodiscard]] local_rules local_rules_of(const breaker_options& options);

class local_breaker {
public:
    using time = std::chrono::nanoseconds;
    using era = std::uint64_t;

    // A change of state, for events. `era` is the new one. `lasts`: how long it is open, or ramps.
    struct transition {
        breaker_state from = breaker_state::closed;
        breaker_state to = breaker_state::closed;
        trip_reason reason = trip_reason::none;  // of an opening
        local_breaker::era era = 0;
        std::chrono::milliseconds lasts{0};
    };
    // Every method below that may change the state returns the change, at most one a call.
    using change = std::optional<transition>;

    struct probe {
        std::uint64_t token = 0;  // unique in this breaker; 0: none
        local_breaker::era era = 0;
        time deadline{0};  // by the caller's clock
        explicit operator bool() const noexcept { return token != 0; }
    };
    struct asked {
        local_breaker::probe probe;                // empty: refused
        std::chrono::milliseconds retry_after{0};  // of a refusal, at least 1 ms
        local_breaker::change change;
    };

    explicit local_breaker(const local_rules& rules, era first = 1);

    // ---- reading; cheap, nothing changes. Only a changing method can notice that the clock was
    // set, so begin each turn with expire(now).
    [[nodiscard]] breaker_state state() const noexcept { return state_; }
    [[nodiscard]] era current_era() const noexcept { return era_; }
    [[nodiscard]] bool suspended() const noexcept { return suspended_; }
    [[nodiscard]] bool inherited() const noexcept { return inherited_; }
    [[nodiscard]] std::uint8_t backoff_level() const noexcept { return level_; }
    // Of the last opening.
    [[nodiscard]] trip_reason reason() const noexcept { return reason_; }
    // Half open, or open with its time run out: a call may ask for a probe.
    [[nodiscard]] bool probing_due(time now) const noexcept;
    [[nodiscard]] bool ramping(time now) const noexcept;
    // Open: until probes may be asked for. Closed: what is left of the ramp. Rounded up.
    [[nodiscard]] std::chrono::milliseconds remaining(time now) const noexcept;
    // What to tell a refused caller: as remaining; half open, until the first deadline of a probe
    // in flight. At least 1 ms.
    [[nodiscard]] std::chrono::milliseconds retry_after(time now) const noexcept;
    // The share of calls to admit, 0.1 ... 1; 1 when not ramping.
    [[nodiscard]] double admitted_share(time now) const noexcept;
    // The earliest deadline of a probe in flight, by the caller's clock: when to call expire().
    [[nodiscard]] std::optional<time> next_deadline() const noexcept;
    [[nodiscard]] std::uint32_t probes_in_flight() const noexcept;
    [[nodiscard]] std::uint32_t probes_left() const noexcept;

    // ---- closed: outcomes
    // Whether each single outcome has to be shown by on_outcome, in order; otherwise it is enough
    // to show failures, and counts by on_window whenever they may have crossed a threshold
    // (headroom).
    [[nodiscard]] bool sees_every_outcome() const noexcept;
    // One outcome of a call that began in era `e`; `window` holds it already. `random`, here and
    // below, is uniform in 0 <= random < 1.
    change on_outcome(era e, counter what, const counts& window, time now, double random);
    // The same, but nothing is decided: an operator's hand is laid over the breaker.
    void count(era e, counter what) noexcept;
    // The window's counts alone: old calls have left it, or overdue ones were counted.
    change on_window(era e, const counts& window, time now, double random);

    // ---- open and half-open: probes
    [[nodiscard]] asked ask_probe(time now, double random);
    // At the deadline or later a success counts as failed. A probe of an older era frees its slot
    // and decides nothing; an unknown or late one changes nothing.
    change settle(const probe& p, outcome what, bool slow, time now, double random);
    // Settles as failed every probe whose deadline has come.
    change expire(time now, double random);

    // ---- operators of this process
    // Opens for `lasts`, or for open_for when 0, whatever the state; the level is kept.
    change trip(std::chrono::milliseconds lasts, time now);
    change reset(time now);

    // ---- the fleet
    // The fleet's breaker is not closed, and its store answers. An inherited state ends.
    void suspend(time now);
    // An operator has closed the fleet's breaker: an own opening from before is over, too.
    void forget_own_opening() noexcept { aside_ = {}; }
    // The fleet's breaker is closed, and its store answers. Does nothing unless suspended or
    // inherited.
    change resume(bool set_aside, time now, double random);
    // The store is lost. `fleet` is what it said last, remaining times counted from now. A closed
    // fleet leaves the own state as it is, but for what is left of the fleet's ramp.
    change inherit(const view& fleet, std::uint32_t live, time now, double random);

    // New rules (the fleet's governing options changed). State and deadlines stay; another count
    // window starts empty.
    void set_rules(const local_rules& rules);
    [[nodiscard]] const local_rules& rules() const noexcept { return rules_; }

private:
    struct flight {
        std::uint64_t token;
        local_breaker::era era;
        time deadline;  // by the breaker's own time
    };
    // The own state while the fleet's, or the inherited one, is in force.
    struct own_state {
        bool open = false;
        time until{0};  // as until_
        std::uint8_t level = 0;
        trip_reason reason = trip_reason::none;
    };

    time advance(time now) noexcept;
    [[nodiscard]] time peek(time now) const noexcept;
    [[nodiscard]] std::uint32_t probe_limit() const noexcept;
    [[nodiscard]] std::uint8_t next_level(time at) const noexcept;
    void new_era() noexcept;
    change go_open(trip_reason why, std::chrono::milliseconds lasts, time at);
    change go_open(trip_reason why, time at, double random);
    change go_half_open();
    change go_closed(time at, bool ramp);
    change conclude(time at, double random);
    [[nodiscard]] own_state put_aside(time at) const noexcept;

    local_rules rules_;
    breaker_state state_ = breaker_state::closed;
    era era_;
    bool suspended_ = false;
    bool inherited_ = false;
    own_state aside_;
    std::uint32_t inherited_live_ = 0;

    time until_{0};  // open: its end; closed: end of the ramp
    time ramp_from_{0};
    trip_reason reason_ = trip_reason::none;
    std::uint8_t level_ = 0;
    time closed_since_{0};

    std::uint32_t streak_ = 0;  // failures in a row
    count_window last_calls_;

    std::uint64_t last_token_ = 0;
    std::vector<flight> flights_;  // probes that are out, of all eras
    counts settled_;               // probes of this era

    bool clock_known_ = false;
    time last_now_{0};  // the caller's clock
    time skew_{0};      // own time = caller's + skew
    time own_now_{0};
};

}  // namespace trinco::detail
