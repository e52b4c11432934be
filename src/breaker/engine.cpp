// Acquiring and settling: what the hot path falls back to, with and without a lock.

#include "breaker/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "breaker/call_timer.hpp"

namespace trinco::detail {
namespace {

// By the cores of the machine, not those that this process may use: shards go by the core's number,
// and a container may use cores 4 and 6 of 16.
std::size_t default_shards() noexcept {
    static const std::size_t shards = [] {
        const auto cores = std::clamp<long>(::sysconf(_SC_NPROCESSORS_CONF), 1, 16);
        return std::bit_ceil(static_cast<std::size_t>(cores));
    }();
    return shards;
}

}  // namespace

engine::engine(std::string name, const breaker_options& options, engine_env env)
    : gate_(std::uint64_t{1} << mode_bits | asking),
      window_(nullptr),
      clock_(env.clock),
      name_(std::move(name)),
      options_(options),
      env_(std::move(env)),
      timer_(env_.timer != nullptr ? env_.timer : &call_timer::real()),
      local_(local_rules_of(options)),
      hub_(std::make_shared<event_hub>()) {
    if (env_.shards == 0) env_.shards = default_shards();
    const auto overdue_after = options.overdue_after.value_or(options.slow_call_after);
    slow_after_ = options.slow_call_after;
    if (overdue_after.count() != 0 && (slow_after_.count() == 0 || overdue_after < slow_after_)) {
        slow_after_ = overdue_after;
    }
    keeps_order_ = options.count_window != 0 || options.consecutive_failures != 0;
    measuring_ = slow_after_.count() != 0 || options.call_timeout.count() != 0;
    if (overdue_after.count() != 0 || options.call_timeout.count() != 0) {
        overdue_ =
            std::make_unique<overdue_table>(overdue_after, options.call_timeout, env_.shards);
    }
    if (!env_.random)
        random_state_ = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
    draw_share();
    fleet_.rules = local_.rules().shared;
    windows_.push_back(
        std::make_unique<time_window>(options.window, options.window_slices, env_.shards));
    window_.store(windows_.back().get(), std::memory_order_release);
    eras_[1 % remembered] = {1, local_.current_era(), 0};
    const lock hold(m_);
    refresh(clock_.coarse());
}

engine::~engine() = default;

// ---- acquiring ---------------------------------------------------------------------------------

permit engine::acquire_otherwise(std::uint64_t gate) noexcept {
    return (gate & mode_mask) <= every ? admitted_measured(gate & ~mode_mask) : acquire_gated(gate);
}

permit engine::admitted_at(std::uint64_t stamp, nanoseconds started) noexcept {
    permit p = admitted(stamp);
    p.started_ = started.count();
    if (overdue_) p.handle_ = overdue_->enter(this_thread_shard(), started, stamp >> mode_bits);
    return p;
}

permit engine::admitted_apart(std::uint64_t stamp, std::uint64_t token) noexcept {
    permit p = admitted(stamp);
    p.handle_ = token;
    if (measuring_) p.started_ = clock_.precise().count();
    return p;
}

permit engine::admitted_measured(std::uint64_t stamp) noexcept {
    const auto started = clock_.precise();
    if (overdue_ && overdue_->due(started)) [[unlikely]] {
        {
            const lock hold(m_);
            pass_time(started);
            refresh(started);
        }
        hub_->deliver();
        const auto gate = gate_.load(std::memory_order_acquire);
        if ((gate & mode_mask) > every) return acquire_gated(gate);
        stamp = gate & ~mode_mask;
    }
    return admitted_at(stamp, started);
}

permit engine::refused(refused_by by, refusal_reason why, milliseconds retry,
                       nanoseconds now) noexcept {
    window().add(generation() & 1, now, counter::rejected);
    permit p;
    p.refusal_ = {by, why, std::max(retry, milliseconds(1))};
    return p;
}

permit engine::acquire_gated(std::uint64_t gate) noexcept {
    permit p;
    if (acquire_without_lock(gate, p)) return p;
    if (strict_now()) wait_for_refresh();
    answer a = acquire_locked();
    return a.ask_fleet ? wait_for_fleet() : std::move(a.given);
}

// Refusals while open, and admissions while disabled, until their time is over.
bool engine::acquire_without_lock(std::uint64_t gate, permit& p) noexcept {
    const auto how = gate & mode_mask;
    if (how == asking) return false;
    const auto now = clock_.coarse();
    const nanoseconds left(mode_until_.load(std::memory_order_acquire) - now.count());
    const auto why = refuse_why_.load(std::memory_order_acquire);
    if (left.count() <= 0 || now.count() < mode_since_.load(std::memory_order_acquire) ||
        gate_.load(std::memory_order_relaxed) != gate) {
        return false;
    }
    if (how == counting) {
        const auto stamp = gate & ~mode_mask;
        p = measuring_ ? admitted_measured(stamp) : admitted(stamp);
    } else {
        p = refused(static_cast<refused_by>(why >> 8), static_cast<refusal_reason>(why & 0xff),
                    std::chrono::ceil<milliseconds>(left), now);
    }
    return true;
}

engine::answer engine::acquire_locked() noexcept {
    answer a;
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        a = decide_call(now);
        refresh(now);
    }
    hub_->deliver();
    return a;
}

// ---- settling ----------------------------------------------------------------------------------

void engine::settle_general(const permit& p, outcome what, std::int64_t took_ns,
                            std::uint64_t gate) noexcept {
    auto now = measuring_ ? clock_.precise() : clock_.coarse();
    bool slow = false;
    bool was_overdue = false;
    if (measuring_) {
        const nanoseconds age = now - nanoseconds(p.started_);
        const nanoseconds took = took_ns < 0 ? age : nanoseconds(took_ns);
        slow = slow_after_.count() != 0 && took >= slow_after_;
        if (overdue_ && (p.stamp_ & mode_mask) == normal) {
            const auto mark = overdue_->leave(p.handle_);
            if (mark == overdue_table::mark::timed_out) return;  // has been counted as a failure
            was_overdue = mark == overdue_table::mark::overdue;
        }
        if (options_.call_timeout.count() != 0 && age >= options_.call_timeout) {
            what = outcome::failure;  // nobody has looked since; it failed then
            slow = slow_after_.count() != 0 && age >= slow_after_;
        }
    }
    const auto n = counter_of(what, slow);
    if (p.stamp_ == (gate & ~mode_mask) && !was_overdue) {
        switch (gate & mode_mask) {
            case closed: {
                const bool first = window().add((gate >> mode_bits) & 1, now, n);
                if (first || is_bad(n)) counted_while_closed(gate, n, first, now);
                return;
            }
            case watched: settle_watched(gate, n, now); return;
            case every: settle_every(gate, n, now); return;
            case counting:
                if (keeps_order_) break;
                window().add((gate >> mode_bits) & 1, now, n);
                return;
            default: break;
        }
    }
    settle_slowly(p.stamp_, p.handle_, n, was_overdue, now);
}

// Bad outcomes count down to the next evaluation; the first outcome of a slice is one, because old
// calls have left the window.
void engine::counted_while_closed(std::uint64_t gate, counter what, bool first,
                                  nanoseconds now) noexcept {
    bool due = first;
    if (is_bad(what)) {
        const auto n = bad_seen_.fetch_add(1, std::memory_order_acq_rel) + 1;
        due = due || n >= evaluate_at_bad_.load(std::memory_order_acquire);
        if (n >= wake_at_bad_.load(std::memory_order_relaxed)) wake_fleet();
    }
    if (!due) return;
    {
        const lock hold(m_);
        if (gate >> mode_bits != generation()) return;
        if (is_bad(what) ? judge_one(what, true, now) : judge_window(now)) refresh(now);
    }
    hub_->deliver();
}

void engine::settle_watched(std::uint64_t gate, counter what, nanoseconds now) noexcept {
    bool due = window().add((gate >> mode_bits) & 1, now, what);
    if (is_bad(what)) {
        const auto n = bad_seen_.fetch_add(1, std::memory_order_acq_rel) + 1;
        due = due || n >= evaluate_at_bad_.load(std::memory_order_acquire);
        if (n >= wake_at_bad_.load(std::memory_order_relaxed)) wake_fleet();
    }
    if (what < counter::ignored) {
        const auto n = judged_seen_.fetch_add(1, std::memory_order_acq_rel) + 1;
        due = due || n >= evaluate_at_judged_.load(std::memory_order_acquire);
    }
    if (!due) return;
    {
        const lock hold(m_);
        if (gate >> mode_bits != generation()) return;
        if (judge_one(what, true, now)) refresh(now);
    }
    hub_->deliver();
}

void engine::settle_every(std::uint64_t gate, counter what, nanoseconds now) noexcept {
    bool due = window().add((gate >> mode_bits) & 1, now, what);
    if (what >= counter::ignored) {
        // It decides nothing itself, but may be the one that notices that old calls have left.
        counted_while_closed(gate, what, due, now);
        return;
    }
    {
        const lock hold(m_);
        if (gate >> mode_bits != generation()) return;
        if (is_bad(what)) {
            const auto n = bad_seen_.fetch_add(1, std::memory_order_acq_rel) + 1;
            due = due || n >= evaluate_at_bad_.load(std::memory_order_relaxed);
            if (n >= wake_at_bad_.load(std::memory_order_relaxed)) wake_fleet();
        }
        if (judge_successes_) {
            const auto n = judged_seen_.fetch_add(1, std::memory_order_acq_rel) + 1;
            due = due || n >= evaluate_at_judged_.load(std::memory_order_relaxed);
        }
        if (!judge_one(what, due, now)) return;
        refresh(now);
    }
    hub_->deliver();
}

void engine::settle_slowly(std::uint64_t stamp, std::uint64_t handle, counter what,
                           bool was_overdue, nanoseconds now) noexcept {
    {
        const lock hold(m_);
        switch (stamp & mode_mask) {
            case normal: settle_counted(stamp >> mode_bits, what, was_overdue, now); break;
            case local_probe: settle_local_probe(stamp >> mode_bits, handle, what, now); break;
            case fleet_probe: settle_fleet_probe(handle, what); break;
            default:
                extra_totals_ += counts_of(what);
                if (in_fleet()) stale_for_fleet_ += counts_of(what);
                break;
        }
        pass_time(now);
        refresh(now);
    }
    hub_->deliver();
}

bool engine::is_probe(std::uint64_t stamp) noexcept {
    return (stamp & mode_mask) == local_probe || (stamp & mode_mask) == fleet_probe;
}

}  // namespace trinco::detail

namespace trinco {

void permit::settle(outcome what, std::int64_t took_ns) noexcept {
    engine_->settle(*this, what, took_ns);
}

bool permit::is_probe() const noexcept {
    return engine_ != nullptr && detail::engine::is_probe(stamp_);
}

}  // namespace trinco
