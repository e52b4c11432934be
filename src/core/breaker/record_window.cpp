// The fleet's window: booking, and the decision to open.
#include <algorithm>

#include "core/breaker/record_steps.hpp"
#include "core/mutant.hpp"

namespace trinco::detail::steps {

namespace {

// The slices of sync_interval in which a call is young, the running one included.
constexpr std::size_t young_slices = 3;

[[nodiscard]] std::int64_t sync_number(const fleet_record& r, store_time t) noexcept {
    return t / r.rules.sync_interval;
}

[[nodiscard]] bool is_cold(fleet_record& r, store_time t) noexcept {
    if (TRINCO_MUTANT("record_opens_on_a_cold_window")) return false;
    const std::uint64_t young = r.recent.advance(sync_number(r, t)).judged();
    return young * 10 > r.window.sum.judged();
}

}  // namespace

void book(fleet_record& r, fleet_record::voter& v, fleet_record::instance& i, const news& n,
          store_time t) {
    r.totals += n.stale;
    const std::int64_t current = slice_number(r, t);
    const std::size_t size = r.rules.window_slices;
    for (const slice& s : n.slices) {
        const store_time at = t - std::clamp<milliseconds>(s.age, milliseconds(0), longest_time);
        const bool of_this_era = n.mine.era == r.era;
        const bool in_window =
            of_this_era && at.count() >= 0 && r.window.add(slice_number(r, at), current, size, s.n);
        if (in_window) {
            const std::int64_t number = slice_number(r, at);
            v.window.add(number, current, size, s.n);
            i.window.add(number, current, size, s.n);
            r.recent.add(sync_number(r, at), sync_number(r, t), young_slices, s.n);
        }
        if (in_window || !TRINCO_MUTANT("record_forgets_expired_counts")) r.totals += s.n;
    }
}

census take_census(fleet_record& r, store_time t) noexcept {
    census c;
    c.live = live_voters(r, t);
    const std::int64_t current = slice_number(r, t);
    r.window.advance(current);
    for (fleet_record::voter& v : r.voters) {
        const counts& n = v.window.advance(current);
        if (is_live(r, v, t) && is_failing(r, n, c.live)) ++c.failing;
    }
    return c;
}

void decide_opening(fleet_record& r, const census& c, store_time t, effects& out) {
    if (r.state != breaker_state::closed || is_frozen(r) || r.options.empty()) return;
    const trip_reason why = judge(r.window.sum, r.rules);
    const bool is_quorum = c.failing >= quorum_of(r, c.live, t);
    const bool crossed =
        why != trip_reason::none && (is_quorum || TRINCO_MUTANT("record_no_quorum_at_opening"));
    if (r.suspect_since.count() != 0) {
        if (t - r.suspect_since < flush_wait) return;
        r.suspect_since = store_time(0);
    } else if (crossed && is_cold(r, t)) {
        r.suspect_since = t;
        out.flush = true;
        return;
    }
    if (!crossed) return;
    if (t - r.since >= r.rules.open_max) r.backoff_level = 0;
    enter_open(r, t, opening_length(r, t), name_of(why), out);
}

void clear_windows(fleet_record& r) noexcept {
    r.window.clear();
    r.recent.clear();
    r.suspect_since = store_time(0);
    for (fleet_record::voter& v : r.voters) v.window.clear();
    for (fleet_record::instance& i : r.instances) i.window.clear();
}

}  // namespace trinco::detail::steps
