// The way to a simulated etcd, over the simulated network: what etcd_rpc.hpp promises of endpoints,
// repeating, errors, watches and the size of messages, with messages that are lost, late, doubled
// and overtaken.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "sim/simulated_etcd.hpp"
#include "store/etcd/etcd_rpc.hpp"

namespace trinco::sim {

class simulated_etcd_client : public detail::etcd::rpc {
public:
    simulated_etcd_client(node& client, simulated_etcd& cluster);
    ~simulated_etcd_client() override;
    simulated_etcd_client(const simulated_etcd_client&) = delete;
    simulated_etcd_client& operator=(const simulated_etcd_client&) = delete;

    [[nodiscard]] op txn(const detail::etcd::txn_request& what, detail::deadline by,
                         detail::completion<detail::etcd::txn_reply> done) override;
    [[nodiscard]] op grant(std::chrono::seconds ttl, detail::deadline by,
                           detail::completion<detail::etcd::lease_reply> done) override;
    [[nodiscard]] op revoke(std::int64_t lease, detail::deadline by,
                            detail::completion<int> done) override;
    [[nodiscard]] op keep_alive(std::int64_t lease, detail::deadline by,
                                detail::completion<std::chrono::seconds> done) override;
    [[nodiscard]] op facts(std::int64_t lease, bool with_keys, detail::deadline by,
                           detail::completion<detail::etcd::lease_facts> done) override;
    [[nodiscard]] op watch(const detail::etcd::watch_request& what, on_news news,
                           on_over over) override;
    [[nodiscard]] op status(
        detail::deadline by,
        detail::completion<std::vector<detail::etcd::server_status>> done) override;
    [[nodiscard]] op members(detail::deadline by,
                             detail::completion<std::vector<detail::etcd::member>> done) override;
    [[nodiscard]] std::string trouble() const override { return {}; }
    [[nodiscard]] std::string why(const std::error_code&) const override { return {}; }
    [[nodiscard]] op stop(detail::deadline by, detail::completion<int> done) override;

    // Watches that are open.
    [[nodiscard]] std::size_t watches() const noexcept;

private:
    struct pending;
    template <class T>
    struct call;
    struct open_watch;
    struct shared;  // outlives the client in the messages under way

    template <class T>
    op ask(bool repeatable, detail::deadline by, detail::completion<T> done,
           std::function<simulated_etcd::answer<T>(simulated_etcd&)> carry_out);

    std::shared_ptr<shared> shared_;
    std::vector<op> breaks_;
};

}  // namespace trinco::sim
