// The real loop: one thread that waits for posted functions, timers and (in src/net) sockets.
//
//     event_loop on;                 // nothing runs yet
//     store s(on, ...);              // may already post and set timers
//     on.start();
//     ...
//     on.stop(2s);                   // ends the thread; what was pending is destroyed, not run
//
// Time        CLOCK_BOOTTIME, through one timerfd with an absolute deadline: a timer that fell due
//             while the machine was suspended fires at once when it wakes, and no step of the wall
//             clock moves one. One that is 2 to 10 ms ahead when the loop goes to sleep is waited
//             for by that sleep: it fires up to a millisecond late, and when the machine is
//             suspended meanwhile up to 10 ms after it wakes.
// Threads     post, stop, check, on_thread and run_and_wait: any. Everything else, and the end of
//             an op: the loop's thread. While no thread runs (before start, after stop) whoever
//             owns the loop counts as the loop's thread.
// Order       Posted functions run in the order of posting, timers in the order of their deadlines,
//             those of one deadline in the order of setting. A function that posts, or sets a timer
//             for the past, never runs it in the same turn, so nothing starves the rest.
// Exceptions  A function that throws is a bug of ours. It is reported on stderr and the loop goes
//             on: a lock must still be renewed when a callback of something else fails.
// Fork        In a child the thread does not exist. post, at and start there do nothing, check()
//             says errc::forked, and the destructor gives nothing back: descriptors are shared with
//             the parent, and taking ours off its epoll set would stop the parent's. Forks are
//             counted by pthread_atfork, so that a child of _Fork or clone is not known as one.
// Cost        post: a lock and, when the loop is idle, one write to an eventfd. at: O(log n), and a
//             system call before the loop waits when it is the earliest. No allocation beyond the
//             function's own and a node a timer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "core/loop.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

struct loop_access;

class event_loop final : public loop {
public:
    // Opens the descriptors. Throws std::system_error when the process has none left.
    event_loop();
    // As stop, with a bound of 5 s. A thread that is still in a callback then is left alone (and
    // said so on stderr); it ends when the callback returns. May run on the loop's own thread.
    ~event_loop() override;
    event_loop(const event_loop&) = delete;
    event_loop& operator=(const event_loop&) = delete;

    // Starts the thread. Once, afterwards it does nothing; throws std::system_error when the system
    // refuses one.
    void start();
    // For whoever owns a loop that has no thread yet: runs here what comes, until `done` says that
    // it is enough or nothing comes by then; a time that has passed: only what is ready. Answers
    // what `done` says at the end. Looks for a moment before it sleeps. Where a thread runs it runs
    // nothing.
    bool run_here(const std::function<bool()>& done, deadline by);
    // Asks the thread to end after the function it is in, and waits that long for it. True when it
    // has ended (or never ran), false when it still runs something, or when the caller is the
    // loop's own thread, which ends on return. Functions and timers not yet run are destroyed on
    // the loop's thread at its end; later ones at once. Repeatable.
    bool stop(std::chrono::milliseconds bound);

    // Why nothing runs here (any more): forked, shut_down after stop; no error otherwise.
    [[nodiscard]] std::error_code check() const noexcept;
    // Whether the caller is the loop's thread, or counts as it.
    [[nodiscard]] bool on_thread() const noexcept;

    [[nodiscard]] boot_clock::time_point now() override { return boot_clock::now(); }
    [[nodiscard]] std::uint64_t random() override;
    void post(unique_function<void()> f) override;
    [[nodiscard]] op at(deadline when, unique_function<void()> f) override;

    struct impl;

private:
    friend struct loop_access;    // of src/net: sockets wait on the same thread
    std::shared_ptr<impl> impl_;  // also the thread's, which may outlive this object
};

// Runs f on the loop's thread and waits until it has ended and is destroyed, at most that long: for
// blocking calls. On the loop's thread itself it runs at once. Errors: those of check();
// unknown_outcome when the time is over and f has begun or may still run, so f must own what it
// uses. f must not throw.
template <class F>
std::error_code run_and_wait(event_loop& on, std::chrono::milliseconds bound, F f) {
    if (const auto error = on.check()) return error;
    if (on.on_thread()) {
        f();
        return {};
    }
    struct shared {
        std::mutex m;
        std::condition_variable ended;
        bool done = false;
        bool dropped = false;  // destroyed without having run
    };
    // Tells the waiter in either case, so that a loop stopped meanwhile keeps nobody waiting.
    struct job {
        job(F fn, std::shared_ptr<shared> s) : run(std::move(fn)), state(std::move(s)) {}
        job(job&&) noexcept = default;
        ~job() {
            if (state) tell(&shared::dropped);
        }
        void operator()() {
            (*run)();
            run.reset();  // before the waiter goes on: what f owned is gone by then
            tell(&shared::done);
        }
        void tell(bool shared::*what) {
            const std::lock_guard hold(state->m);
            (*state).*what = true;
            state->ended.notify_all();
        }
        std::optional<F> run;
        std::shared_ptr<shared> state;
    };
    const auto state = std::make_shared<shared>();
    on.post(job(std::move(f), state));
    std::unique_lock hold(state->m);
    state->ended.wait_for(hold, bound, [&] { return state->done || state->dropped; });
    if (state->done) return {};
    return state->dropped ? make_error_code(errc::shut_down)
                          : make_error_code(errc::unknown_outcome);
}

}  // namespace trinco::detail
