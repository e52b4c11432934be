// A breaker on virtual time, with randomness and call timers that the test holds in its hand.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "breaker/access.hpp"
#include "breaker/call_timer.hpp"
#include "trinco/circuit_breaker.hpp"

namespace trinco::test {

using namespace std::chrono_literals;

// Fires when the test says so.
class manual_timer final : public detail::call_timer {
public:
    std::uint64_t start(std::chrono::milliseconds after, std::stop_source what) override {
        asked.push_back(after);
        waiting.emplace(++last_, std::move(what));
        return last_;
    }
    void cancel(std::uint64_t number) noexcept override { waiting.erase(number); }
    void fire() {
        for (auto& [number, source] : std::exchange(waiting, {})) source.request_stop();
    }

    std::vector<std::chrono::milliseconds> asked;
    std::map<std::uint64_t, std::stop_source> waiting;

private:
    std::uint64_t last_ = 0;
};

// Begins at one day: subtracting a window never goes below zero.
class timed_breaker {
public:
    explicit timed_breaker(const breaker_options& options = {}, std::string name = "payments")
        : b_(detail::breaker_access::make(std::move(name), options, environment())) {}

    circuit_breaker& operator*() noexcept { return *b_; }
    circuit_breaker* operator->() noexcept { return b_.get(); }
    detail::engine& core() noexcept { return detail::breaker_access::core(*b_); }

    void pass(std::chrono::nanoseconds d) { now_ += d.count(); }

    // n calls at once.
    void succeed(int n = 1) {
        for (int i = 0; i < n; ++i) b_->try_acquire().success();
    }
    void fail(int n = 1) {
        for (int i = 0; i < n; ++i) b_->try_acquire().failure();
    }

    manual_timer timer;
    std::uint64_t random = 0;  // every draw, of 64 bits

private:
    detail::engine_env environment() {
        detail::engine_env env;
        env.clock = &now_;
        env.random = [this] { return random; };
        env.timer = &timer;
        env.shards = 2;
        return env;
    }

    std::atomic<std::int64_t> now_{std::chrono::nanoseconds(24h).count()};
    std::unique_ptr<circuit_breaker> b_;
};

// Opens after four calls that failed, for one second.
inline breaker_options quick() {
    breaker_options o;
    o.minimum_calls = 4;
    o.open_for = 1s;
    o.half_open_probes = 2;
    o.jitter = 0;
    return o;
}

}  // namespace trinco::test
