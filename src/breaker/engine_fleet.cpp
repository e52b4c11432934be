// The fleet's side of a breaker: what it hears and what it tells. Everything here runs on the
// loop's thread or under the lock.

#include <algorithm>
#include <utility>

#include "breaker/engine.hpp"
#include "breaker/fleet_link.hpp"
#include "core/mutant.hpp"

namespace trinco::detail {

void engine::join_fleet(loop& on, fleet_sync& sync) {
    auto link = std::make_shared<fleet_link>(*this, on, sync);
    link->member = sync.join(name_, options_, *this);
    const lock hold(m_);
    link_owner_ = link;
    link_.store(link.get(), std::memory_order_release);
    read_first_ = options_.consistency == consistency::strict;
    refresh(clock_.coarse());
}

void engine::leave_fleet() {
    std::shared_ptr<fleet_link> link;
    {
        const lock hold(m_);
        link = std::exchange(link_owner_, nullptr);
        link_.store(nullptr, std::memory_order_release);
        read_first_ = false;
        fleet_known_ = false;
        asking_fleet_ = false;
        end_ahead();
        refresh(clock_.coarse());
    }
    if (!link) return;
    link->owner = nullptr;
    link->pending.clear();
    link->member.reset();
}

bool engine::in_fleet() const noexcept {
    return link_.load(std::memory_order_acquire) != nullptr;
}

// ---- hearing -----------------------------------------------------------------------------------

void engine::adopt(const terms& t) {
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        pass_time(now);
        const auto age = link_owner_->on.now() - t.as_of;
        // An answer that was asked for before may be older.
        const bool is_it = ahead_.era != 0 && t.fleet.era == ahead_.era;
        const auto opened = is_it ? ahead_.at : nanoseconds(0);
        if (t.fleet.era >= ahead_.era || t.as_of > ahead_.as_of) end_ahead();
        fleet_ = t;
        fleet_until_ = now + std::max(nanoseconds(0), nanoseconds(t.fleet.remaining) - age);
        fleet_over_until_ =
            now + std::max(nanoseconds(0), nanoseconds(t.fleet.over_remaining) - age);
        wake_at_bad_.store(bad_collected_ + t.urgent_after, std::memory_order_relaxed);
        if (!degraded_) obey_fleet(now);
        met_at_ = opened;
        refresh(now);
        met_at_ = nanoseconds(0);
    }
    hub_->deliver();
}

// Only from closed, where nothing but the fleet's state decides what comes: then what adopt() will
// make of the gate is known.
bool engine::open_ahead(const opening& o) {
    const lock hold(m_);
    if (!fleet_known_ || degraded_ || strict_now() || inherited_.era != 0 ||
        over_.kind != override_kind::none || obeyed_state_ != breaker_state::closed) {
        return false;
    }
    const auto now = clock_.coarse();
    const bool again = ahead_.era == o.era;
    ahead_.era = o.era;
    ahead_.as_of = link_.load(std::memory_order_relaxed)->on.now();
    ahead_.until = now + nanoseconds(o.remaining);
    ahead_.reason = o.reason;
    // Nothing else has changed: whoever changes anything refreshes before he leaves the lock.
    const auto which = mode_for(decision::refuse_fleet, now);
    gate_.store(generation() << mode_bits | which, std::memory_order_release);
    if (!again) ahead_.at = clock_.precise();
    return true;
}

void engine::obey_fleet(nanoseconds now) {
    const auto& fleet = fleet_.fleet;
    const bool other_era = eras_[generation() % remembered].fleet != fleet.era;
    const bool new_era = fleet_seen_ && other_era;
    use_rules(fleet_.rules, now);
    // What a refusal said about later asks was about that era, under that override.
    if (new_era || fleet.over != over_.kind) fleet_refused_until_ = nanoseconds(0);
    if (fleet.over != over_.kind || fleet.reason != over_.reason ||
        fleet_over_until_ != over_.until) {
        const bool ends = fleet.over == override_kind::none;
        lay_over(fleet.over, ends ? std::exchange(resume_reason_, {}) : fleet.reason,
                 fleet_over_until_);
    }
    const bool was_reset = new_era && fleet.over == override_kind::none && !fleet.reason.empty() &&
                           fleet.reason != recovered_reason;
    if (fleet.state == breaker_state::closed && was_reset) local_.forget_own_opening();
    const bool outlived = outlives(fleet);
    // It had outlived the opening, but the fleet has closed without it.
    if (inherited_.era != 0 && !outlived && fleet_.set_aside) local_.suspend(now);
    if (!outlived) inherited_ = {};
    if (outlived && fleet.era == inherited_.era) inherited_.met_again = true;
    if (fleet.state != breaker_state::closed) {
        if (!outlived) local_.suspend(now);
    } else if (const auto change = local_.resume(fleet_.set_aside, now, share_)) {
        apply(change);
    } else if (new_era && obeyed_state_ == breaker_state::closed && !fleet_.set_aside) {
        local_.reset(now);  // closed, and closed anew: somebody reset it
    }
    // Of the transition that callers meet: the fleet's, also one from before this process came, or
    // one that an override had covered.
    const bool fleets = (fleet.state != breaker_state::closed && !outlived) ||
                        (other_era && local_.state() == breaker_state::closed);
    if (fleets && !fleet.reason.empty() && fleet.over == override_kind::none) {
        reason_ = fleet.reason;
    }
    obeyed_state_ = fleet.state;
    fleet_seen_ = fleet_known_ = true;
}

// Half-open is the fleet's way out of the opening that was inherited when the level is still that
// of then (opening again from half-open raises it) and no other opening can have come between: it
// was still there when the store came back, or lasts until about then.
bool engine::outlives(const view& fleet) const noexcept {
    if (TRINCO_MUTANT("engine_outlives_nothing")) return false;
    if (inherited_.era == 0 || fleet.state == breaker_state::closed || fleet_.set_aside ||
        local_.suspended() || local_.state() != breaker_state::closed) {
        return false;
    }
    if (fleet.era == inherited_.era) return true;
    const auto& rules = local_.rules().shared;
    const std::chrono::microseconds longest =
        open_duration(rules, inherited_.level, 1) + rules.probe_timeout;
    const bool follows_it =
        inherited_.met_again || fleet.era - inherited_.era <= static_cast<era_t>(longest.count());
    return follows_it && fleet.state == breaker_state::half_open &&
           fleet.backoff_level == inherited_.level;
}

void engine::store_lost(std::uint32_t live, std::string_view why) {
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        pass_time(now);
        degraded_ = true;
        end_ahead();
        lost_why_ = why;
        fleet_known_ = false;
        read_first_ = false;
        auto last = fleet_.fleet;
        last.remaining =
            std::chrono::ceil<milliseconds>(std::max(nanoseconds(0), fleet_until_ - now));
        // Lost again before the fleet could recover: what this instance outlived stays behind it.
        if (fleet_seen_ && !outlives(last)) {
            inherited_ = {};
            if (last.state != breaker_state::closed) {
                inherited_ = {.era = last.era, .level = last.backoff_level};
            }
            apply(local_.inherit(last, live, now, share_));
        }
        inherited_.met_again = false;
        say(event_kind::store_lost, said_state_, now);
        refresh(now);
    }
    hub_->deliver();
}

void engine::store_back() {
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        pass_time(now);
        degraded_ = false;
        read_first_ = options_.consistency == consistency::strict;
        obey_fleet(now);
        say(event_kind::store_back, said_state_, now);
        refresh(now);
    }
    hub_->deliver();
}

// The governing options. Another window starts empty; what the old one had not told the fleet goes
// to the totals, because the fleet's window starts empty too.
void engine::use_rules(const policy& rules, nanoseconds now) {
    auto mine = local_.rules();
    if (mine.shared == rules) return;
    const bool other_window =
        mine.shared.window != rules.window || mine.shared.window_slices != rules.window_slices;
    mine.shared = rules;
    options_differ_ = difference_of(rules, policy_of(options_));
    local_.set_rules(mine);
    judge_next();
    if (!other_window) return;
    keep_for_fleet(window().harvest(0, now), false, now);
    keep_for_fleet(window().harvest(1, now), false, now);
    forget_for_fleet(true, now);
    use_window(rules);
}

// One that had this shape before is taken again, so that options which change to and fro take no
// more and more memory. No window is ever freed: a call may be about to count into it.
void engine::use_window(const policy& rules) {
    const auto fits = [&](const auto& w) {
        return w->slices() == rules.window_slices &&
               w->slice_length() == nanoseconds(rules.window) / rules.window_slices;
    };
    const auto old = std::find_if(windows_.begin(), windows_.end(), fits);
    if (old == windows_.end()) {
        windows_.push_back(
            std::make_unique<time_window>(rules.window, rules.window_slices, env_.shards));
    } else {
        std::rotate(old, old + 1, windows_.end());
        stale_for_fleet_ += windows_.back()->clear(0);  // stragglers'
        stale_for_fleet_ += windows_.back()->clear(1);
    }
    window_.store(windows_.back().get(), std::memory_order_release);
}

// ---- telling -----------------------------------------------------------------------------------

bool engine::has_news() const {
    const lock hold(m_);
    return !for_fleet_.empty() || !stale_for_fleet_.empty() ||
           window_totals() != totals_collected_ || (overdue_ && overdue_->due(clock_.coarse()));
}

fleet_port::harvest engine::collect(era_t era) {
    harvest out;
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        pass_time(now);
        refresh(now);
        totals_collected_ = window_totals();  // before the harvest: what comes later is news
        bad_collected_ = bad_seen_.load(std::memory_order_acquire);
        wake_at_bad_.store(bad_collected_ + fleet_.urgent_after, std::memory_order_relaxed);
        const auto current = generation();
        for (const auto of : {current - 1, current}) {
            const auto& eras = eras_[of % remembered];
            const bool same = eras.generation == of && eras.fleet == fleet_.fleet.era;
            keep_for_fleet(window().harvest(of & 1, now), same, now);
        }
        forget_for_fleet(era != fleet_.fleet.era, now);
        const auto length = window().slice_length();
        for (const auto& s : for_fleet_) {
            const auto age = now - length * (s.number + 1);
            out.slices.push_back(
                {s.n, std::chrono::duration_cast<milliseconds>(std::max(nanoseconds(0), age))});
        }
        for_fleet_.clear();
        out.stale = std::exchange(stale_for_fleet_, {});
    }
    hub_->deliver();
    return out;
}

counts engine::window_totals() const noexcept {
    counts n;
    for (const auto& w : windows_) n += w->totals();
    return n;
}

std::int64_t engine::slice_number(nanoseconds t) const noexcept {
    return t / window().slice_length();
}

void engine::add_to(std::vector<fleet_slice>& slices, std::int64_t number, const counts& n) {
    const auto at = std::lower_bound(
        slices.begin(), slices.end(), number,
        [](const fleet_slice& s, std::int64_t wanted) { return s.number < wanted; });
    if (at != slices.end() && at->number == number) {
        at->n += n;
    } else {
        slices.insert(at, {number, n});
    }
}

void engine::keep_for_fleet(const time_window::harvested& h, bool same_era, nanoseconds now) {
    stale_for_fleet_ += h.expired;
    for (const auto& s : h.slices) {
        if (!same_era) {
            stale_for_fleet_ += s.n;
        } else {
            add_to(for_fleet_, slice_number(now - s.age) - (s.age.count() > 0 ? 1 : 0), s.n);
        }
    }
}

void engine::keep_for_fleet(counter what, nanoseconds now) {
    add_to(for_fleet_, slice_number(now), counts_of(what));
}

// What has left the window, or all, decides nothing any more and goes to the totals.
void engine::forget_for_fleet(bool all, nanoseconds now) {
    const auto oldest = slice_number(now) - static_cast<std::int64_t>(window().slices());
    std::erase_if(for_fleet_, [&](const fleet_slice& s) {
        const bool old = all || s.number <= oldest;
        if (old) stale_for_fleet_ += s.n;
        return old;
    });
}

void engine::settle_fleet_probe(std::uint64_t token, counter what) {
    --fleet_probes_out_;
    extra_totals_ += counts_of(what);
    if (!link_owner_) return;
    stale_for_fleet_ += counts_of(what);  // the record counts it by its settlement
    const auto step = what == counter::ignored ? probe_step::give_back
                      : is_failure(what)       ? probe_step::failure
                                               : probe_step::success;
    settle_at_store(token, step);
}

void engine::settle_at_store(std::uint64_t token, probe_step step) {
    if (!link_owner_) return;
    link_owner_->on.post([link = link_owner_, token, step] {
        if (link->member) link->member->settle_probe(token, step);
    });
}

void engine::wake_fleet() noexcept {
    const auto* const link = link_.load(std::memory_order_acquire);
    if (link != nullptr && link->member) link->member->wake(true);
}

}  // namespace trinco::detail
