// A circuit breaker: stops calling a dependency that fails, tries it gently, goes on when it is
// well.
//
//     trinco::circuit_breaker payments("payments");
//     // throws when refused
//     auto receipt = payments.call([&] { return gateway.charge(order); });
//     // answers when refused
//     auto answer = payments.call([&] { return gateway.charge(order); },
//                                 [] { return receipt::later(); });
//     // without exceptions
//     if (auto permit = payments.try_acquire()) {
//         gateway.charge(order) ? permit.success() : permit.failure();
//     } else {
//         answer_later(permit.refusal().retry_after);
//     }
//
// States
//   closed      Calls go through and their outcomes are counted in a sliding window. After every
//               outcome the window is judged; when it crosses a threshold of breaker_options the
//               breaker opens.
//   open        Calls are refused at once, for open_for; longer after each re-opening
//               (open_backoff), and a little at random (jitter).
//   half_open   Begins with the first call after that. At most half_open_probes calls are let
//               through; when all have succeeded well enough it closes with an empty window, and as
//               soon as that has become impossible it opens again. A probe that is not settled
//               within probe_timeout has failed; one that was ignored gives its place to the next
//               caller.
//   recovering  closed, with recovery_ramp set: a growing share of the calls goes through.
//   No timer drives any of this: state is derived from the time whenever somebody asks or calls.
//
// An operator can lay an override over the state: forced_open, disabled or observing
// (breaker_types.hpp). trip opens the breaker now, and it recovers as usual; reset closes it with
// an empty window.
//
// Alone or in a fleet
//   A circuit_breaker made by its constructor lives in this process alone. One that a
//   breaker_registry made over a store is one of two in series: its own, and the one that all
//   processes share. A call needs both, and a refusal names the one that refused. While closed or
//   open that costs no round trip; a probe of the fleet's costs one, for which one caller of a
//   process waits at most store_timeout, while others are refused at once. With consistency::strict
//   every call waits for one read of the store. When the store does not answer, this process
//   decides alone, starting from the fleet's last state (event store_lost). When it answers again
//   the fleet's state holds (store_back), but an opening from which this process has recovered
//   meanwhile does not come back: its calls go on, and are the fleet's probes.
//
// Outcomes
//   success, failure or ignored, see permit.hpp; what returned values and exceptions mean is a
//   classifier's business, see classify.hpp. An outcome that arrives in a later era than its call
//   was admitted in moves nothing.
//
// Calls that hang
//   With overdue_after (by default slow_call_after when that is set) a call that is still out
//   counts as slow when this process judges its window; with call_timeout it counts as a failure
//   from then on, for the fleet too, and its late result has no effect. So the breaker opens while
//   the first calls still hang. call(f) hands an f that takes a std::stop_token one that is
//   triggered at call_timeout. Nobody can stop an f that does not look at it: call() returns when f
//   does. Overdue calls are found when somebody calls or asks the breaker.
//
// Threads      Every member may be called from any thread at any time, from callbacks and guarded
//              functions too. No lock is held while user code runs.
// Ownership    Neither copied nor moved. It must outlive its permits (settling one of a destroyed
//              breaker is undefined), not its subscriptions.
// fork         A child has a copy of its own, alone even if the parent's is one of a fleet: what
//              would need the store is refused (store_late) or answers errc::forked. As always
//              after fork, that holds for a child of a process in which no other thread was using
//              the breaker.
// Errors       A bad name or option: breaker_error with errc::invalid and one sentence that names
//              key, value and range; make() answers the same without an exception. A refused
//              call(): breaker_open_error. Exceptions of guarded functions, classifiers, fallbacks
//              go to the caller. A system that is out of memory ends the program where a member is
//              noexcept; while closed none allocates.
// Cost         Closed: about 9 ns for acquire and success together, on any number of threads; no
//              lock, allocation or system call. Failures below the thresholds cost 3 ns more. With
//              durations about 65 ns, most of it for two readings of the clock. A count window
//              takes a mutex, about 25 ns in all; so do, for some 50 ns, failures in a row,
//              half-open, the ramp and observing. A refusal while open: about 22 ns, no exception.
//              Measured on one core of an AMD EPYC at 2.6 GHz; `make bench` shows the first of them
//              on yours. Memory: 320 bytes a window slice and core of the machine (16 cores at
//              most), 3 KiB a core with the defaults; a place of 8 bytes a call, in a table that is
//              at most four times as large as calls were out, when overdue calls are watched.
// Clocks       Only monotonic ones; a step of the wall clock moves nothing. A window's slices and
//              deadlines are exact to the kernel's tick (1 to 4 ms), durations to the nanosecond.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "trinco/breaker_events.hpp"
#include "trinco/breaker_options.hpp"
#include "trinco/breaker_types.hpp"
#include "trinco/classify.hpp"
#include "trinco/error.hpp"
#include "trinco/permit.hpp"

namespace trinco {

namespace detail {
class event_hub;
struct breaker_access;
enum class control_verb : std::uint8_t;

// What a guarded function returns: called with a std::stop_token when it takes one.
template <class F>
struct guarded_result : std::invoke_result<F&> {};
template <class F>
requires std::is_invocable_v<F&, std::stop_token>
struct guarded_result<F> : std::invoke_result<F&, std::stop_token> {
};
}  // namespace detail

// What breakers and their registry throw: code() is for programs, what() is one sentence.
class breaker_error : public std::system_error {
public:
    breaker_error(std::error_code code, std::string sentence);
    [[nodiscard]] const char* what() const noexcept override { return sentence_->c_str(); }

private:
    std::shared_ptr<const std::string> sentence_;  // shared, so that copying cannot fail
};

// What call() throws when the breaker refuses: errc::breaker_open; the sentence names the breaker,
// who refused, why, and when to retry.
class breaker_open_error : public breaker_error {
public:
    breaker_open_error(std::string_view breaker, const trinco::refusal& why);
    [[nodiscard]] const trinco::refusal& refusal() const noexcept { return why_; }

private:
    trinco::refusal why_;
};

// Why a breaker was not made.
struct breaker_fault {
    std::error_code code;
    std::string message;  // one sentence
};

// Keeps a callback registered; its destruction ends it: the callback does not begin again
// afterwards, and a run of it that is under way on another thread has been waited for. Destroying
// it inside its own callback is allowed. May outlive the breaker.
class [[nodiscard]] subscription {
public:
    subscription() noexcept = default;
    subscription(subscription&& other) noexcept;
    subscription& operator=(subscription&& other) noexcept;
    ~subscription();

private:
    friend class circuit_breaker;
    subscription(std::shared_ptr<detail::event_hub> hub, std::uint64_t id) noexcept;
    std::shared_ptr<detail::event_hub> hub_;
    std::uint64_t id_ = 0;
};

class circuit_breaker {
public:
    // Name: 1-128 of [A-Za-z0-9._:-]. Throws breaker_error (errc::invalid).
    explicit circuit_breaker(std::string name, const breaker_options& options = {});
    ~circuit_breaker();
    circuit_breaker(const circuit_breaker&) = delete;
    circuit_breaker& operator=(const circuit_breaker&) = delete;

    // The twin without exceptions: null, and why.
    [[nodiscard]] static std::unique_ptr<circuit_breaker> make(std::string name,
                                                               const breaker_options& options,
                                                               breaker_fault& why);

    [[nodiscard]] const std::string& name() const noexcept;
    // As given; where a fleet governs, its options may differ (see snapshot).
    [[nodiscard]] const breaker_options& options() const noexcept;

    // ---- calling ---------------------------------------------------------------------------

    // Asks for admission. Never throws, and waits only for a probe of the fleet's, or in strict
    // mode, at most store_timeout each; not at all on the store's own thread, where a call that
    // needs a probe is refused (store_late) and strict mode decides by the last known state.
    [[nodiscard]] permit try_acquire() noexcept;

    // Calls f and records its outcome. f takes nothing or a std::stop_token; what it returns is
    // returned, what it throws is thrown on. Throws breaker_open_error when refused.
    template <class F>
    decltype(auto) call(F&& f) {
        return call(std::forward<F>(f), default_classifier());
    }
    template <class F, call_classifier C>
    decltype(auto) call(F&& f, const C& rules) {
        permit p = try_acquire();
        if (!p) throw breaker_open_error(name(), p.refusal());
        return guarded(p, f, rules);
    }
    // As above; when refused, the answer is the fallback's, which takes nothing or the refusal.
    // What f throws is not its business.
    template <class F, class Fallback>
    requires(!call_classifier<Fallback>) auto call(F&& f, Fallback&& fallback) {
        return call(std::forward<F>(f), default_classifier(), std::forward<Fallback>(fallback));
    }
    template <class F, call_classifier C, class Fallback>
    auto call(F&& f, const C& rules, Fallback&& fallback)
        -> std::remove_cvref_t<typename detail::guarded_result<F>::type> {
        permit p = try_acquire();
        if (p) return guarded(p, f, rules);
        if constexpr (std::is_invocable_v<Fallback&, const trinco::refusal&>) {
            return fallback(p.refusal());
        } else {
            return fallback();
        }
    }

    // ---- looking ---------------------------------------------------------------------------

    // The state now: the fleet's when it is not closed, otherwise this process's. An override lies
    // over it and is not part of it: forced_open refuses calls though this says closed; see
    // snapshot().over. Spends no probe and changes nothing.
    [[nodiscard]] breaker_state state() const;
    [[nodiscard]] trinco::snapshot snapshot() const;

    // Calls back at every change, in the order of the changes, one event at a time, outside every
    // lock: on the thread that caused the change, or on one that is delivering already. A callback
    // may use this breaker in every way but destroy it; events it causes follow after it. It should
    // be quick: other events wait for it, at most 1,000 of them, beyond which the oldest are
    // dropped (event::missed). What it throws ends the program. An empty callback is none.
    subscription on_event(std::function<void(const event&)> callback);

    // ---- an operator's hand ----------------------------------------------------------------
    //
    // For the whole fleet where there is one: then these wait for the store, at most ten times
    // store_timeout, and fail with its error (unavailable: not applied; unknown_outcome: perhaps
    // applied, repeating is safe) or, on the store's own thread, which carries what the fleet says
    // to event callbacks, with would_deadlock (not applied). Alone they are applied at once.
    //
    // A reason has at most 200 bytes and no control characters (line breaks, escapes), because it
    // is shown in logs and terminals; a time is 0 (the default) to 30 days. Anything else is
    // invalid, and changes nothing.

    static constexpr std::chrono::milliseconds default_expiry{0};  // 24 h

    // Opens now, for open_for or the time given; recovers as usual.
    std::error_code trip(std::string_view reason, std::chrono::milliseconds open_for = {});
    // Closes now, with an empty window. Removes no override.
    std::error_code reset(std::string_view reason);
    std::error_code force_open(std::string_view reason,
                               std::chrono::milliseconds expires = default_expiry);
    std::error_code disable(std::string_view reason,
                            std::chrono::milliseconds expires = default_expiry);
    std::error_code observe(std::string_view reason,
                            std::chrono::milliseconds expires = default_expiry);
    // Removes the override.
    std::error_code resume(std::string_view reason);

private:
    friend struct detail::breaker_access;
    explicit circuit_breaker(std::unique_ptr<detail::engine> core) noexcept;
    std::error_code operate(detail::control_verb verb, std::string_view reason,
                            std::chrono::milliseconds time);

    // The stop_token of one guarded call, triggered at call_timeout.
    class call_stop {
    public:
        explicit call_stop(circuit_breaker& owner);
        ~call_stop();
        call_stop(const call_stop&) = delete;
        call_stop& operator=(const call_stop&) = delete;
        [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

    private:
        std::stop_source source_{std::nostopstate};
        std::uint64_t timer_ = 0;
        circuit_breaker& owner_;
    };

    template <class F, class C>
    decltype(auto) guarded(permit& p, F& f, const C& rules) {
        if constexpr (std::is_invocable_v<F&, std::stop_token>) {
            const call_stop stop(*this);
            const auto stoppable = [&]() -> decltype(auto) { return f(stop.token()); };
            return run(p, stoppable, rules);
        } else {
            return run(p, f, rules);
        }
    }
    template <class F, class C>
    static decltype(auto) run(permit& p, F& f, const C& rules);

    std::unique_ptr<detail::engine> core_;
};

template <class F, class C>
decltype(auto) circuit_breaker::run(permit& p, F& f, const C& rules) {
    using result = std::invoke_result_t<F&>;
    bool returned = false;  // from here on an exception is a classifier's, not f's
    try {
        if constexpr (std::is_void_v<result>) {
            f();
            p.success();
            return;
        } else {
            result value = f();
            returned = true;
            p.settle(rules.of_result(std::as_const(value)));
            if constexpr (std::is_reference_v<result>) {
                return static_cast<result>(value);
            } else {
                return value;
            }
        }
    } catch (...) {
        // What unwinds a cancelled thread is no exception: the permit settles as ignored.
        const auto thrown = std::current_exception();
        if (!returned && thrown) p.settle(rules.of_exception(thrown));
        throw;
    }
}

}  // namespace trinco
