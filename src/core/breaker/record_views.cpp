// The record's time, its view, and its transitions.
#include <algorithm>

#include "core/breaker/record_steps.hpp"
#include "core/mutant.hpp"

namespace trinco::detail {

using namespace steps;

namespace {

// The part of every transition that is the same.
void begin_era(fleet_record& r, breaker_state to, store_time t, std::string_view reason,
               effects& out) {
    r.era = std::max(r.era + 1, static_cast<era_t>(t.count()));
    r.rev = 0;
    r.state = to;
    r.since = t;
    r.until = t;
    r.reason.assign(reason);
    r.reclaimed = 0;
    for (fleet_record::voter& v : r.voters) {
        v.probes_succeeded = 0;
        v.probes_failed = 0;
        v.settled_at = store_time(0);
        if (to == breaker_state::open) v.set_aside = false;
    }
    clear_windows(r);
    out.changed = true;
}

[[nodiscard]] store_time cut(milliseconds d) noexcept {
    return std::clamp<milliseconds>(d, milliseconds(0), longest_time);
}

}  // namespace

namespace steps {

store_time time_of(const fleet_record& r, store_time now) noexcept {
    return std::max({now + r.skew, r.clock, store_time(1)});
}

store_time tick(fleet_record& r, store_time now) noexcept {
    if (now + r.skew < r.clock) r.skew = r.clock - now;
    r.clock = time_of(r, now);
    return r.clock;
}

void expire(fleet_record& r, store_time t, effects& out) {
    if (r.over != override_kind::none && t >= r.over_until) {
        r.over = override_kind::none;
        r.over_reason.clear();
        bump(r, out);
    }
    if (r.set_until.count() != 0 && t >= r.set_until) unset_options(r, t, out);
}

void take_over(fleet_record& r, const view& theirs, store_time t, effects& out) {
    const bool is_newer = theirs.era != r.era ? theirs.era > r.era : theirs.rev > r.rev;
    const bool is_older = theirs.era != 0 && theirs.era < r.era;
    if (!is_newer && !(is_older && TRINCO_MUTANT("record_older_view_wins"))) return;
    // Said to a record that has lost everything: later than what any copy of the old one knows.
    const bool keeps_override =
        r.era == 0 && theirs.era > 0 && r.over != override_kind::none && t < r.over_until;
    begin_era(r, theirs.state, t, theirs.reason, out);
    r.era = theirs.era;
    r.rev = theirs.rev;
    r.until = t + cut(theirs.remaining);
    r.backoff_level = std::min(theirs.backoff_level, max_backoff);
    if (keeps_override) {
        if (theirs.over != override_kind::none) r.reason.clear();
        bump_by_operator(r, t, out);
    } else {
        r.over = theirs.over;
        r.over_until = t + cut(theirs.over_remaining);
        r.over_reason.clear();
        if (theirs.over != override_kind::none) r.over_reason.swap(r.reason);
        r.over_reason.resize(std::min(r.over_reason.size(), max_attribution));
    }
    r.reason.resize(std::min(r.reason.size(), max_attribution));
    for (fleet_record::voter& v : r.voters) v.set_aside = false;
    r.leases.clear();
    r.taken_over_at = t;
    r.forgot_at = t;
    expire(r, t, out);
}

view view_at(const fleet_record& r, store_time t) {
    view v;
    v.era = r.era;
    v.rev = r.rev;
    v.state = r.state;
    if (r.state != breaker_state::half_open) v.remaining = left(r.until, t);
    v.backoff_level = r.backoff_level;
    v.options_stamp = r.options_stamp;
    if (r.over != override_kind::none && t < r.over_until) {
        v.over = r.over;
        v.over_remaining = left(r.over_until, t);
        v.reason = r.over_reason;
    } else {
        v.reason = r.reason;
    }
    return v;
}

void bump_by_operator(fleet_record& r, store_time t, effects& out) noexcept {
    r.rev = std::max(r.rev + 1, static_cast<std::uint64_t>(t.count()));
    out.changed = true;
}

bool is_frozen(const fleet_record& r) noexcept {
    return r.over == override_kind::forced_open || r.over == override_kind::disabled;
}

void enter_open(fleet_record& r, store_time t, milliseconds length, std::string_view reason,
                effects& out) {
    begin_era(r, breaker_state::open, t, reason, out);
    r.until = t + length;
}

void enter_half_open(fleet_record& r, store_time t, effects& out) {
    begin_era(r, breaker_state::half_open, t, "probing", out);
}

void enter_closed(fleet_record& r, store_time t, milliseconds ramp, std::string_view reason,
                  effects& out) {
    begin_era(r, breaker_state::closed, t, reason, out);
    r.until = t + ramp;
}

void reopen(fleet_record& r, store_time t, trip_reason why, effects& out) {
    r.backoff_level =
        std::min<std::uint8_t>(static_cast<std::uint8_t>(r.backoff_level + 1), max_backoff);
    enter_open(r, t, opening_length(r, t), name_of(why), out);
}

milliseconds opening_length(const fleet_record& r, store_time t) noexcept {
    const era_t next = std::max(r.era + 1, static_cast<era_t>(t.count()));
    return open_duration(r.rules, r.backoff_level, static_cast<double>(next % 1009) / 1008.0);
}

}  // namespace steps

bool is_acceptable(const view& v) noexcept {
    return v.era < max_era && v.rev < max_era && v.options_stamp < max_era &&
           v.state <= breaker_state::half_open && v.over <= override_kind::observing &&
           v.remaining.count() >= 0 && v.over_remaining.count() >= 0;
}

view view_of(const fleet_record& r, store_time now) {
    return view_at(r, time_of(r, now));
}

}  // namespace trinco::detail
