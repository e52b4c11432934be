// A conversation with a cluster of servers that keeps locks, for a command that waits.
//
// Threads: one, not the loop's. Errors are values.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "core/loop.hpp"
#include "net/event_loop.hpp"
#include "trinco/error.hpp"

namespace trinco::program {

template <class T>
struct rpc_told {
    std::error_code error;
    T value{};
    std::chrono::nanoseconds took{0};  // from asking to answering, without our own threads
};

// `Rpc`: etcd::rpc or consul::rpc.
template <class Rpc>
class rpc_talk {
public:
    using milliseconds = std::chrono::milliseconds;

    // make(loop) is the way to the servers; it runs on the loop's thread.
    template <class Make>
    explicit rpc_talk(Make make) {
        on_.start();
        static_cast<void>(detail::run_and_wait(
            on_, patience,
            [this, at = place_, make = std::move(make)]() mutable { at->link = make(on_); }));
    }
    ~rpc_talk() {
        static_cast<void>(detail::run_and_wait(on_, patience, [at = place_] { at->link.reset(); }));
        on_.stop(patience);
    }
    rpc_talk(const rpc_talk&) = delete;
    rpc_talk& operator=(const rpc_talk&) = delete;

    // request(rpc, deadline, completion<T>) runs on the loop's thread; what it refers to must live
    // until this returns, at the latest a moment after the limit.
    template <class T, class Request>
    [[nodiscard]] rpc_told<T> ask(milliseconds limit, Request request);
    // Why requests fail at present; empty when they do not.
    [[nodiscard]] std::string trouble() {
        return text([](Rpc& link) { return link.trouble(); });
    }

protected:
    // Of the way; empty when it does not come.
    template <class Get>
    [[nodiscard]] std::string text(Get get) {
        const auto said = std::make_shared<std::string>();
        const auto failed =
            detail::run_and_wait(on_, patience, [said, at = place_, get = std::move(get)] {
                if (at->link) *said = get(*at->link);
            });
        return failed ? std::string() : *said;
    }

private:
    static constexpr milliseconds patience{2'000};
    // Shared with the loop, which may come to it when nobody waits any more.
    struct place {
        std::unique_ptr<Rpc> link;  // the loop's thread alone
    };
    template <class T>
    struct question {
        std::mutex m;
        std::condition_variable came;
        std::optional<rpc_told<T>> answer;
        detail::op interest;  // the loop's thread alone
    };

    detail::event_loop on_;
    const std::shared_ptr<place> place_ = std::make_shared<place>();
};

template <class Rpc>
template <class T, class Request>
rpc_told<T> rpc_talk<Rpc>::ask(milliseconds limit, Request request) {
    constexpr milliseconds moment{500};
    const auto q = std::make_shared<question<T>>();
    on_.post([this, q, limit, at = place_, request = std::move(request)]() mutable {
        if (!at->link) return;
        const auto began = on_.now();
        q->interest =
            request(*at->link, began + limit, [this, q, began](std::error_code error, T value) {
                const auto over = std::move(q->interest);
                const std::lock_guard hold(q->m);
                q->answer.emplace(rpc_told<T>{error, std::move(value), on_.now() - began});
                q->came.notify_all();
            });
    });
    {
        std::unique_lock hold(q->m);
        q->came.wait_for(hold, limit + moment, [&] { return q->answer.has_value(); });
        if (q->answer) return std::move(*q->answer);
    }
    static_cast<void>(detail::run_and_wait(on_, patience, [q] { q->interest.cancel(); }));
    return {make_error_code(errc::unknown_outcome), {}, limit};
}

}  // namespace trinco::program
