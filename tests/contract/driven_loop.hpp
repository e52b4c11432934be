// A real loop that a test turns by hand, on its own thread: real threads of stores, and no moment
// at which something runs behind the test's back. Its time is the real one, and may be moved on.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "core/loop.hpp"

namespace trinco::detail::test {

class driven_loop final : public loop {
public:
    [[nodiscard]] boot_clock::time_point now() override {
        return boot_clock::now() + ahead_.load();
    }
    // Moves the time on at once, as if nothing had happened meanwhile.
    void skip(boot_clock::duration d) { ahead_ = ahead_.load() + d; }
    // now() for any thread.
    [[nodiscard]] std::chrono::microseconds time() const {
        return std::chrono::duration_cast<std::chrono::microseconds>(
            (boot_clock::now() + ahead_.load()).time_since_epoch());
    }
    [[nodiscard]] std::uint64_t random() override { return random_(); }
    void post(unique_function<void()> f) override {
        const std::lock_guard hold(m_);
        posted_.push_back(std::move(f));
        more_.notify_one();
    }
    [[nodiscard]] op at(deadline when, unique_function<void()> f) override {
        const key k{when, next_++};
        timers_->emplace(k, std::move(f));
        return op([timers = std::weak_ptr<timer_map>(timers_), k]() noexcept {
            if (const auto t = timers.lock()) const auto dropped = t->extract(k);
        });
    }

    // Runs what is posted and due until done() or for that long; whether done() was true.
    bool run_until(const std::function<bool()>& done, boot_clock::duration limit) {
        const auto end = now() + limit;
        while (true) {
            if (done()) return true;
            if (run_one()) continue;
            if (now() >= end) return false;
            auto until = end;
            if (!timers_->empty()) until = std::min(until, timers_->begin()->first.first);
            std::unique_lock hold(m_);
            more_.wait_for(hold, until - now(), [this] { return !posted_.empty(); });
        }
    }
    void run_for(boot_clock::duration d) {
        run_until([] { return false; }, d);
    }

private:
    std::atomic<boot_clock::duration> ahead_{boot_clock::duration(0)};
    using key = std::pair<boot_clock::time_point, std::uint64_t>;
    using timer_map = std::map<key, unique_function<void()>>;

    bool run_one() {
        unique_function<void()> f;
        if (!timers_->empty() && timers_->begin()->first.first <= now()) {
            f = std::move(timers_->extract(timers_->begin()).mapped());
        } else {
            const std::lock_guard hold(m_);
            if (posted_.empty()) return false;
            f = std::move(posted_.front());
            posted_.pop_front();
        }
        f();
        return true;
    }

    std::mt19937_64 random_{std::random_device{}()};
    std::shared_ptr<timer_map> timers_ = std::make_shared<timer_map>();
    std::uint64_t next_ = 0;
    std::mutex m_;
    std::condition_variable more_;
    std::deque<unique_function<void()>> posted_;
};

}  // namespace trinco::detail::test
