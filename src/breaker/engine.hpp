// The thread-safe heart of one breaker: its own state machine (core/breaker/local), its window, its
// part in a fleet, and the hot path between them.
//
// Gate        One atomic word = generation << 3 | mode. The mode says what acquiring and settling
//             have to do; the generation changes whenever the era of the local breaker or of the
//             fleet's changes. A permit carries the generation of its admission. When it is settled
//             in the same one, and the mode says so, counting is all there is to do, without a
//             lock; else the slow path looks up which eras the generation stood for.
// Window      The generation's parity names the bank to count into. A thread that is held up
//             between reading the gate and counting, for as long as two changes of generation take,
//             counts into a later window; totals stay exact.
// Judging     The window is judged under the lock, not after every outcome but whenever an outcome
//             may cross a threshold: `headroom` says after how many bad outcomes that is, and the
//             first outcome of each slice asks as well, because old calls have left. The result is
//             that of judging after every outcome (tests/breaker/exactness_test.cpp).
// Fleet       engine is the fleet_port of its breaker. With the fleet in charge the local breaker
//             is suspended while the fleet's is not closed; core/breaker/series decides on both.
//
// Threads     Any, but for what is said to be the loop's. Lock order: engine, then event queue. No
//             user code runs under either.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "breaker/clock.hpp"
#include "breaker/events.hpp"
#include "breaker/fleet_sync.hpp"
#include "breaker/overdue.hpp"
#include "core/breaker/headroom.hpp"
#include "core/breaker/local.hpp"
#include "core/breaker/series.hpp"
#include "core/breaker/window.hpp"
#include "trinco/breaker_events.hpp"
#include "trinco/breaker_options.hpp"
#include "trinco/permit.hpp"

namespace trinco::detail {

class call_timer;
struct fleet_link;

// What a breaker takes from the world; the default is the real one.
struct engine_env {
    // Virtual time in nanoseconds, for both clocks; must outlive the breaker. Any origin.
    const std::atomic<std::int64_t>* clock = nullptr;
    // Uniform 64 bits; called under the breaker's lock. Empty: seeded by the system.
    unique_function<std::uint64_t()> random;
    // Of call_timeout's stop_tokens. Null: one thread for the whole process.
    call_timer* timer = nullptr;
    // Shards of the window; 0: by the number of cores.
    std::size_t shards = 0;
};

// A generation's meaning.
struct generation_eras {
    std::uint64_t generation = 0;
    local_breaker::era local = 0;
    era_t fleet = 0;
};

class engine final : public fleet_port {
public:
    // Name and options are valid.
    engine(std::string name, const breaker_options& options, engine_env env = {});
    ~engine() override;
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    // ---- calls; any thread
    // Never throws. May wait for the store, see circuit_breaker::try_acquire.
    [[nodiscard]] permit acquire() noexcept;
    // The same without waiting, on the loop's thread: `done` is called inside when no answer of the
    // store is needed, else later on the loop; never after leave_fleet().
    void acquire_async(unique_function<void(permit)> done);
    void settle(permit& p, outcome what, std::int64_t took_ns) noexcept;
    [[nodiscard]] static bool is_probe(std::uint64_t stamp) noexcept;

    // ---- looking; any thread
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const breaker_options& options() const noexcept { return options_; }
    [[nodiscard]] breaker_state state();
    [[nodiscard]] trinco::snapshot snapshot();
    [[nodiscard]] const std::shared_ptr<event_hub>& events() const noexcept { return hub_; }
    [[nodiscard]] const breaker_clock& clock() const noexcept { return clock_; }
    [[nodiscard]] call_timer& timer() const noexcept { return *timer_; }
    // How many it keeps: one for each shape that the fleet's options have given it.
    [[nodiscard]] std::size_t windows() const;

    // ---- an operator's hand; any thread. The reason and the expiry are valid.
    std::error_code operate(control_verb verb, std::string_view reason,
                            std::chrono::milliseconds expires);

    // ---- the fleet; the loop's thread. The sync and the loop must outlive the membership.
    void join_fleet(loop& on, fleet_sync& sync);
    void leave_fleet();
    [[nodiscard]] bool in_fleet() const noexcept;

    harvest collect(era_t era) override;
    [[nodiscard]] bool has_news() const override;
    void adopt(const terms& t) override;
    bool open_ahead(const opening& o) override;
    void store_lost(std::uint32_t live, std::string_view why) override;
    void store_back() override;

private:
    using nanoseconds = std::chrono::nanoseconds;
    using milliseconds = std::chrono::milliseconds;
    using lock = std::unique_lock<std::mutex>;

    // Lowest three bits of the gate. The first three admit without asking anybody.
    enum mode : std::uint64_t {
        closed = 0,    // bad outcomes are counted down to the next evaluation
        watched = 1,   // every judged outcome is
        every = 2,     // the local breaker has to see every outcome, in order
        counting = 3,  // until mode_until_, disabled: all are admitted and nothing is decided
        refusing = 4,  // until mode_until_
        asking = 5     // everything else: under the lock
    };
    static constexpr unsigned mode_bits = 3;
    static constexpr std::uint64_t mode_mask = 7;
    // Lowest three bits of a permit's stamp. Above them: the generation; of a local probe the local
    // era.
    enum kind : std::uint64_t { normal = 0, uncounted = 1, local_probe = 2, fleet_probe = 3 };

    struct override_state {
        override_kind kind = override_kind::none;
        std::string reason;
        nanoseconds until{0};
    };
    // One call's way through the slow path: admitted, refused, or the fleet has to be asked.
    struct answer {
        permit given;
        bool ask_fleet = false;
    };
    struct fleet_slice {
        std::int64_t number = 0;  // by the window's slices
        counts n;
    };

    // engine.cpp: what the hot path falls back to
    [[nodiscard]] permit admitted(std::uint64_t stamp) noexcept;
    [[nodiscard]] permit acquire_otherwise(std::uint64_t gate) noexcept;
    // By the slow path: uncounted, or a probe. Not watched for being overdue.
    [[nodiscard]] permit admitted_apart(std::uint64_t stamp, std::uint64_t token = 0) noexcept;
    [[nodiscard]] permit admitted_at(std::uint64_t stamp, nanoseconds started) noexcept;
    [[nodiscard]] permit admitted_measured(std::uint64_t stamp) noexcept;
    [[nodiscard]] permit acquire_gated(std::uint64_t gate) noexcept;
    [[nodiscard]] bool acquire_without_lock(std::uint64_t gate, permit& p) noexcept;
    [[nodiscard]] answer acquire_locked() noexcept;
    [[nodiscard]] permit refused(refused_by by, refusal_reason why, milliseconds retry,
                                 nanoseconds now) noexcept;
    void settle_general(const permit& p, outcome what, std::int64_t took_ns,
                        std::uint64_t gate) noexcept;
    void counted_while_closed(std::uint64_t gate, counter what, bool first,
                              nanoseconds now) noexcept;
    void settle_watched(std::uint64_t gate, counter what, nanoseconds now) noexcept;
    void settle_every(std::uint64_t gate, counter what, nanoseconds now) noexcept;
    void settle_slowly(std::uint64_t stamp, std::uint64_t handle, counter what, bool was_overdue,
                       nanoseconds now) noexcept;

    // engine_judge.cpp: decisions and counts, all under the lock
    [[nodiscard]] answer decide_call(nanoseconds now);
    [[nodiscard]] answer ask_local(nanoseconds now);
    [[nodiscard]] answer ask_fleet(nanoseconds now);
    // The call's way when it could not be a probe of the fleet's; `why` and `retry` of a refusal.
    [[nodiscard]] permit without_probe(refusal_reason why, milliseconds retry,
                                       nanoseconds now) noexcept;
    [[nodiscard]] permit counted_call() noexcept;
    void settle_counted(std::uint64_t generation, counter what, bool was_overdue, nanoseconds now);
    void settle_older(std::uint64_t generation, counter what, nanoseconds now);
    void settle_local_probe(std::uint64_t era, std::uint64_t token, counter what, nanoseconds now);
    // Show the local breaker one outcome, which the window holds already, or only the window.
    // `due`: the window has to be judged. True when the gate may have to change.
    bool judge_one(counter what, bool due, nanoseconds now);
    bool judge_window(nanoseconds now);
    void judge_next() noexcept;
    void set_headroom(const counts& window, std::uint64_t bad_before, std::uint64_t judged_before);
    [[nodiscard]] counts judged_counts(nanoseconds now) const;
    void find_overdue(nanoseconds now);
    [[nodiscard]] std::uint64_t generation() const noexcept {
        return gate_.load(std::memory_order_relaxed) >> mode_bits;
    }
    [[nodiscard]] time_window& window() const noexcept {
        return *window_.load(std::memory_order_acquire);
    }

    // engine_state.cpp: what follows a change, all under the lock
    void pass_time(nanoseconds now);
    void apply(const local_breaker::change& change);
    void follow_eras(nanoseconds now);
    void renew_generation(nanoseconds now);
    // Sets the gate and queues events: the end of every locked section that may have changed
    // anything.
    void refresh(nanoseconds now);
    [[nodiscard]] mode admitting_mode() const noexcept {
        if (local_.sees_every_outcome()) return every;
        return judge_successes_ ? watched : closed;
    }
    [[nodiscard]] mode mode_for(decision d, nanoseconds now);
    mode hold_mode(mode which, nanoseconds now, nanoseconds until, std::uint64_t why = 0) noexcept;
    void say_what_changed(nanoseconds now);
    void say(event_kind what, breaker_state from, nanoseconds now);
    [[nodiscard]] decision decide_now(nanoseconds now) const;
    [[nodiscard]] double share_now(nanoseconds now) const;
    [[nodiscard]] milliseconds retry_after(decision d, nanoseconds now) const;
    [[nodiscard]] breaker_state effective_state() const noexcept;
    [[nodiscard]] trinco::snapshot snapshot_locked(nanoseconds now) const;
    void operate_alone(control_verb verb, std::string_view reason, milliseconds expires,
                       nanoseconds now);
    void lay_over(override_kind what, std::string_view reason, nanoseconds until);
    void draw_share();
    [[nodiscard]] nanoseconds look() noexcept;

    // engine_fleet.cpp, under the lock: what the fleet says, and what it is told
    void obey_fleet(nanoseconds now);
    void end_ahead() noexcept { ahead_.era = 0; }
    [[nodiscard]] bool refuses_ahead(nanoseconds now) const noexcept {
        return ahead_.era != 0 && now < ahead_.until;
    }
    void show_ahead(trinco::snapshot& s, nanoseconds now) const;
    // Until when a refusal in the fleet's name holds.
    [[nodiscard]] nanoseconds refused_until(nanoseconds now) const noexcept {
        if (over_.kind == override_kind::forced_open) return over_.until;
        return refuses_ahead(now) ? ahead_.until : fleet_until_;
    }
    // Whether the fleet's opening is over for this instance: it inherited it when the store was
    // lost and has recovered from it alone, and the fleet has not opened again since.
    [[nodiscard]] bool outlives(const view& fleet) const noexcept;
    [[nodiscard]] bool fleet_rules() const noexcept {
        return fleet_known_ && fleet_.fleet.state != breaker_state::closed &&
               !outlives(fleet_.fleet);
    }
    void use_rules(const policy& rules, nanoseconds now);
    void use_window(const policy& rules);
    void keep_for_fleet(const time_window::harvested& h, bool same_era, nanoseconds now);
    void keep_for_fleet(counter what, nanoseconds now);
    void forget_for_fleet(bool all, nanoseconds now);
    static void add_to(std::vector<fleet_slice>& slices, std::int64_t number, const counts& n);
    [[nodiscard]] std::int64_t slice_number(nanoseconds t) const noexcept;
    [[nodiscard]] counts window_totals() const noexcept;
    void settle_fleet_probe(std::uint64_t token, counter what);
    void settle_at_store(std::uint64_t token, probe_step step);

    // engine_wait.cpp: calls that need the store's answer
    [[nodiscard]] bool strict_now() const noexcept {
        return read_first_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] permit wait_for_fleet() noexcept;
    void wait_for_refresh() noexcept;
    void acquire_after_read(unique_function<void(permit)> done);
    // `wanted` is asked, once and under the lock, when the answer has come.
    void ask_fleet_async(unique_function<void(permit)> done, unique_function<bool()> wanted);
    [[nodiscard]] std::optional<permit> take_fleet_probe(const probe_answer& a,
                                                         unique_function<bool()>& wanted);
    void ask_no_more() noexcept;
    [[nodiscard]] permit not_waiting(refusal_reason why) noexcept;
    [[nodiscard]] std::shared_ptr<fleet_link> link_kept() const;
    std::error_code operate_fleet(control_verb verb, std::string_view reason, milliseconds expires);
    void wake_fleet() noexcept;

    // Read by every call, changed rarely.
    alignas(64) std::atomic<std::uint64_t> gate_;
    std::atomic<time_window*> window_;
    breaker_clock clock_;
    bool measuring_ = false;     // durations matter
    bool keeps_order_ = false;   // a row of failures or a count window: outcomes in their order
    nanoseconds slow_after_{0};  // 0: nothing is slow
    std::unique_ptr<overdue_table> overdue_;
    std::atomic<std::int64_t> mode_since_{0};  // a clock that went back ends it, too
    std::atomic<std::int64_t> mode_until_{0};
    std::atomic<std::uint64_t> refuse_why_{0};  // refused_by << 8 | refusal_reason
    std::atomic<fleet_link*> link_{nullptr};
    std::atomic<bool> read_first_{false};  // strict, and the store answers

    // Changed by bad outcomes, and by every outcome while watched.
    alignas(64) std::atomic<std::uint64_t> bad_seen_{0};
    std::atomic<std::uint64_t> judged_seen_{0};
    std::atomic<std::uint64_t> evaluate_at_bad_{1};
    std::atomic<std::uint64_t> evaluate_at_judged_{1};
    std::atomic<std::uint64_t> wake_at_bad_{~std::uint64_t{0}};

    // Under the lock from here on. What an opening asks and sets comes first, in as few lines of
    // the cache as can be: on a machine with many processes each of them finds all of it cold, and
    // lets the next one wait (docs/decisions/0053-what-is-touched-when-a-breaker-opens.md).
    alignas(64) mutable std::mutex m_;
    bool fleet_seen_ = false;   // has said anything yet
    bool fleet_known_ = false;  // seen, and the store answers: the fleet decides
    bool degraded_ = false;
    breaker_state obeyed_state_ = breaker_state::closed;  // the fleet's, while it is known
    // The fleet's opening that was in force when the store was lost, by the era of its view and
    // the level of its backoff; era 0: none was.
    struct {
        era_t era = 0;
        std::uint8_t level = 0;
        bool met_again = false;  // when the store was back
    } inherited_;
    // The fleet has opened, which is obeyed already and will be adopted soon; era 0: it has not.
    struct {
        era_t era = 0;
        nanoseconds at{0};  // since when, by the precise clock
        boot_clock::time_point as_of{};
        nanoseconds until{0};
        std::string reason;
    } ahead_;
    override_state over_;

    std::string name_;
    breaker_options options_;
    engine_env env_;
    call_timer* timer_;
    std::uint64_t random_state_ = 0;
    double share_ = 0;  // the next random number, 0 <= share < 1; drawn anew once used
    local_breaker local_;
    std::vector<std::unique_ptr<time_window>> windows_;  // the last one is in use
    static constexpr std::size_t remembered = 16;
    std::array<generation_eras, remembered> eras_{};  // by generation mod remembered
    bool judge_successes_ = false;                    // an outcome that is not bad may open it, too
    std::uint64_t overdue_now_ = 0;                   // of this generation
    std::uint64_t overdue_out_ = 0;                   // of all
    std::vector<overdue_table::late_call> found_;
    counts extra_totals_;  // of outcomes that no window counted
    counts stale_;
    std::uint64_t would_have_rejected_ = 0;

    std::shared_ptr<fleet_link> link_owner_;
    std::string lost_why_;
    terms fleet_;                 // as last adopted
    nanoseconds fleet_until_{0};  // open: probes are due; closed: end of the ramp
    nanoseconds fleet_over_until_{0};
    bool asking_fleet_ = false;           // one caller waits for a probe of the fleet's
    nanoseconds fleet_refused_until_{0};  // no probe is asked for before
    std::uint32_t fleet_probes_out_ = 0;
    std::vector<fleet_slice> for_fleet_;  // counted in the fleet's era, but not in a bank any more
    counts stale_for_fleet_;
    counts totals_collected_;
    std::uint64_t bad_collected_ = 0;

    nanoseconds met_at_{0};  // when calls met the change that is being said, if not now
    breaker_state said_state_ = breaker_state::closed;
    override_kind said_over_ = override_kind::none;
    std::string options_differ_;  // of the fleet's options from this process's own
    std::string said_options_differ_;
    std::string reason_;         // of the last transition
    std::string resume_reason_;  // of a resume that the fleet has been asked for
    std::uint64_t transitions_ = 0;
    std::shared_ptr<event_hub> hub_;
};

// ---- the hot path ------------------------------------------------------------------------------
//
// Here, so that it becomes part of its callers, circuit_breaker::try_acquire and permit::settle:
// with a call from one file to the other in each, the two together cost a fifth more.

inline permit engine::admitted(std::uint64_t stamp) noexcept {
    permit p;
    p.engine_ = this;
    p.stamp_ = stamp;
    return p;
}

inline permit engine::acquire() noexcept {
    const auto gate = gate_.load(std::memory_order_acquire);
    if ((gate & mode_mask) > every || measuring_) [[unlikely]]
        return acquire_otherwise(gate);
    return admitted(gate & ~mode_mask);
}

inline void engine::settle(permit& p, outcome what, std::int64_t took_ns) noexcept {
    p.engine_ = nullptr;
    const auto gate = gate_.load(std::memory_order_acquire);
    if (p.stamp_ != gate || measuring_) [[unlikely]] {
        settle_general(p, what, took_ns, gate);
        return;
    }
    static_assert(closed == 0 && normal == 0, "a stamp equals the gate: same generation, closed");
    const auto now = clock_.coarse();
    const auto n = counter_of(what, false);
    const bool first = window().add((gate >> mode_bits) & 1, now, n);
    if (first || is_bad(n)) [[unlikely]]
        counted_while_closed(gate, n, first, now);
}

}  // namespace trinco::detail
