// The exchange: the one request that every instance makes, in the order in which it is decided.
#include <algorithm>

#include "core/breaker/record_steps.hpp"
#include "core/mutant.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

using namespace steps;

namespace {

[[nodiscard]] bool is_small(const counts& n) noexcept {
    return std::max({n.success, n.failure, n.slow_success, n.slow_failure, n.ignored, n.rejected}) <
           max_count;
}

[[nodiscard]] bool is_acceptable_news(const news& n) noexcept {
    return is_acceptable(n.mine) && n.seq < max_era && n.slices.size() <= max_slices &&
           is_small(n.stale) && std::all_of(n.slices.begin(), n.slices.end(), [](const slice& s) {
               return is_small(s.n);
           });
}

void answer(const fleet_record& r, const news& n, const census& c, store_time t, verdict& v) {
    v.fleet = view_at(r, t);
    v.window = r.window.sum;
    v.live = c.live;
    v.probes_left = probes_left(r);
    v.next_exchange = pace(r);
    v.send_options = r.options.empty() || n.mine.options_stamp > r.options_stamp;
    if (n.mine.options_stamp < r.options_stamp) v.options = r.options;
}

}  // namespace

verdict apply(fleet_record& r, const breaker_identity& who, const news& n, store_time now,
              effects& out) {
    verdict v;
    const offered_options offered = parse_offered(r, n);
    if (!is_acceptable_news(n) || offered.is_bad) {
        v.error = errc::invalid;
        return v;
    }
    const store_time t = tick(r, now);
    expire(r, t, out);
    take_over(r, n.mine, t, out);

    fleet_record::voter& mine = voter_of(r, who.voter, t);
    mine.heard = t;
    if (n.own_stamp != 0 && find_instance(r, who.instance) == nullptr) r.forgot_at = t;
    fleet_record::instance& me = instance_of(r, who, t);
    const bool repeated = n.seq != 0 && n.seq <= me.last_seq;
    v.own_stamp = accept_options(r, me, n, offered, repeated, t, out);
    v.counted = n.seq != 0 && (!repeated || TRINCO_MUTANT("record_counts_a_repeated_seq"));
    if (v.counted) {
        me.last_seq = n.seq;
        book(r, mine, me, n, t);
    }
    v.set_aside = mine.set_aside;

    census c = take_census(r, t);
    const era_t before = r.era;
    decide_opening(r, c, t, out);
    if (r.era != before) {
        c.failing = 0;  // the window is empty again
        v.set_aside = false;
    }
    v.voters_failing = c.failing;
    answer(r, n, c, t, v);
    return v;
}

}  // namespace trinco::detail
