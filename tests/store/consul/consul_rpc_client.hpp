// A client of Consul on a loop of its own, for tests: blocking calls from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/consul/consul_client.hpp"
#include "tests/store/blocking_rpc.hpp"

namespace trinco::detail::test {

class consul_rpc_client : public blocking_rpc<consul::rpc> {
public:
    consul_rpc_client(const std::vector<std::uint16_t>& ports, consul::consul_settings with = {})
        : blocking_rpc([&](event_loop& on) {
              for (const auto port : ports) {
                  with.addresses.push_back(stream_address::tcp("127.0.0.1", port));
              }
              return consul::make_consul_client(on, std::move(with));
          }) {}

    rpc_answer<consul::txn_reply> txn(const std::vector<consul::operation>& what,
                                      std::chrono::milliseconds within = 5s) {
        return ask<consul::txn_reply>(
            [what](consul::rpc& r, deadline by, completion<consul::txn_reply> done) {
                return r.txn({what}, by, std::move(done));
            },
            within);
    }
    rpc_answer<consul::txn_reply> set(const std::string& key, const std::string& value,
                                      std::chrono::milliseconds within = 5s) {
        consul::operation one;
        one.verb = consul::operation::verb_t::set;
        one.key = key;
        one.value = value;
        return txn({one}, within);
    }
    rpc_answer<consul::read_reply> read(const consul::read_request& what,
                                        std::chrono::milliseconds within = 5s) {
        return ask<consul::read_reply>(
            [what](consul::rpc& r, deadline by, completion<consul::read_reply> done) {
                return r.read(what, by, std::move(done));
            },
            within);
    }
    rpc_answer<std::vector<std::string>> keys(const std::string& prefix) {
        return ask<std::vector<std::string>>(
            [prefix](consul::rpc& r, deadline by, completion<std::vector<std::string>> done) {
                return r.keys(prefix, by, std::move(done));
            });
    }
    rpc_answer<std::string> create(std::chrono::seconds ttl = 15s,
                                   std::chrono::seconds lock_delay = 0s,
                                   std::chrono::milliseconds within = 5s) {
        return ask<std::string>(
            [=](consul::rpc& r, deadline by, completion<std::string> done) {
                return r.create({"test", ttl, lock_delay, true}, by, std::move(done));
            },
            within);
    }
    rpc_answer<std::chrono::seconds> renew(const std::string& session,
                                           std::chrono::milliseconds within = 5s) {
        return ask<std::chrono::seconds>(
            [session](consul::rpc& r, deadline by, completion<std::chrono::seconds> done) {
                return r.renew(session, by, std::move(done));
            },
            within);
    }
    rpc_answer<int> destroy(const std::string& session) {
        return ask<int>([session](consul::rpc& r, deadline by, completion<int> done) {
            return r.destroy(session, by, std::move(done));
        });
    }
    rpc_answer<std::optional<consul::session_facts>> facts(const std::string& session) {
        return ask<std::optional<consul::session_facts>>(
            [session](consul::rpc& r, deadline by,
                      completion<std::optional<consul::session_facts>> done) {
                return r.facts(session, by, std::move(done));
            });
    }
    rpc_answer<std::vector<consul::session_facts>> sessions() {
        return ask<std::vector<consul::session_facts>>(
            [](consul::rpc& r, deadline by, completion<std::vector<consul::session_facts>> done) {
                return r.sessions(by, std::move(done));
            });
    }
    rpc_answer<std::vector<consul::server_status>> status() {
        return ask<std::vector<consul::server_status>>(
            [](consul::rpc& r, deadline by, completion<std::vector<consul::server_status>> done) {
                return r.status(by, std::move(done));
            });
    }

    // What a watch has told so far.
    class heard {
    public:
        [[nodiscard]] std::vector<consul::read_reply> news() const {
            const std::lock_guard hold(m_);
            return news_;
        }
        // The value of the only key, as it was told last; nothing: there is none.
        [[nodiscard]] std::optional<std::string> last() const {
            const auto all = news();
            if (all.empty() || all.back().rows.empty()) return {};
            return all.back().rows[0].value;
        }
        [[nodiscard]] std::error_code over() const {
            const std::lock_guard hold(m_);
            return over_;
        }

    private:
        friend consul_rpc_client;
        mutable std::mutex m_;
        std::vector<consul::read_reply> news_;
        std::error_code over_;
    };
    // Goes on until the client ends.
    std::shared_ptr<heard> watch(const consul::read_request& what) {
        const auto h = std::make_shared<heard>();
        begin([&](consul::rpc& r) {
            return r.watch(
                what,
                [h](const consul::read_reply& news) {
                    const std::lock_guard hold(h->m_);
                    h->news_.push_back(news);
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
