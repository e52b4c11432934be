// A client of etcd on a loop of its own, for tests: blocking calls from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/etcd/etcd_client.hpp"
#include "store/etcd/http2_transport.hpp"
#include "tests/store/blocking_rpc.hpp"

namespace trinco::detail::test {

class etcd_rpc_client : public blocking_rpc<etcd::rpc> {
public:
    explicit etcd_rpc_client(const std::vector<std::uint16_t>& ports,
                             std::optional<tls_settings> tls = {}, etcd::credentials who = {})
        : blocking_rpc([&](event_loop& on) {
              std::vector<stream_address> members;
              for (const auto port : ports) {
                  members.push_back(stream_address::tcp("127.0.0.1", port));
              }
              return etcd::make_etcd_client(
                  on, etcd::make_http2_transport(on, std::move(members), std::move(tls)),
                  std::move(who));
          }) {}

    rpc_answer<etcd::txn_reply> txn(const etcd::txn_request& what,
                                    std::chrono::milliseconds within = 5s) {
        return ask<etcd::txn_reply>(
            [what](etcd::rpc& r, deadline by, completion<etcd::txn_reply> done) {
                return r.txn(what, by, std::move(done));
            },
            within);
    }
    rpc_answer<etcd::txn_reply> put(const std::string& key, const std::string& value,
                                    std::int64_t lease = 0, std::chrono::milliseconds within = 5s) {
        return txn({{}, {etcd::put_request{key, value, lease}}, {}}, within);
    }
    rpc_answer<etcd::txn_reply> get(const etcd::key_range& keys,
                                    std::chrono::milliseconds within = 5s) {
        etcd::range_request read;
        read.keys = keys;
        return txn({{}, {read}, {}}, within);
    }
    rpc_answer<etcd::lease_reply> grant(std::chrono::seconds ttl,
                                        std::chrono::milliseconds within = 5s) {
        return ask<etcd::lease_reply>(
            [ttl](etcd::rpc& r, deadline by, completion<etcd::lease_reply> done) {
                return r.grant(ttl, by, std::move(done));
            },
            within);
    }
    rpc_answer<int> revoke(std::int64_t lease) {
        return ask<int>([lease](etcd::rpc& r, deadline by, completion<int> done) {
            return r.revoke(lease, by, std::move(done));
        });
    }
    rpc_answer<std::chrono::seconds> keep_alive(std::int64_t lease,
                                                std::chrono::milliseconds within = 5s) {
        return ask<std::chrono::seconds>(
            [lease](etcd::rpc& r, deadline by, completion<std::chrono::seconds> done) {
                return r.keep_alive(lease, by, std::move(done));
            },
            within);
    }
    rpc_answer<etcd::lease_facts> facts(std::int64_t lease) {
        return ask<etcd::lease_facts>(
            [lease](etcd::rpc& r, deadline by, completion<etcd::lease_facts> done) {
                return r.facts(lease, true, by, std::move(done));
            });
    }
    rpc_answer<std::vector<etcd::server_status>> status(std::chrono::milliseconds within = 5s) {
        return ask<std::vector<etcd::server_status>>(
            [](etcd::rpc& r, deadline by, completion<std::vector<etcd::server_status>> done) {
                return r.status(by, std::move(done));
            },
            within);
    }
    rpc_answer<std::vector<etcd::member>> members() {
        return ask<std::vector<etcd::member>>(
            [](etcd::rpc& r, deadline by, completion<std::vector<etcd::member>> done) {
                return r.members(by, std::move(done));
            });
    }

    // What a watch has told so far.
    class heard {
    public:
        [[nodiscard]] std::vector<etcd::watch_event> events() const {
            const std::lock_guard hold(m_);
            return events_;
        }
        [[nodiscard]] std::size_t count() const { return events().size(); }
        [[nodiscard]] std::error_code over() const {
            const std::lock_guard hold(m_);
            return over_;
        }

    private:
        friend etcd_rpc_client;
        mutable std::mutex m_;
        std::vector<etcd::watch_event> events_;
        std::error_code over_;
    };
    // Goes on until the client ends.
    std::shared_ptr<heard> watch(const etcd::watch_request& what) {
        const auto h = std::make_shared<heard>();
        begin([&](etcd::rpc& r) {
            return r.watch(
                what,
                [h](const etcd::watch_news& news) {
                    const std::lock_guard hold(h->m_);
                    h->events_.insert(h->events_.end(), news.events.begin(), news.events.end());
                },
                [h](std::error_code why) {
                    const std::lock_guard hold(h->m_);
                    h->over_ = why;
                });
        });
        return h;
    }
};

}  // namespace trinco::detail::test
