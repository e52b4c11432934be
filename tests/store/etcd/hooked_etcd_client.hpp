// A way to a simulated etcd at which a test stands.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "sim/simulated_etcd_client.hpp"
#include "trinco/error.hpp"

namespace trinco::test {

class hooked_etcd_client final : public sim::simulated_etcd_client {
public:
    using txn_request = detail::etcd::txn_request;

    hooked_etcd_client(sim::node& from, sim::simulated_etcd& to)
        : sim::simulated_etcd_client(from, to), node_(from) {}

    // Called before each transaction is sent; an error is answered in place of the server.
    std::function<std::error_code(const txn_request&)> before_txn;
    // When it says so, the transaction is sent so much later.
    std::function<std::chrono::milliseconds(const txn_request&)> delay;
    bool watches_are_compacted = false;

    [[nodiscard]] detail::op txn(const txn_request& what, detail::deadline by,
                                 detail::completion<detail::etcd::txn_reply> done) override {
        const auto error = before_txn ? before_txn(what) : std::error_code();
        if (error) {
            return node_.after(std::chrono::milliseconds(1),
                               [error, done = std::move(done)]() mutable { done(error, {}); });
        }
        const auto late = delay ? delay(what) : std::chrono::milliseconds(0);
        if (late.count() == 0) return simulated_etcd_client::txn(what, by, std::move(done));
        late_.push_back(node_.after(late, [this, what, by, done = std::move(done)]() mutable {
            late_.push_back(simulated_etcd_client::txn(what, by, std::move(done)));
        }));
        return {};
    }
    [[nodiscard]] detail::op watch(const detail::etcd::watch_request& what, on_news news,
                                   on_over over) override {
        if (!watches_are_compacted) {
            return simulated_etcd_client::watch(what, std::move(news), std::move(over));
        }
        return node_.after(std::chrono::milliseconds(1), [over = std::move(over)]() mutable {
            over(make_error_code(errc::conflict));
        });
    }

private:
    sim::node& node_;
    std::vector<detail::op> late_;
};

// Whether it puts the key.
inline bool puts(const detail::etcd::txn_request& what, const std::string& key) {
    for (const auto& one : what.success) {
        const auto* p = std::get_if<detail::etcd::put_request>(&one);
        if (p != nullptr && p->key == key) return true;
    }
    return false;
}

}  // namespace trinco::test
