// The inside of an event_loop, for src/net alone: descriptors are watched by its epoll set, and
// keep it alive (the loop's thread may outlive the object).
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "net/event_loop.hpp"
#include "net/own_descriptor.hpp"
#include "net/timer_queue.hpp"

namespace trinco::detail {

// How many forks lie between the first process of ours and this one. Asking for the process's id
// instead is a system call, and would be asked for many times a message.
inline std::atomic<std::uint64_t> forks_counted{0};

// Runs f; what it throws is reported on stderr and goes no further.
void run_guarded(unique_function<void()>& f) noexcept;
// In a handler of exceptions.
void report_failure() noexcept;

// What waits on a loop beside the loop's own timers and functions.
class loop_member {
public:
    // The loop runs nothing any more: destroy what was to be run, so that nothing keeps itself
    // alive by a completion of its own.
    virtual void loop_ended() noexcept = 0;

protected:
    ~loop_member() = default;
};

// Somebody who waits for a descriptor.
class watcher {
public:
    // With what epoll_wait says of it. May end the watcher.
    virtual void ready(std::uint32_t events) = 0;

protected:
    ~watcher() = default;
};

struct event_loop::impl {
    enum class phase : std::uint8_t { idle, running, ended };
    using function = unique_function<void()>;

    impl();

    // ---- any thread ---------------------------------------------------------------------------
    const std::uint64_t forks_then = forks_counted.load();
    std::atomic<phase> now_in{phase::idle};
    std::atomic<bool> open{true};  // written under m
    std::atomic<std::thread::id> runner{};
    std::mutex m;
    std::condition_variable ended;
    std::vector<function> queue;  // guarded by m, as is
    bool scheduled = false;       // whether a drain is on its way
    std::thread thread;           // guarded by m
    own_descriptor bell;          // an eventfd, written by other threads when a drain is due

    // ---- the loop's thread --------------------------------------------------------------------
    // What each turn touches lies together: many processes of one machine may be woken at once.
    alignas(64) own_descriptor timer;
    own_descriptor watched;  // of epoll; whoever is watched is in it by its address
    int told_at = 0;         // the next of those told
    int told_end = 0;
    int unlooked = 0;          // turns in which no descriptor was looked at
    bool drain_next = false;   // posted functions have their turn
    bool timers_next = false;  // timers that are due have
    boot_clock::time_point armed = boot_clock::time_point::max();  // max: not armed
    std::vector<char> scratch;  // what a socket reads into while its completion runs
    timer_queue timers;
    std::array<::epoll_event, 32> told{};  // by the last wait
    std::vector<function> batch;
    std::set<loop_member*> members;
    std::array<std::uint64_t, 32> random{};  // from the system, used from the back
    std::size_t random_left = 0;

    [[nodiscard]] bool foreign() const noexcept {
        return forks_counted.load(std::memory_order_relaxed) != forks_then;
    }
    [[nodiscard]] bool own_thread() const noexcept {
        return runner.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    // As of event_loop: any thread.
    void post(function f);
    // In a child, or after its end, nothing runs here any more.
    [[nodiscard]] bool runs() const noexcept {
        return !foreign() && open.load(std::memory_order_acquire);
    }

    void ring() noexcept;
    void drain();
    void arm(boot_clock::time_point when) noexcept;
    // In milliseconds, at most `wait_ms` (-1: for ever).
    [[nodiscard]] int follow_timers(int wait_ms) noexcept;
    void run_due();
    void drop(const timer_queue::key& k);
    void drop_everything();
    void run() noexcept;
    // Runs what has its turn; waits at most so many milliseconds (-1: for ever) when nothing has.
    // False when nothing came.
    bool turn(int wait_ms);
    bool listen(int wait_ms);
    [[nodiscard]] bool has_next() const noexcept { return drain_next || timers_next; }
    // A watcher ends: what was told of it already is told to nobody.
    void forget(const watcher& w) noexcept;
};

// The way in.
struct loop_access {
    [[nodiscard]] static const std::shared_ptr<event_loop::impl>& inside(event_loop& on) noexcept {
        return on.impl_;
    }
};

}  // namespace trinco::detail
