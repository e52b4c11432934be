// A conversation with a cluster of etcd, for a command that waits.
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
#include "store/etcd/etcd_rpc.hpp"
#include "store/etcd/etcd_url.hpp"
#include "trinco/error.hpp"

namespace trinco::program {

template <class T>
struct etcd_told {
    std::error_code error;
    T value{};
    std::chrono::nanoseconds took{0};  // from asking to answering, without our own threads
};

class etcd_talk {
public:
    using milliseconds = std::chrono::milliseconds;

    explicit etcd_talk(detail::etcd_target to);
    ~etcd_talk();
    etcd_talk(const etcd_talk&) = delete;
    etcd_talk& operator=(const etcd_talk&) = delete;

    // request(rpc, deadline, completion<T>) runs on the loop's thread; what it refers to must live
    // until this returns, at the latest a moment after the limit.
    template <class T, class Request>
    [[nodiscard]] etcd_told<T> ask(milliseconds limit, Request request);
    // Why requests fail at present; empty when they do not.
    [[nodiscard]] std::string trouble();

private:
    // Shared with the loop, which may come to it when nobody waits any more.
    struct place {
        std::unique_ptr<detail::etcd::rpc> link;  // the loop's thread alone
    };
    template <class T>
    struct question {
        std::mutex m;
        std::condition_variable came;
        std::optional<etcd_told<T>> answer;
        detail::op interest;  // the loop's thread alone
    };

    detail::event_loop on_;
    const std::shared_ptr<place> place_ = std::make_shared<place>();
};

template <class T, class Request>
etcd_told<T> etcd_talk::ask(milliseconds limit, Request request) {
    constexpr milliseconds moment{500};
    const auto q = std::make_shared<question<T>>();
    on_.post([this, q, limit, at = place_, request = std::move(request)]() mutable {
        if (!at->link) return;
        const auto began = on_.now();
        q->interest =
            request(*at->link, began + limit, [this, q, began](std::error_code error, T value) {
                const auto over = std::move(q->interest);
                const std::lock_guard hold(q->m);
                q->answer.emplace(etcd_told<T>{error, std::move(value), on_.now() - began});
                q->came.notify_all();
            });
    });
    {
        std::unique_lock hold(q->m);
        q->came.wait_for(hold, limit + moment, [&] { return q->answer.has_value(); });
        if (q->answer) return std::move(*q->answer);
    }
    static_cast<void>(
        detail::run_and_wait(on_, milliseconds(2'000), [q] { q->interest.cancel(); }));
    return {make_error_code(errc::unknown_outcome), {}, limit};
}

}  // namespace trinco::program
