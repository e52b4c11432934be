// What follows a change: generations, the gate, events; and what can be asked and ordered.

#include <algorithm>
#include <utility>

#include "breaker/engine.hpp"

namespace trinco::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds default_override_expiry = std::chrono::hours(24);

milliseconds left_of(nanoseconds until, nanoseconds now) noexcept {
    return std::chrono::ceil<milliseconds>(std::max(nanoseconds(0), until - now));
}

// An operator who gives no reason: what was done.
std::string_view or_else(std::string_view reason, std::string_view verb) noexcept {
    return reason.empty() ? verb : reason;
}

std::string words(trip_reason why) {
    std::string text(name_of(why));
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

}  // namespace

// ---- changes -----------------------------------------------------------------------------------

void engine::draw_share() {
    std::uint64_t bits;
    if (env_.random) {
        bits = env_.random();
    } else {
        bits = (random_state_ += 0x9e3779b97f4a7c15ULL);  // splitmix64
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
        bits ^= bits >> 31;
    }
    share_ = static_cast<double>(bits >> 11) * 0x1.0p-53;
}

void engine::pass_time(nanoseconds now) {
    if (over_.kind != override_kind::none && now >= over_.until) {
        lay_over(override_kind::none, {}, nanoseconds(0));
    }
    apply(local_.expire(now, share_));  // also shows it the time, should the clock have been set
    follow_eras(now);
    if (overdue_ && overdue_->due(now)) find_overdue(now);
}

void engine::apply(const local_breaker::change& change) {
    if (!change) return;
    draw_share();
    switch (change->to) {
        case breaker_state::open: reason_ = words(change->reason); break;
        case breaker_state::half_open: reason_ = "probing"; break;
        case breaker_state::closed: reason_ = "probes succeeded"; break;
    }
}

void engine::follow_eras(nanoseconds now) {
    const auto& meant = eras_[generation() % remembered];
    if (meant.local != local_.current_era() || meant.fleet != fleet_.fleet.era) {
        renew_generation(now);
    }
}

// The bank of the last generation is kept for its stragglers, that of the one before is emptied.
void engine::renew_generation(nanoseconds now) {
    const auto old = generation();
    const auto next = old + 1;
    const auto fleet_era = fleet_.fleet.era;
    auto& w = window();
    if (in_fleet()) {
        const bool same_fleet = eras_[old % remembered].fleet == fleet_era;
        if (!same_fleet) forget_for_fleet(true, now);
        keep_for_fleet(w.harvest(old & 1, now), same_fleet, now);
        stale_for_fleet_ += w.clear(next & 1);  // stragglers'
    } else {
        w.clear(next & 1);
    }
    eras_[next % remembered] = {next, local_.current_era(), fleet_era};
    overdue_now_ = 0;
    judge_successes_ = false;
    evaluate_at_bad_.store(0, std::memory_order_relaxed);  // the next bad outcome
    gate_.store(next << mode_bits | asking, std::memory_order_release);
}

void engine::refresh(nanoseconds now) {
    follow_eras(now);
    const auto gate = generation() << mode_bits | mode_for(decide_now(now), now);
    if (gate_.load(std::memory_order_relaxed) != gate) {
        gate_.store(gate, std::memory_order_release);
    }
    say_what_changed(now);
}

// A refusal holds until its time is over, or an override that might change it.
engine::mode engine::mode_for(decision d, nanoseconds now) {
    if (strict_now()) return asking;
    auto until = now;
    switch (d) {
        case decision::admit:
            if (over_.kind != override_kind::disabled) return admitting_mode();
            return hold_mode(counting, now, over_.until);
        case decision::refuse_local: until = now + local_.remaining(now); break;
        case decision::refuse_fleet: until = refused_until(now); break;
        default: return asking;
    }
    if (over_.kind != override_kind::none) until = std::min(until, over_.until);
    const auto by = d == decision::refuse_local                ? refused_by::local_breaker
                    : over_.kind == override_kind::forced_open ? refused_by::operator_override
                                                               : refused_by::fleet_breaker;
    const auto why =
        by == refused_by::operator_override ? refusal_reason::forced_open : refusal_reason::open;
    return hold_mode(refusing, now, until,
                     static_cast<std::uint64_t>(by) << 8 | static_cast<std::uint64_t>(why));
}

// What belongs to a mode changes only while the gate shows another one: who reads it and finds the
// gate as before has read what belongs together.
engine::mode engine::hold_mode(mode which, nanoseconds now, nanoseconds until,
                               std::uint64_t why) noexcept {
    if (mode_until_.load(std::memory_order_relaxed) != until.count() ||
        refuse_why_.load(std::memory_order_relaxed) != why) {
        gate_.store(generation() << mode_bits | asking, std::memory_order_relaxed);
        refuse_why_.store(why, std::memory_order_release);
        mode_until_.store(until.count(), std::memory_order_release);
    }
    mode_since_.store(now.count(), std::memory_order_relaxed);
    return which;
}

decision engine::decide_now(nanoseconds now) const {
    if (refuses_ahead(now)) return decision::refuse_fleet;
    fleet_side fleet;
    fleet.known = fleet_known_;
    fleet.over = over_.kind;
    if (fleet_known_) {
        fleet.state = fleet_.fleet.state;
        fleet.probing_due = fleet.state == breaker_state::half_open ||
                            (fleet.state == breaker_state::open && now >= fleet_until_);
        fleet.ramping = fleet.state == breaker_state::closed && now < fleet_until_;
        fleet.outlived = outlives(fleet_.fleet);
    }
    return decide(fleet, {local_.state(), local_.probing_due(now), local_.ramping(now)});
}

double engine::share_now(nanoseconds now) const {
    double share = local_.admitted_share(now);
    const auto ramp = nanoseconds(local_.rules().shared.recovery_ramp);
    if (fleet_known_ && fleet_.fleet.state == breaker_state::closed && now < fleet_until_ &&
        ramp.count() > 0) {
        const auto left =
            static_cast<double>((fleet_until_ - now).count()) / static_cast<double>(ramp.count());
        share = std::min(share, 1.0 - 0.9 * std::min(1.0, left));
    }
    return share;
}

milliseconds engine::retry_after(decision d, nanoseconds now) const {
    if (d == decision::refuse_local) return local_.retry_after(now);
    return std::max(milliseconds(1), left_of(refused_until(now), now));
}

// ---- events ------------------------------------------------------------------------------------

breaker_state engine::effective_state() const noexcept {
    return fleet_rules() ? fleet_.fleet.state : local_.state();
}

void engine::say_what_changed(nanoseconds now) {
    if (const auto state = effective_state(); state != said_state_) {
        const auto from = std::exchange(said_state_, state);
        ++transitions_;
        say(event_kind::state_changed, from, now);
    }
    if (over_.kind != said_over_) {
        said_over_ = over_.kind;
        say(event_kind::override_changed, said_state_, now);
    }
    if (options_differ_ != said_options_differ_) {
        said_options_differ_ = options_differ_;
        say(event_kind::options_differ, said_state_, now);
    }
}

void engine::say(event_kind what, breaker_state from, nanoseconds now) {
    if (!hub_->wanted()) return;
    event e;
    e.kind = what;
    e.from = from;
    e.to = said_state_;
    const auto met = met_at_.count() != 0 ? met_at_ : clock_.precise();
    e.at = std::chrono::steady_clock::time_point(met);
    e.now = snapshot_locked(now);
    e.reason = what == event_kind::override_changed ? over_.reason
               : what == event_kind::options_differ ? options_differ_
               : what == event_kind::store_lost     ? lost_why_
                                                    : reason_;
    hub_->push(std::move(e));
}

// ---- looking -----------------------------------------------------------------------------------

breaker_state engine::state() {
    breaker_state s;
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        pass_time(now);
        refresh(now);
        s = refuses_ahead(now) ? breaker_state::open : effective_state();
    }
    hub_->deliver();
    return s;
}

trinco::snapshot engine::snapshot() {
    trinco::snapshot s;
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        pass_time(now);
        refresh(now);
        s = snapshot_locked(now);
        show_ahead(s, now);
    }
    hub_->deliver();
    return s;
}

std::size_t engine::windows() const {
    const lock hold(m_);
    return windows_.size();
}

trinco::snapshot engine::snapshot_locked(nanoseconds now) const {
    trinco::snapshot s;
    s.breaker = name_;
    s.state = effective_state();
    s.local_state = local_.state();
    s.reason = reason_;
    const bool fleets = fleet_rules();
    if (s.state == breaker_state::open) {
        s.retry_after = fleets ? left_of(fleet_until_, now) : local_.remaining(now);
    }
    s.backoff_level = fleets ? fleet_.fleet.backoff_level : local_.backoff_level();
    s.admitted_share = s.state == breaker_state::closed ? share_now(now) : 1.0;
    s.transitions = transitions_;
    s.over = over_.kind;
    if (over_.kind != override_kind::none) {
        s.over_reason = over_.reason;
        s.over_remaining = left_of(over_.until, now);
    }
    s.window = window().sum(generation() & 1, now);
    if (in_fleet() && fleet_seen_) {
        s.fleet_state = fleet_.fleet.state;
        s.fleet_window = fleet_.window;
        s.live = fleet_.live;
    }
    s.options_differ = options_differ_;
    s.degraded = degraded_;
    s.probes_in_flight = local_.probes_in_flight() + fleet_probes_out_;
    s.overdue = overdue_out_;
    s.totals = extra_totals_;
    for (const auto& w : windows_) s.totals += w->totals();
    s.stale = stale_.judged() + stale_.ignored;
    s.would_have_rejected = would_have_rejected_;
    s.failure_rate = local_.rules().shared.failure_rate;
    s.minimum_calls = local_.rules().shared.minimum_calls;
    return s;
}

void engine::show_ahead(trinco::snapshot& s, nanoseconds now) const {
    if (!refuses_ahead(now)) return;
    s.state = breaker_state::open;
    s.fleet_state = breaker_state::open;
    s.retry_after = left_of(ahead_.until, now);
    s.reason = ahead_.reason;
}

// ---- operators ---------------------------------------------------------------------------------

std::error_code engine::operate(control_verb verb, std::string_view reason, milliseconds expires) {
    if (in_fleet()) return operate_fleet(verb, reason, expires);
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        pass_time(now);
        operate_alone(verb, reason, expires, now);
        refresh(now);
    }
    hub_->deliver();
    return {};
}

void engine::operate_alone(control_verb verb, std::string_view reason, milliseconds expires,
                           nanoseconds now) {
    const auto until = now + (expires.count() == 0 ? default_override_expiry : expires);
    switch (verb) {
        case control_verb::trip:
            apply(local_.trip(expires, now));
            if (!reason.empty()) reason_ = reason;
            break;
        case control_verb::reset:
            apply(local_.reset(now));
            reason_ = or_else(reason, "reset");
            break;
        case control_verb::force_open:
            lay_over(override_kind::forced_open, or_else(reason, "forced open"), until);
            break;
        case control_verb::disable:
            lay_over(override_kind::disabled, or_else(reason, "disabled"), until);
            break;
        case control_verb::observe:
            lay_over(override_kind::observing, or_else(reason, "observing"), until);
            break;
        case control_verb::resume: lay_over(override_kind::none, reason, nanoseconds(0)); break;
        default: break;  // options are a fleet's
    }
}

void engine::lay_over(override_kind what, std::string_view reason, nanoseconds until) {
    if (what != over_.kind) {
        resume_reason_.clear();  // of another one
        judge_next();
    }
    over_ = {what, std::string(reason), until};
}

}  // namespace trinco::detail
