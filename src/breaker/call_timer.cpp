#include "breaker/call_timer.hpp"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace trinco::detail {
namespace {

class thread_timer final : public call_timer {
public:
    explicit thread_timer(std::uint64_t last = 0) noexcept : last_(last) {}
    [[nodiscard]] std::uint64_t last() const noexcept { return last_; }

    std::uint64_t start(std::chrono::milliseconds after, std::stop_source what) override {
        const auto when = clock::now() + after;
        const std::lock_guard hold(m_);
        if (!running_) begin();
        const auto number = ++last_;
        const bool earliest = waiting_.empty() || when < waiting_.begin()->first.first;
        waiting_.emplace(key{when, number}, std::move(what));
        times_.emplace(number, when);
        if (earliest) changed_.notify_one();
        return number;
    }

    void cancel(std::uint64_t number) noexcept override {
        std::stop_source last(std::nostopstate);  // its callbacks' memory goes outside the lock
        const std::lock_guard hold(m_);
        const auto mine = times_.find(number);
        if (mine == times_.end()) return;
        const auto entry = waiting_.find({mine->second, number});
        last = std::move(entry->second);
        waiting_.erase(entry);
        times_.erase(mine);
    }

private:
    using clock = std::chrono::steady_clock;
    using key = std::pair<clock::time_point, std::uint64_t>;

    // Signals are for the program's own threads.
    void begin() {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            std::thread([this] { run(); }).detach();
            running_ = true;
        } catch (...) {
            pthread_sigmask(SIG_SETMASK, &before, nullptr);
            throw;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    void run() {
        std::unique_lock hold(m_);
        for (;;) {
            if (waiting_.empty()) {
                changed_.wait(hold);
                continue;
            }
            const auto first = waiting_.begin();
            if (first->first.first > clock::now()) {
                const auto until = first->first.first;
                changed_.wait_until(hold, until);
                continue;
            }
            auto source = std::move(first->second);
            times_.erase(first->first.second);
            waiting_.erase(first);
            hold.unlock();
            source.request_stop();  // runs the user's stop_callbacks
            hold.lock();
        }
    }

    std::mutex m_;
    std::condition_variable changed_;
    std::map<key, std::stop_source> waiting_;
    std::map<std::uint64_t, clock::time_point> times_;
    std::uint64_t last_ = 0;
    bool running_ = false;
};

// The one in use. A child process has no thread and perhaps a locked mutex from its parent: it
// begins with a new one, which goes on numbering where the old one was. None is ever destroyed: its
// thread may outlive main's statics.
class process_timer final : public call_timer {
public:
    process_timer() {
        one = new thread_timer;
        ::pthread_atfork(nullptr, nullptr, [] { one = new thread_timer(one->last()); });
    }
    std::uint64_t start(std::chrono::milliseconds after, std::stop_source what) override {
        return one->start(after, std::move(what));
    }
    void cancel(std::uint64_t number) noexcept override { one->cancel(number); }

private:
    static inline thread_timer* one = nullptr;
};

}  // namespace

call_timer& call_timer::real() {
    static auto* const timer = new process_timer;
    return *timer;
}

}  // namespace trinco::detail
