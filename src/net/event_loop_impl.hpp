// The inside of an event_loop, for src/net alone: sockets wait on its io_context, and keep it alive
// (the loop's thread may outlive the object).
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "net/event_loop.hpp"

namespace trinco::detail {

namespace asio = boost::asio;

// Runs f; what it throws is reported on stderr and goes no further. The boundary to Asio.
void run_guarded(unique_function<void()>& f) noexcept;

// What waits on a loop beside the loop's own timers and functions.
class loop_member {
public:
    // The loop runs nothing any more: destroy what was to be run, so that nothing keeps itself
    // alive by a completion of its own.
    virtual void loop_ended() noexcept = 0;

protected:
    ~loop_member() = default;
};

struct event_loop::impl {
    enum class phase : std::uint8_t { idle, running, ended };
    struct key {  // of a timer; the order makes it unique
        boot_clock::time_point when;
        std::uint64_t order;
        auto operator<=>(const key&) const = default;
    };

    using function = unique_function<void()>;
    using descriptor = asio::posix::basic_stream_descriptor<asio::io_context::executor_type>;

    impl();

    // ---- any thread ---------------------------------------------------------------------------
    const ::pid_t owner = ::getpid();
    asio::io_context context{1};
    std::atomic<phase> now_in{phase::idle};
    std::atomic<bool> open{true};  // written under m
    std::atomic<std::thread::id> runner{};
    std::mutex m;
    std::condition_variable ended;
    std::vector<function> queue;  // guarded by m, as is
    bool scheduled = false;       // whether a drain is on its way
    std::thread thread;           // guarded by m
    descriptor bell;              // an eventfd, written by other threads when a drain is due

    // ---- the loop's thread --------------------------------------------------------------------
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    descriptor timer;
    std::map<key, function> timers;
    std::uint64_t next_order = 0;
    boot_clock::time_point armed = boot_clock::time_point::max();  // max: not armed
    bool bell_waits = false;   // whether its next ring will be heard,
    bool timer_waits = false;  // and the timer's end
    bool in_turn = false;      // the timer is set when all functions of this turn have run
    std::uint64_t rung = 0;    // what was read from the bell
    std::uint64_t fired = 0;   // and from the timer
    std::vector<function> batch;
    std::set<loop_member*> members;
    std::vector<char> scratch;               // what a socket reads into while its completion runs
    std::array<std::uint64_t, 32> random{};  // from the system, used from the back
    std::size_t random_left = 0;

    [[nodiscard]] bool foreign() const noexcept { return ::getpid() != owner; }
    [[nodiscard]] bool own_thread() const noexcept {
        return runner.load(std::memory_order_relaxed) == std::this_thread::get_id();
    }

    // As of event_loop: any thread.
    void post(function f);
    // In a child, or after its end, nothing runs here any more.
    [[nodiscard]] bool runs() const noexcept {
        return !foreign() && open.load(std::memory_order_acquire);
    }

    void schedule_drain();
    void wait_for_bell();
    void drain();
    void arm(boot_clock::time_point when);
    void follow_timers();
    void wait_for_timer();
    void run_due();
    void drop(const key& k);
    void drop_everything();
    void go_on();
    void run() noexcept;
    // Functions that Asio runs. What it throws itself is told, and mended at the next turn.
    void turn(const std::function<void()>& some) noexcept;
    bool failed = false;
};

// The way in.
struct asio_access {
    [[nodiscard]] static const std::shared_ptr<event_loop::impl>& inside(event_loop& on) noexcept {
        return on.impl_;
    }
};

}  // namespace trinco::detail
