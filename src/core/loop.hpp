// All that a machine or a store may ask of the world: the time, randomness, a turn, a timer.
//
// The rules that both store contracts share are written here once; breaker_store.hpp and
// lock_store.hpp build on them.
//
//   Thread      Every method of a store is called on the loop's thread; a completion runs there,
//               later, never inside the call, and at most once. `loop::post` alone may be called
//               from any thread.
//   op          Owns the interest in an answer. Destroying it means that the completion does not
//               run and that the effect at the store is unknown to the caller. That is
//               cancellation; there is no other. Destroying an op inside its own completion is
//               allowed.
//   deadline    A call completes by its deadline plus one turn of the loop, whatever the network
//               does.
//   errors      of three kinds, see trinco/error.hpp: not applied, unknown, gone.
//   repeatable  The caller names everything that matters, so that the same value may be sent again;
//               that is the cure for an unknown outcome.
//   time        The caller reads now() before the call; what a reply grants counts from there.
//               Replies carry durations, never times.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "core/unique_function.hpp"

namespace trinco::detail {

// CLOCK_BOOTTIME as a chrono clock: steady, and going on while the machine is suspended, which a
// steady_clock on Linux does not; a lease runs out during suspension too.
struct boot_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<boot_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept;
};

using deadline = boot_clock::time_point;

// Called with an error and T{}, or with no error and the answer.
template <class T>
using completion = unique_function<void(std::error_code, T)>;

// Interest in an answer: destroying it cancels. Empty ones do nothing. One owner; the loop's
// thread.
class op {
public:
    op() noexcept = default;
    // The function runs when the interest ends: at destruction, assignment or cancel(). It must
    // not throw, and must tolerate that the completion has already run.
    explicit op(unique_function<void()> on_cancel) noexcept : on_cancel_(std::move(on_cancel)) {}
    op(op&& other) noexcept = default;
    op& operator=(op&& other) noexcept {
        if (this != &other) {
            cancel();
            on_cancel_ = std::move(other.on_cancel_);
        }
        return *this;
    }
    ~op() { cancel(); }

    void cancel() noexcept {
        if (on_cancel_) std::exchange(on_cancel_, nullptr)();
    }

private:
    unique_function<void()> on_cancel_;
};

class loop {
public:
    virtual ~loop() = default;
    // The time of decisions; monotonic.
    [[nodiscard]] virtual boot_clock::time_point now() = 0;
    // Uniform 64 bits: tokens, jitter. Unpredictable across processes in the real loop, a function
    // of the seed in the simulator.
    [[nodiscard]] virtual std::uint64_t random() = 0;
    // Runs f on the loop's thread, later, in the order of posting. Any thread may call it.
    virtual void post(unique_function<void()> f) = 0;
    // Runs f on the loop's thread at or after the time, never inside the call.
    [[nodiscard]] virtual op at(deadline when, unique_function<void()> f) = 0;

    // Convenience: after a duration from now().
    [[nodiscard]] op after(boot_clock::duration d, unique_function<void()> f) {
        return at(now() + d, std::move(f));
    }
};

}  // namespace trinco::detail
