// etcd without locks: the rpc that the store of locks has, on a thread as it has one, in single
// steps for which the caller waits. For tests of many locks, and for comparison in bench/.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "net/event_loop.hpp"
#include "store/etcd/etcd_client.hpp"
#include "store/etcd/etcd_layout.hpp"
#include "store/etcd/http2_transport.hpp"

namespace trinco::detail::test {

class bare_etcd {
public:
    explicit bare_etcd(std::uint16_t port) {
        on_.start();
        run([&] {
            std::vector<stream_address> members{stream_address::tcp("127.0.0.1", port)};
            link_ = etcd::make_etcd_client(
                on_, etcd::make_http2_transport(on_, std::move(members), {}), {});
        });
    }
    ~bare_etcd() {
        run([&] {
            watch_.cancel();
            link_.reset();
        });
        on_.stop(std::chrono::seconds(2));
    }
    bare_etcd(const bare_etcd&) = delete;
    bare_etcd& operator=(const bare_etcd&) = delete;

    void commit(const std::string& key) { txn({{}, {etcd::put_request{key, "x", 0}}, {}}); }
    // The two transactions of a lock that nobody else wants: in under this lease, and out.
    void enter_and_leave(const std::string& queue, std::int64_t lease);
    // Holds so many locks, named PREFIX0, PREFIX1 ..., under a lease of ten minutes: that one.
    std::int64_t hold(const std::string& prefix, int many);
    void revoke(std::int64_t lease) {
        ask<int>([&](auto by, auto done) { return link_->revoke(lease, by, std::move(done)); });
    }
    [[nodiscard]] std::int64_t count(const std::string& prefix) {
        etcd::range_request all;
        all.keys = etcd::all_under(prefix);
        all.count_only = true;
        return txn({{}, {all}, {}}).replies.at(0).count;
    }

    // From now on, for hand_over.
    void watch(const std::string& key) {
        commit(key);
        run([&] {
            etcd::watch_request what;
            what.keys = {key, {}};
            watch_ = link_->watch(
                what,
                [this](const etcd::watch_news& news) {
                    if (!news.events.empty() && seen_) std::exchange(seen_, nullptr)();
                },
                [](std::error_code) {});
        });
    }
    // A change of what is watched, its event, and a read.
    void hand_over(const std::string& key) {
        std::promise<void> over;
        on_.post([&] {
            seen_ = [&] {
                etcd::range_request one;
                one.keys = {key, {}};
                reading_ = link_->txn({{}, {one}, {}}, by(),
                                      [&](std::error_code, const auto&) { over.set_value(); });
            };
            asking_ = link_->txn({{}, {etcd::put_request{key, "x", 0}}, {}}, by(),
                                 [](std::error_code, const auto&) {});
        });
        over.get_future().wait();
    }

private:
    [[nodiscard]] deadline by() { return on_.now() + std::chrono::seconds(5); }
    template <class F>
    void run(F f) {
        std::promise<void> done;
        on_.post([&] {
            f();
            done.set_value();
        });
        done.get_future().wait();
    }
    template <class T, class F>
    T ask(F f) {
        std::promise<T> said;
        on_.post([&] {
            asking_ = f(by(), [&](std::error_code, T value) { said.set_value(std::move(value)); });
        });
        return said.get_future().get();
    }
    etcd::txn_reply txn(const etcd::txn_request& what) {
        return ask<etcd::txn_reply>(
            [&](auto by, auto done) { return link_->txn(what, by, std::move(done)); });
    }

    event_loop on_;
    std::unique_ptr<etcd::rpc> link_;
    op asking_;
    op reading_;
    op watch_;
    unique_function<void()> seen_;
};

inline void bare_etcd::enter_and_leave(const std::string& queue, std::int64_t lease) {
    const auto key = etcd::entry_key(queue, lease, {1});
    const std::string note(60, 'x');
    const auto in =
        txn({{{etcd::all_under(queue + "/")}}, {etcd::put_request{key, note, lease}}, {}});
    etcd::comparison same{{key, {}}};
    same.number = in.revision;
    const etcd::range_request own{{key, {}}};
    txn({{same}, {etcd::erase_request{{key, {}}}}, {own}});
}

inline std::int64_t bare_etcd::hold(const std::string& prefix, int many) {
    constexpr int in_a_step = 100;
    const auto lease = ask<etcd::lease_reply>([&](auto by, auto done) {
        return link_->grant(std::chrono::seconds(600), by, std::move(done));
    });
    for (int first = 0; first < many; first += in_a_step) {
        etcd::txn_request step;
        for (int i = first; i < std::min(many, first + in_a_step); ++i) {
            step.success.emplace_back(etcd::put_request{
                etcd::entry_key(prefix + std::to_string(i), lease.id, {1}), "", lease.id});
        }
        txn(step);
    }
    return lease.id;
}

}  // namespace trinco::detail::test
