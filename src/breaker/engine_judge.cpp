// Decisions and counts, under the lock.

#include <algorithm>

#include "breaker/engine.hpp"

namespace trinco::detail {
namespace {

// A refusal by the ramp: soon another call may be drawn.
constexpr std::chrono::milliseconds ramp_retry{10};

}  // namespace

// ---- admitting ---------------------------------------------------------------------------------

engine::answer engine::decide_call(nanoseconds now) {
    pass_time(now);
    const auto d = decide_now(now);
    answer a;
    switch (d) {
        case decision::ramp: {
            const double drawn = share_;
            draw_share();
            if (drawn >= share_now(now)) {
                // It may be first in its slice, by which outcomes know that old calls have left.
                judge_next();
                a.given = refused(refused_by::ramp, refusal_reason::recovering, ramp_retry, now);
                return a;
            }
            [[fallthrough]];
        }
        case decision::admit: a.given = counted_call(); return a;
        case decision::admit_uncounted:
            ++would_have_rejected_;
            a.given = admitted_apart(uncounted);
            return a;
        case decision::ask_local: return ask_local(now);
        case decision::ask_fleet:
        case decision::offer_probe: return ask_fleet(now);
        case decision::refuse_local:
            a.given =
                refused(refused_by::local_breaker, refusal_reason::open, retry_after(d, now), now);
            return a;
        case decision::refuse_fleet: break;
    }
    const bool forced = over_.kind == override_kind::forced_open;
    a.given = refused(forced ? refused_by::operator_override : refused_by::fleet_breaker,
                      forced ? refusal_reason::forced_open : refusal_reason::open,
                      retry_after(d, now), now);
    return a;
}

engine::answer engine::ask_local(nanoseconds now) {
    const auto asked = local_.ask_probe(now, share_);
    apply(asked.change);
    follow_eras(now);
    answer a;
    if (!asked.probe) {
        if (over_.kind == override_kind::observing) {
            ++would_have_rejected_;
            a.given = admitted_apart(uncounted);
            return a;
        }
        const bool open = local_.state() == breaker_state::open;
        a.given = refused(refused_by::local_breaker,
                          open ? refusal_reason::open : refusal_reason::no_probe_left,
                          asked.retry_after, now);
        return a;
    }
    a.given = admitted_apart(asked.probe.era << mode_bits | local_probe, asked.probe.token);
    return a;
}

engine::answer engine::ask_fleet(nanoseconds now) {
    answer a;
    if (!asking_fleet_ && now >= fleet_refused_until_) {
        asking_fleet_ = true;
        a.ask_fleet = true;
        return a;
    }
    a.given = now < fleet_refused_until_
                  ? without_probe(refusal_reason::no_probe_left,
                                  std::chrono::ceil<milliseconds>(fleet_refused_until_ - now), now)
                  : without_probe(refusal_reason::probe_pending, options_.store_timeout, now);
    return a;
}

permit engine::without_probe(refusal_reason why, milliseconds retry, nanoseconds now) noexcept {
    if (decide_now(now) == decision::offer_probe) return counted_call();
    if (over_.kind == override_kind::observing) {
        ++would_have_rejected_;
        return admitted_apart(uncounted);
    }
    return refused(refused_by::fleet_breaker, why, retry, now);
}

permit engine::counted_call() noexcept {
    const auto stamp = generation() << mode_bits;
    return measuring_ ? admitted_at(stamp, clock_.precise()) : admitted(stamp);
}

// ---- counting ----------------------------------------------------------------------------------

void engine::settle_counted(std::uint64_t of, counter what, bool was_overdue, nanoseconds now) {
    if (was_overdue) --overdue_out_;
    if (of != generation()) {
        settle_older(of, what, now);
        return;
    }
    if (was_overdue) --overdue_now_;
    const bool first = window().add(of & 1, now, what);
    if (what < counter::ignored) bad_seen_ += what != counter::success ? 1U : 0U;
    if (bad_seen_.load(std::memory_order_relaxed) >= wake_at_bad_.load(std::memory_order_relaxed)) {
        wake_fleet();
    }
    if (what < counter::ignored) {
        judge_one(what, true, now);
    } else if (was_overdue || first) {
        judge_window(now);
    }
}

// Each breaker judges by its own era: the local one's has changed, or the generation would be the
// same; the fleet's may not have.
void engine::settle_older(std::uint64_t of, counter what, nanoseconds now) {
    stale_ += counts_of(what);
    if (!in_fleet()) return;
    const auto& then = eras_[of % remembered];
    if (then.generation == of && then.fleet == fleet_.fleet.era) {
        keep_for_fleet(what, now);
    } else {
        stale_for_fleet_ += counts_of(what);
    }
}

void engine::settle_local_probe(std::uint64_t era, std::uint64_t token, counter what,
                                nanoseconds now) {
    const bool slow = what == counter::slow_success || what == counter::slow_failure;
    const auto result = what == counter::ignored ? outcome::ignored
                        : what == counter::failure || what == counter::slow_failure
                            ? outcome::failure
                            : outcome::success;
    if (era != local_.current_era()) {
        stale_ += counts_of(what);
        if (in_fleet()) stale_for_fleet_ += counts_of(what);
        apply(local_.settle({token, era, nanoseconds(0)}, outcome::ignored, slow, now, share_));
        return;
    }
    window().add(generation() & 1, now, what);
    apply(local_.settle({token, era, nanoseconds(0)}, result, slow, now, share_));
}

// ---- judging -----------------------------------------------------------------------------------

counts engine::judged_counts(nanoseconds now) const {
    auto n = window().sum(generation() & 1, now);
    if (local_.rules().shared.slow_calls) {
        n.success += overdue_now_;
        n.slow_success += overdue_now_;
    }
    return n;
}

bool engine::judge_one(counter what, bool due, nanoseconds now) {
    if (over_.kind == override_kind::disabled || over_.kind == override_kind::forced_open) {
        local_.count(local_.current_era(), what);  // decides nothing, but goes on counting
        return false;
    }
    const auto bad_before = bad_seen_.load(std::memory_order_acquire);
    const auto judged_before = judged_seen_.load(std::memory_order_acquire);
    due = due && local_.rules().count_window == 0;
    const counts window = due ? judged_counts(now) : counts{};
    const auto change = local_.on_outcome(local_.current_era(), what, window, now, share_);
    apply(change);
    if (change) return true;
    if (due) set_headroom(window, bad_before, judged_before);
    return admitting_mode() != (gate_.load(std::memory_order_relaxed) & mode_mask);
}

bool engine::judge_window(nanoseconds now) {
    if (over_.kind == override_kind::disabled || over_.kind == override_kind::forced_open) {
        return false;
    }
    const auto bad_before = bad_seen_.load(std::memory_order_acquire);
    const auto judged_before = judged_seen_.load(std::memory_order_acquire);
    const counts window = judged_counts(now);
    const auto change = local_.on_window(local_.current_era(), window, now, share_);
    apply(change);
    if (change) return true;
    set_headroom(window, bad_before, judged_before);
    return admitting_mode() != (gate_.load(std::memory_order_relaxed) & mode_mask);
}

// Whatever comes next is judged on the whole window.
void engine::judge_next() noexcept {
    judge_successes_ = true;
    evaluate_at_bad_.store(0, std::memory_order_release);
    evaluate_at_judged_.store(0, std::memory_order_release);
}

// The numbers seen were read before the window, which holds at least these outcomes: outcomes that
// came in between make the next evaluation come early, never late.
void engine::set_headroom(const counts& window, std::uint64_t bad_before,
                          std::uint64_t judged_before) {
    const auto& p = local_.rules().shared;
    const auto h = headroom_of(window, p);
    // With a rule on failures in a row the local breaker has to be shown each of them.
    const auto bad =
        local_.rules().consecutive_failures != 0 ? 1 : std::min(h.bad, std::uint64_t{1} << 62);
    evaluate_at_bad_.store(bad_before + bad, std::memory_order_release);
    judge_successes_ = h.judge_successes;
    // Half of what is missing, so that calls which are counted right now cannot carry it beyond.
    const std::uint64_t missing =
        p.minimum_calls > window.judged() ? p.minimum_calls - window.judged() : 1;
    evaluate_at_judged_.store(judged_before + (missing + 1) / 2, std::memory_order_release);
}

// ---- overdue calls -----------------------------------------------------------------------------

void engine::find_overdue(nanoseconds now) {
    found_.clear();
    overdue_->scan(now, found_);
    bool more_slow = false;
    for (const auto& call : found_) {
        const auto current = generation();
        const auto of = current - ((current - call.generation) & 0xffff);
        if (call.now == overdue_table::mark::overdue) {
            ++overdue_out_;
            if (of == current) {
                ++overdue_now_;
                more_slow = true;
            }
            continue;
        }
        const bool slow = slow_after_.count() != 0 && options_.call_timeout >= slow_after_;
        settle_counted(of, slow ? counter::slow_failure : counter::failure, call.was_overdue, now);
        follow_eras(now);
    }
    if (more_slow) judge_window(now);
    follow_eras(now);
}

}  // namespace trinco::detail
