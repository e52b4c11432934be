// A program that opens a store and asks it, for tests: blocking calls from any thread.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/breaker/policy.hpp"
#include "store/open.hpp"
#include "tests/net/stream_harness.hpp"
#include "trinco/redis.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {

template <class T>
struct client_answer {
    std::error_code error;
    T value;
};

class redis_client {
public:
    explicit redis_client(const std::string& url, store_settings settings = {})
        : store_(trinco::open(url, {drivers::redis()}, settings)),
          state_(store_access::state(store_)) {}
    redis_client(const redis_client&) = delete;
    redis_client& operator=(const redis_client&) = delete;
    ~redis_client() { close(); }

    void close() {
        if (state_) run_and_wait(state_->on(), patience, [this] { subscription_.cancel(); });
        state_.reset();
        store_.close();
    }

    template <class T>
    client_answer<T> ask(std::function<op(breaker_store&, deadline, completion<T>)> call,
                         std::chrono::milliseconds within = 2s) {
        awaited<T> got;
        const auto interest = std::make_shared<op>();
        state_->on().post(
            [this, call = std::move(call), done = got.next(), interest, within]() mutable {
                *interest = call(*state_->breakers(), state_->on().now() + within, std::move(done));
            });
        if (!got.wait()) return {std::make_error_code(std::errc::timed_out), {}};
        run_and_wait(state_->on(), patience, [interest] { interest->cancel(); });
        return {got.error(), std::move(got.value())};
    }

    client_answer<std::vector<verdict>> exchange(const std::vector<std::string>& breakers,
                                                 std::chrono::milliseconds within = 2s) {
        std::vector<news> batch;
        for (const auto& name : breakers) {
            news n;
            n.breaker = name;
            n.seq = ++seq_;
            n.options = to_text(policy{});
            counts one;
            one.success = 1;
            n.slices.push_back({one, std::chrono::milliseconds(0)});
            batch.push_back(std::move(n));
        }
        return ask<std::vector<verdict>>(
            [batch](breaker_store& s, deadline by, completion<std::vector<verdict>> done) {
                return s.exchange(batch, by, std::move(done));
            },
            within);
    }
    // The error of the call or of the only element.
    std::error_code exchange(const std::string& breaker, std::chrono::milliseconds within = 2s) {
        const auto a = exchange(std::vector<std::string>{breaker}, within);
        return a.error || a.value.empty() ? a.error : a.value.front().error;
    }
    client_answer<view> control(const std::string& breaker, control_verb verb) {
        control_request c;
        c.id = ++seq_ + 1'000'000;
        c.breaker = breaker;
        c.who = "ann";
        c.verb = verb;
        return ask<view>([c](breaker_store& s, deadline by, completion<view> done) {
            return s.control(c, by, std::move(done));
        });
    }
    client_answer<page> inspect() {
        return ask<page>([](breaker_store& s, deadline by, completion<page> done) {
            return s.inspect("", "", 100, by, std::move(done));
        });
    }
    std::string trouble() {
        std::string why;
        run_and_wait(state_->on(), patience, [&] { why = state_->breakers()->trouble(); });
        return why;
    }
    store_traffic traffic() {
        store_traffic all;
        run_and_wait(state_->on(), patience, [&] { all = state_->breakers()->traffic(); });
        return all;
    }

    void subscribe() {
        run_and_wait(state_->on(), patience, [this] {
            subscription_ = state_->breakers()->subscribe([this](const notice& n) {
                const std::lock_guard hold(m_);
                heard_.push_back(n);
            });
        });
    }
    // Notices of that kind so far.
    std::size_t heard(notice::kind_t kind) {
        const std::lock_guard hold(m_);
        std::size_t n = 0;
        for (const notice& one : heard_) n += one.kind == kind ? 1 : 0;
        return n;
    }

private:
    store store_;
    std::shared_ptr<store_state> state_;
    std::uint64_t seq_ = 0;
    std::mutex m_;
    std::vector<notice> heard_;
    op subscription_;
};

// Until it holds, at most that long; whether it does.
inline bool comes_true(const std::function<bool()>& what, std::chrono::milliseconds bound = 10s) {
    const auto end = std::chrono::steady_clock::now() + bound;
    while (!what()) {
        if (std::chrono::steady_clock::now() > end) return false;
        ::poll(nullptr, 0, 5);
    }
    return true;
}

}  // namespace trinco::detail::test
