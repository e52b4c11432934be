#include "lock/callback_queue.hpp"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto idle_for = 1s;  // before the thread ends

// The program's signals are the program's: our threads take none.
class all_signals_blocked {
public:
    all_signals_blocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~all_signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    all_signals_blocked(const all_signals_blocked&) = delete;
    all_signals_blocked& operator=(const all_signals_blocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

struct callback_queue::state {
    explicit state(const char* name) : thread_name(name) {}

    const char* const thread_name;
    std::mutex m;
    std::condition_variable work;
    std::condition_variable idle;
    std::deque<unique_function<void()>> queue;
    std::thread::id thread;  // of the one that runs, if any
    bool running = false;
    bool busy = false;
    bool closing = false;

    void run() noexcept {
        pthread_setname_np(pthread_self(), thread_name);
        std::unique_lock hold(m);
        thread = std::this_thread::get_id();
        for (;;) {
            work.wait_for(hold, idle_for, [&] { return !queue.empty() || closing; });
            if (queue.empty()) break;
            auto f = std::move(queue.front());
            queue.pop_front();
            busy = true;
            hold.unlock();
            f();
            f.reset();
            hold.lock();
            busy = false;
            if (queue.empty()) idle.notify_all();
        }
        running = false;
        thread = {};
    }
};

callback_queue::callback_queue(const char* thread_name)
    : state_(std::make_shared<state>(thread_name)) {}

callback_queue::~callback_queue() {
    const std::lock_guard hold(state_->m);
    state_->closing = true;
    state_->work.notify_all();
}

void callback_queue::post(unique_function<void()> f) {
    std::unique_lock hold(state_->m);
    state_->queue.push_back(std::move(f));
    if (std::exchange(state_->running, true)) {
        state_->work.notify_one();
        return;
    }
    try {
        const all_signals_blocked quiet;
        std::thread([s = state_] { s->run(); }).detach();
    } catch (...) {  // no thread, or no memory for one
        state_->running = false;
        auto here = std::move(state_->queue.back());
        state_->queue.pop_back();
        hold.unlock();
        here();
    }
}

bool callback_queue::drain_until(std::chrono::steady_clock::time_point by) {
    std::unique_lock hold(state_->m);
    if (state_->thread == std::this_thread::get_id()) return false;
    return state_->idle.wait_until(hold, by,
                                   [&] { return state_->queue.empty() && !state_->busy; });
}

}  // namespace trinco::detail
