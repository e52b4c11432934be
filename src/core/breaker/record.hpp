// The fleet's breaker: one record in a store, and the one function that changes it.
//
// apply(record, request, now) is the decision of the product. It is pure: no clock, no randomness,
// no I/O. memory: applies it to a map, local: to a row in one transaction, the simulated Redis
// behind a network; Redis's scripts repeat it and are compared with it on a real server. `now` is
// the store's time, microseconds since 1970; it may stand still or step back, and decides
// everything with a clock.
//
// States      closed -> open -> half_open -> closed, or open again. An absent record is closed with
//             (era, rev) = (0, 0); it stays there while only counts come, so that a view which any
//             living instance carries beats a record that was lost.
// Time        The record's own time = now + skew never steps back: when the store's clock does, the
//             record goes on from the latest time it has seen and keeps the difference (skew), so
//             that a clock set back by an hour prolongs no deadline. A clock set forward lets
//             deadlines pass early, which nothing in a record could tell from a quiet hour. The
//             same holds for a fail-over to a server whose clock is behind.
// Eras        Each transition makes a new era = max(era + 1, time), with rev 0. rev grows by one at
//             grants and settlements of probes, changes of options and expiries, and to max(rev +
//             1, time) at an operator's override, which therefore wins over whatever an older copy
//             of the record has counted up to since. Counts never change it.
// Views       Every exchange and probe carries the sender's. When it is newer, the record takes it
//             over before it looks at the rest: state, remaining time (from now), backoff,
//             override; window and probe results empty, no leases. An override in era 0 was said
//             to a record that had lost everything: it stays, with rev = max(rev + 1, time). Since
//             leases may have been lost with the old record, no probe is granted for probe_timeout
//             afterwards (quarantine), and none before the options are known. A view that no
//             record can have made (era or rev at 2^53, negative times) is invalid, longest times
//             are cut to 31 days.
// Counting    A batch with seq > last of this instance books its slices at now - age into the
//             window (slice number = time / slice length), the sender's voter's window and the
//             sender's own; slices older than the window, of another era than the record's, and
//             `stale` go to the totals only, in which every counted outcome is found. An instance,
//             and with it its last seq, is kept for live_for and at least two windows after it was
//             heard.
// Opening     In an exchange, when the options are known, the state is closed and no override
//             freezes it: judge(window) says so, and at least min(quorum, live) live voters are
//             failing by voter_is_failing. live: voters heard (exchange, grant, settlement) within
//             live_for.
// Cold window When more than a tenth of the window's judged calls are younger than 2 x
//             sync_interval (in slices of sync_interval: in the running one or the two before it),
//             a crossing does not open but sets `suspect` and asks all instances to flush; the
//             first exchange at least 20 ms later decides on what is there then: it opens or clears
//             the suspicion.
// Half-open   Begins with the first take that is granted at or after the deadline of open, never by
//             an exchange or a settlement: after a loss of data an instance that knows less must
//             not move the state before those who know more were heard.
// Forgetting  A record that was lost knows only those who have come since, and one bad voter that
//             comes first must not be its own quorum: for live_for after a newer view was taken
//             over, or after an instance came that was stamped before and is not known, quorums are
//             not lowered to the voters that live, but are the whole `quorum`.
// Probes      A lease holds its slot until it is settled, given back or reclaimed, whatever era it
//             is of. take grants when held slots + settled probes of this era < N, the sender's
//             voter holds and settled fewer than its cap in this era, is not set aside, and there
//             is no quarantine. cap = ceil(N / min(quorum, live voters not set aside)); it is N
//             when no other voter that is not set aside asked for a probe within probe_timeout, or
//             when none of them settled one for 2 x probe_timeout (they only give back), both
//             counted from the beginning of the era at the earliest.
//             A token that is leased in this era is granted again and changes nothing. The last 256
//             tokens that were settled or given back within probe_timeout are remembered: a take
//             that arrives after its own settlement (a duplicate, or overtaken by give_back) is
//             refused instead of leasing a slot to nobody.
//             A refusal changes nothing except when the voter asked last. retry_after is at least
//             10 ms: what is left of open, of quarantine or of the override (at most 1 s); 1 s or
//             probe_timeout, if that is less, for who is set aside; else the live instances' share
//             of exchange_budget (at most 1 s).
// Settling    By token, and only in the lease's own era; otherwise the lease is freed and nothing
//             else happens (granted = false). give_back frees the slot. A settlement of a lease
//             that is past its deadline is taken as a failure. A repetition is answered like the
//             first.
// Reclaiming  A lease probe_timeout/10 past its deadline is dropped as ignored; after N of these in
//             one era the record opens again (probes_vanished).
// Closing     When N counted results do not make closing impossible.
// Re-opening  When closing_is_impossible by the counted failures: if the voters with failures in
//             this era (set aside ones included) are min(quorum, live) or more, it opens again with
//             the next backoff level. Otherwise these voters are set aside: their results leave the
//             count, their slots go to others, and they get no probe in this era. If after
//             probe_timeout no voter that is not set aside has asked for a probe since, it opens
//             again; if one has, but none for live_for (at least probe_timeout) since the last,
//             too.
//             Set-aside voters are remembered until the next opening, so that each of their
//             instances learns it (set_aside) and opens its own breaker.
// Time-driven changes (reclaiming that re-opens, a wait for another voter that ran out, results
//             that decide only under changed options) happen in probe requests only, like the
//             beginning of half-open; a settlement is booked before they are looked at.
// Ramp        closed after half_open: until = now + recovery_ramp; remaining says what is left.
// Backoff     re-opening: level + 1, at most 32. Closed for open_max or longer: level 0 at the next
//             opening. Jitter is a function of the era: spread = (era mod 1009) / 1008.
// Overrides   forced_open and disabled freeze the state: counts and settlements are booked, nothing
//             is decided, and no probe is granted. observing decides as usual. An expired override
//             is removed by any request.
// Controls    trip: opens for open_for (or `expires`), level kept. reset: closed, empty, level 0.
//             force_open, disable, observe: for `expires`, 24 h when 0. resume: no override. set:
//             options that beat all until `expires` (30 days when 0) or unset; one `set` after
//             another adds up. forget: reset, and no override, no set options, totals zero. Leases
//             stay in all of them. An id seen within the last hour (the last 64) answers the view
//             only.
// Options     A process's own options get stamped with `now` at its first exchange (own_stamp = 0);
//             the latest stamp governs, a text equal to the last one stamped shares its stamp, and
//             a batch that was counted before is not stamped again. Stamps are even; those of
//             options that an operator set are odd, by which a record that was lost knows them
//             again (for another 30 days). An exchange whose sender's stamp is older gets the text;
//             a record without text takes the sender's, and one with an older text takes the newer,
//             asking for it by send_options; what was unset since is older. Who was configured with
//             what is lost with a record whose options were set, and is not known where some were
//             set before any process came: own_stamp = 0 asks each sender for its own, and `unset`
//             leaves no text, by which nothing opens, until one has come. A change of window or
//             window_slices empties the window.
// Pacing      next_exchange = max(sync_interval, instances heard within live_for /
//             exchange_budget), recounted every live_for / 8.
//
// Bounds: 512 voters, 4096 instances (least recently heard go first), at most the largest N that
// ever governed (1000) leases, 256 settled tokens, 64 control ids, 256 shares in a report.
// Cost: an exchange is linear in the voters and in the slices that it carries, a few microseconds
// for 50 voters; no allocation once a party is known.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/breaker/messages.hpp"
#include "core/breaker/policy.hpp"
#include "core/breaker/slice_window.hpp"
#include "core/breaker/view.hpp"

namespace trinco::detail {

using store_time = std::chrono::microseconds;  // since 1970, by the store's clock

struct fleet_record {
    struct lease {
        std::uint64_t token = 0;
        era_t era = 0;
        store_time deadline{0};
        std::string voter;
        bool operator==(const lease&) const = default;
    };
    struct settled_token {
        std::uint64_t token = 0;
        store_time at{0};
        bool granted = false;  // as it was answered
        bool operator==(const settled_token&) const = default;
    };
    struct voter {
        std::string name;
        store_time heard{0};
        slice_window window;                 // of the record's era
        store_time asked{0};                 // for a probe, last
        std::uint32_t probes_succeeded = 0;  // settled in this half-open era
        std::uint32_t probes_failed = 0;
        store_time settled_at{0};  // the last of these
        bool set_aside = false;
        bool operator==(const voter&) const = default;
    };
    struct instance {
        std::string name;
        std::string voter;
        store_time heard{0};
        std::uint64_t last_seq = 0;
        std::uint64_t own_stamp = 0;
        slice_window window;
        bool operator==(const instance&) const = default;
    };
    struct done_control {
        std::uint64_t id = 0;
        store_time at{0};
        bool operator==(const done_control&) const = default;
    };

    store_time clock{0};  // the latest time seen
    store_time skew{0};   // of the record's time over the store's clock

    era_t era = 0;
    std::uint64_t rev = 0;
    breaker_state state = breaker_state::closed;
    store_time until{0};  // open: deadline; closed: end of the ramp
    store_time since{0};  // of this era
    std::uint8_t backoff_level = 0;
    std::string reason;  // of the last transition
    override_kind over = override_kind::none;
    std::string over_reason;
    store_time over_until{0};

    std::string options;  // governing, as text; empty: not known
    policy rules;         // the same, parsed
    std::uint64_t options_stamp = 0;
    std::string configured_options;  // the latest stamped by a process, beneath a `set`
    std::uint64_t configured_stamp = 0;
    std::string set_options;  // pairs that an operator set
    store_time set_until{0};  // 0: none

    slice_window window;          // the fleet's
    slice_window recent;          // by sync_interval, for the cold window
    store_time suspect_since{0};  // 0: no suspicion
    counts totals;                // lifetime, window included

    std::vector<lease> leases;
    std::vector<settled_token> settled;  // oldest first
    std::uint32_t reclaimed = 0;         // in this era
    store_time set_aside_at{0};          // a voter, last
    store_time taken_over_at{0};         // quarantine counts from here; 0: none
    store_time forgot_at{0};             // somebody came whom it should have known, last; 0: never

    std::vector<voter> voters;           // by name
    std::vector<instance> instances;     // by name
    std::uint32_t live_instances = 0;    // heard within live_for when last counted, and new ones
    store_time swept_at{0};              // when those long unheard were removed last
    std::vector<done_control> controls;  // oldest first

    bool operator==(const fleet_record&) const = default;
};

// What a store has to do for the rest of the fleet after an apply.
struct effects {
    bool changed = false;  // publish the record's view
    bool flush = false;    // ask every instance to send what it has
};

// The three requests. The record is changed in place; the answer is for the sender. `out` is added
// to, not reset, so that one may serve several calls of a transaction.
// A news that is out of bounds, or with options that do not parse, is answered with an error and
// changes nothing.
[[nodiscard]] verdict apply(fleet_record& r, const breaker_identity& who, const news& n,
                            store_time now, effects& out);
[[nodiscard]] probe_reply apply(fleet_record& r, const breaker_identity& who,
                                const probe_request& p, store_time now, effects& out);
// `invalid` (options of `set` that do not parse, id 0, who, reason or `expires` out of bounds)
// changes nothing but that what had run out is removed.
[[nodiscard]] view apply(fleet_record& r, const control_request& c, store_time now, effects& out,
                         std::error_code& error);

// Whether some record can have made this view.
[[nodiscard]] bool is_acceptable(const view& v) noexcept;

// Read-only.
// `look` of a record that is absent is that of an empty one. A view that no record can have made
// counts as one that knows nothing; glance::exchange_first says when an exchange has to come first.
// Cost: none but the copy of a reason.
[[nodiscard]] glance look(const fleet_record& r, const look_request& q, store_time now);
[[nodiscard]] view view_of(const fleet_record& r, store_time now);
[[nodiscard]] report report_of(const fleet_record& r, std::string_view breaker, store_time now);

// When the record may be removed by a store that expires keys: key_ttl beyond its longest deadline
// (open, ramp, override, set options, leases), from now.
[[nodiscard]] std::chrono::milliseconds time_to_live(const fleet_record& r, store_time now);

}  // namespace trinco::detail
