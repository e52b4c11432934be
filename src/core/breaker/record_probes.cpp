// Half-open: who may probe, what a settled probe means, and what happens when nobody settles.
#include <algorithm>

#include "core/breaker/record_steps.hpp"
#include "core/mutant.hpp"

namespace trinco::detail {

using namespace steps;

namespace {

struct tally {
    std::uint32_t succeeded = 0;
    std::uint32_t failed = 0;
    [[nodiscard]] std::uint32_t all() const noexcept { return succeeded + failed; }
};

// The results that count: those of voters that are not set aside.
[[nodiscard]] tally count_results(const fleet_record& r) noexcept {
    tally n;
    for (const fleet_record::voter& v : r.voters) {
        if (v.set_aside) continue;
        n.succeeded += v.probes_succeeded;
        n.failed += v.probes_failed;
    }
    return n;
}

// Tokens that are spent: a take with one of them is a duplicate.
void remember(fleet_record& r, std::uint64_t token, store_time t, bool granted) {
    const auto is_old = [&](const fleet_record::settled_token& s) {
        return t - s.at >= r.rules.probe_timeout;
    };
    auto keep = std::find_if_not(r.settled.begin(), r.settled.end(), is_old);
    if (r.settled.size() >= max_settled && keep == r.settled.begin()) ++keep;
    r.settled.erase(r.settled.begin(), keep);
    r.settled.push_back({token, t, granted});
}

// ---- what time and results decide ---------------------------------------------------------------

void reclaim(fleet_record& r, store_time t, effects& out) {
    const store_time grace = store_time(r.rules.probe_timeout) / 10;
    std::uint32_t of_this_era = 0;
    std::erase_if(r.leases, [&](const fleet_record::lease& l) {
        if (t < l.deadline + grace) return false;
        if (l.era == r.era) ++of_this_era;
        remember(r, l.token, t, false);
        return true;
    });
    if (r.state != breaker_state::half_open) return;
    r.reclaimed += of_this_era;
    if (r.reclaimed >= r.rules.half_open_probes) reopen(r, t, trip_reason::probes_vanished, out);
}

// The failures forbid closing: opens again when a quorum has failed, else goes on without the
// voters that did.
void judge_failures(fleet_record& r, store_time t, effects& out) {
    const auto failed = static_cast<std::uint32_t>(
        std::count_if(r.voters.begin(), r.voters.end(),
                      [](const fleet_record::voter& v) { return v.probes_failed != 0; }));
    if (failed >= quorum_of(r, live_voters(r, t), t) ||
        TRINCO_MUTANT("record_no_quorum_at_reopening")) {
        reopen(r, t, trip_reason::probes_failed, out);
        return;
    }
    for (fleet_record::voter& v : r.voters) {
        if (v.probes_failed != 0) v.set_aside = true;
    }
    r.set_aside_at = t;
    bump(r, out);
}

void judge_results(fleet_record& r, store_time t, effects& out) {
    if (r.state != breaker_state::half_open) return;
    if (closing_is_impossible(count_results(r).failed, r.rules)) judge_failures(r, t, out);
    if (r.state != breaker_state::half_open) return;
    if (count_results(r).all() >= r.rules.half_open_probes) {
        enter_closed(r, t, r.rules.recovery_ramp, recovered_reason, out);
    }
}

// Some are set aside and the others do not come: opens again.
void end_vain_wait(fleet_record& r, store_time t, effects& out) {
    if (r.state != breaker_state::half_open) return;
    bool any_set_aside = false;
    store_time asked{0};
    for (const fleet_record::voter& v : r.voters) {
        any_set_aside = any_set_aside || v.set_aside;
        if (!v.set_aside) asked = std::max(asked, v.asked);
    }
    if (!any_set_aside) return;
    const store_time due = asked > r.set_aside_at
                               ? asked + std::max(r.rules.probe_timeout, r.rules.live_for)
                               : r.set_aside_at + r.rules.probe_timeout;
    if (t >= due) reopen(r, t, trip_reason::probes_failed, out);
}

void progress(fleet_record& r, store_time t, effects& out) {
    if (is_frozen(r)) return;
    reclaim(r, t, out);
    judge_results(r, t, out);
    end_vain_wait(r, t, out);
}

// ---- take ---------------------------------------------------------------------------------------

// A voter that asks; `known` is null when the record has not heard of it.
struct asker {
    std::string_view name;
    const fleet_record::voter* known;
};

// How many probes of an era one voter may hold and have settled.
[[nodiscard]] std::uint32_t cap_of(const fleet_record& r, const asker& me, store_time t) noexcept {
    const std::uint32_t n = r.rules.half_open_probes;
    std::uint32_t candidates = me.known != nullptr && is_live(r, *me.known, t) ? 0 : 1;
    store_time other_asked = r.since;
    store_time other_settled = r.since;
    for (const fleet_record::voter& v : r.voters) {
        if (v.set_aside) continue;
        if (is_live(r, v, t)) ++candidates;
        if (&v == me.known) continue;
        other_asked = std::max(other_asked, v.asked);
        other_settled = std::max(other_settled, v.settled_at);
    }
    if (t - other_asked >= r.rules.probe_timeout) return n;
    if (t - other_settled >= 2 * r.rules.probe_timeout) return n;
    const std::uint32_t parts = quorum_of(r, candidates, t);
    return (n + parts - 1) / parts;
}

[[nodiscard]] std::uint32_t used_by(const fleet_record& r, const asker& me) noexcept {
    const auto held = std::count_if(
        r.leases.begin(), r.leases.end(),
        [&](const fleet_record::lease& l) { return l.era == r.era && l.voter == me.name; });
    const auto used = static_cast<std::uint32_t>(held);
    return me.known == nullptr ? used : used + me.known->probes_succeeded + me.known->probes_failed;
}

// When nobody can have a probe, whoever asks: how long that will last; else nothing.
[[nodiscard]] std::optional<milliseconds> refusal_of_all(const fleet_record& r,
                                                         store_time t) noexcept {
    if (r.state == breaker_state::closed) return milliseconds(0);
    if (is_frozen(r)) {
        return std::clamp(left(r.over_until, t), shortest_retry, longest_retry);
    }
    if (r.state == breaker_state::open && t < r.until) {
        return std::max(left(r.until, t), shortest_retry);
    }
    return std::nullopt;
}

// Why this voter gets no probe now, as the time after which to ask again; nothing: it gets one.
[[nodiscard]] std::optional<milliseconds> refusal_of(const fleet_record& r, const asker& me,
                                                     store_time t) noexcept {
    const store_time quarantined = r.taken_over_at + r.rules.probe_timeout;
    if (r.taken_over_at.count() != 0 && t < quarantined && !TRINCO_MUTANT("record_no_quarantine")) {
        return std::max(left(quarantined, t), shortest_retry);
    }
    if (r.options.empty()) return std::max(r.rules.sync_interval, shortest_retry);
    if (me.known != nullptr && me.known->set_aside) {
        return std::clamp(r.rules.probe_timeout, shortest_retry, longest_retry);
    }
    const bool at_cap = r.state == breaker_state::half_open && used_by(r, me) >= cap_of(r, me, t);
    if (at_cap || free_slots(r) == 0)
        return std::clamp(spread_of(r), shortest_retry, longest_retry);
    return std::nullopt;
}

void lease_to(fleet_record& r, std::string_view voter, const probe_request& p, store_time t,
              effects& out) {
    if (r.state == breaker_state::open) enter_half_open(r, t, out);
    fleet_record::voter& me = voter_of(r, voter, t);
    me.heard = t;
    me.asked = t;
    const bool is_shorter = p.lease.count() > 0 && p.lease < r.rules.probe_timeout;
    r.leases.push_back(
        {p.token, r.era, t + (is_shorter ? p.lease : r.rules.probe_timeout), me.name});
    bump(r, out);
}

[[nodiscard]] bool is_spent(const fleet_record& r, std::uint64_t token) noexcept {
    const auto is_it = [&](const auto& x) { return x.token == token; };
    return token == 0 || std::any_of(r.settled.begin(), r.settled.end(), is_it) ||
           (std::any_of(r.leases.begin(), r.leases.end(), is_it) &&
            !TRINCO_MUTANT("record_leases_a_token_twice"));
}

void take(fleet_record& r, const breaker_identity& who, const probe_request& p, store_time t,
          effects& out, probe_reply& reply) {
    // Before time is looked at: its asking may be what another voter's results wait for.
    if (r.state == breaker_state::half_open && !is_frozen(r)) voter_of(r, who.voter, t).asked = t;
    progress(r, t, out);
    const bool leased_before = std::any_of(
        r.leases.begin(), r.leases.end(),
        [&](const fleet_record::lease& l) { return l.token == p.token && l.era == r.era; });
    if (leased_before && !TRINCO_MUTANT("record_leases_a_token_twice")) {
        reply.granted = true;
        return;
    }
    auto wait = refusal_of_all(r, t);
    if (!wait && is_spent(r, p.token)) wait = shortest_retry;
    if (!wait) wait = refusal_of(r, {who.voter, find_voter(r, who.voter)}, t);
    reply.granted = !wait.has_value();
    if (wait) {
        reply.retry_after = *wait;
    } else {
        lease_to(r, who.voter, p, t, out);
    }
}

// ---- settle -------------------------------------------------------------------------------------

// A lease is over: books its result. True when it is of the running half-open era.
bool finish(fleet_record& r, const fleet_record::lease& l, probe_step step, store_time t) {
    const bool is_current = l.era == r.era || TRINCO_MUTANT("record_settles_without_era");
    if (!is_current || r.state != breaker_state::half_open) return false;
    fleet_record::voter& v = voter_of(r, l.voter, t);
    v.heard = t;
    if (step == probe_step::give_back) return true;
    if (step == probe_step::success && t <= l.deadline) {
        ++v.probes_succeeded;
    } else {
        ++v.probes_failed;
    }
    v.settled_at = t;
    return true;
}

void settle(fleet_record& r, const probe_request& p, store_time t, effects& out,
            probe_reply& reply) {
    if (p.token == 0) return;
    const auto before =
        std::find_if(r.settled.begin(), r.settled.end(),
                     [&](const fleet_record::settled_token& s) { return s.token == p.token; });
    if (before != r.settled.end()) {
        reply.granted = before->granted;
    } else {
        const auto at =
            std::find_if(r.leases.begin(), r.leases.end(),
                         [&](const fleet_record::lease& l) { return l.token == p.token; });
        if (at != r.leases.end()) {
            const fleet_record::lease l = std::move(*at);
            r.leases.erase(at);
            reply.granted = finish(r, l, p.step, t);
            if (reply.granted) bump(r, out);
        }
        remember(r, p.token, t, reply.granted);
    }
    progress(r, t, out);
}

}  // namespace

std::uint32_t steps::free_slots(const fleet_record& r) noexcept {
    const std::uint32_t n = r.rules.half_open_probes;
    std::size_t used = r.leases.size();
    if (r.state == breaker_state::half_open) used += count_results(r).all();
    return used >= n ? 0 : n - static_cast<std::uint32_t>(used);
}

std::uint16_t steps::probes_left(const fleet_record& r) noexcept {
    return r.state == breaker_state::closed ? std::uint16_t{0}
                                            : static_cast<std::uint16_t>(free_slots(r));
}

probe_reply apply(fleet_record& r, const breaker_identity& who, const probe_request& p,
                  store_time now, effects& out) {
    const store_time t = tick(r, now);
    expire(r, t, out);
    if (is_acceptable(p.mine)) take_over(r, p.mine, t, out);
    probe_reply reply;
    if (p.step == probe_step::take) {
        take(r, who, p, t, out, reply);
    } else {
        settle(r, p, t, out, reply);
    }
    reply.fleet = view_at(r, t);
    reply.live = live_voters(r, t);
    const fleet_record::voter* v = find_voter(r, who.voter);
    reply.set_aside = v != nullptr && v->set_aside;
    return reply;
}

}  // namespace trinco::detail
