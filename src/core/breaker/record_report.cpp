// What is read without an exchange, by strict calls and by operators; how long a record is kept.
#include <algorithm>

#include "core/breaker/record_steps.hpp"

namespace trinco::detail {

using namespace steps;

namespace {

[[nodiscard]] std::vector<share> shares_of(const fleet_record& r, store_time t) {
    std::vector<const fleet_record::instance*> shown;
    for (const fleet_record::instance& i : r.instances) {
        if (t - i.heard <= r.rules.live_for) shown.push_back(&i);
    }
    if (shown.size() > max_shares) {
        std::nth_element(shown.begin(), shown.begin() + max_shares, shown.end(),
                         [](const auto* a, const auto* b) { return a->heard > b->heard; });
        shown.resize(max_shares);
        std::sort(shown.begin(), shown.end(),
                  [](const auto* a, const auto* b) { return a->name < b->name; });
    }
    std::vector<share> shares;
    shares.reserve(shown.size());
    for (const fleet_record::instance* i : shown) {
        shares.push_back({i->name, i->voter, i->window.sum_at(slice_number(r, t)),
                          std::chrono::floor<milliseconds>(t - i->heard), i->own_stamp});
    }
    return shares;
}

}  // namespace

glance look(const fleet_record& r, const look_request& q, store_time now) {
    const store_time t = time_of(r, now);
    const view mine = is_acceptable(q.mine) ? q.mine : view{};
    glance g;
    g.fleet = view_at(r, t);
    const bool tells_options = r.options.empty() || mine.options_stamp != r.options_stamp;
    const bool ran_out = (r.over != override_kind::none && t >= r.over_until) ||
                         (r.set_until.count() != 0 && t >= r.set_until);
    const bool decision_due = r.suspect_since.count() != 0 && t - r.suspect_since >= flush_wait;
    g.exchange_first = tells_options || ran_out || decision_due || mine.newer_than(g.fleet);
    return g;
}

report report_of(const fleet_record& r, std::string_view breaker, store_time now) {
    const store_time t = time_of(r, now);
    report p;
    p.breaker = breaker;
    p.now.fleet = view_at(r, t);
    p.now.window = r.window.sum_at(slice_number(r, t));
    p.now.live = live_voters(r, t);
    for (const fleet_record::voter& v : r.voters) {
        const counts n = v.window.sum_at(slice_number(r, t));
        if (is_live(r, v, t) && is_failing(r, n, p.now.live)) ++p.now.voters_failing;
    }
    p.now.probes_left = probes_left(r);
    p.now.next_exchange = pace(r);
    p.options = r.options;
    p.options_set = r.set_until.count() != 0;
    p.set_remaining = left(r.set_until, t);
    p.totals = r.totals;
    p.shares = shares_of(r, t);
    return p;
}

std::chrono::milliseconds time_to_live(const fleet_record& r, store_time now) {
    const store_time t = time_of(r, now);
    store_time last = std::max({t, r.until, r.set_until});
    if (r.over != override_kind::none) last = std::max(last, r.over_until);
    for (const fleet_record::lease& l : r.leases) last = std::max(last, l.deadline);
    return left(last, t) + r.rules.key_ttl;
}

}  // namespace trinco::detail
