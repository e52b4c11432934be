// The rpc of a server on a loop of its own, for tests: blocking calls from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "net/event_loop.hpp"
#include "tests/net/stream_harness.hpp"

namespace trinco::detail::test {

template <class T>
struct rpc_answer {
    std::error_code error;
    T value{};
};

template <class Rpc>
class blocking_rpc {
public:
    explicit blocking_rpc(const std::function<std::unique_ptr<Rpc>(event_loop&)>& make) {
        on_.start();
        run_and_wait(on_, patience, [&] { rpc_ = make(on_); });
    }
    blocking_rpc(const blocking_rpc&) = delete;
    blocking_rpc& operator=(const blocking_rpc&) = delete;
    ~blocking_rpc() {
        run_and_wait(on_, patience, [this] {
            interests_.clear();
            rpc_.reset();
        });
    }

    template <class T, class F>  // F: op(Rpc&, deadline, completion<T>)
    rpc_answer<T> ask(F call, std::chrono::milliseconds within = 5s) {
        awaited<T> got;
        const auto interest = std::make_shared<op>();
        on_.post([this, call = std::move(call), done = got.next(), interest, within]() mutable {
            *interest = call(*rpc_, on_.now() + within, std::move(done));
        });
        if (!got.wait(within + 10s)) return {std::make_error_code(std::errc::timed_out), {}};
        run_and_wait(on_, patience, [interest] { interest->cancel(); });
        return {got.error(), std::move(got.value())};
    }
    rpc_answer<int> stop(std::chrono::milliseconds within) {
        return ask<int>(
            [](Rpc& r, deadline by, completion<int> done) { return r.stop(by, std::move(done)); },
            within);
    }
    std::string trouble() {
        std::string text;
        run_and_wait(on_, patience, [&] { text = rpc_->trouble(); });
        return text;
    }
    // What this begins goes on until the client ends.
    void begin(const std::function<op(Rpc&)>& what) {
        run_and_wait(on_, patience, [&] { interests_.push_back(what(*rpc_)); });
    }

    event_loop& on() { return on_; }
    Rpc& rpc() { return *rpc_; }

private:
    event_loop on_;
    std::unique_ptr<Rpc> rpc_;
    std::vector<op> interests_;
};

}  // namespace trinco::detail::test
