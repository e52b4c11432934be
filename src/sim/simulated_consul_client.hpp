// The way to a simulated Consul, over the simulated network: what consul_rpc.hpp promises of
// addresses, repeating, errors, watches and the size of messages, with messages that are lost,
// late, doubled and overtaken.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "sim/simulated_consul.hpp"
#include "store/consul/consul_rpc.hpp"

namespace trinco::sim {

class simulated_consul_client : public detail::consul::rpc {
public:
    simulated_consul_client(node& client, simulated_consul& cluster);
    ~simulated_consul_client() override;
    simulated_consul_client(const simulated_consul_client&) = delete;
    simulated_consul_client& operator=(const simulated_consul_client&) = delete;

    [[nodiscard]] op txn(const detail::consul::txn_request& what, detail::deadline by,
                         detail::completion<detail::consul::txn_reply> done) override;
    [[nodiscard]] op read(const detail::consul::read_request& what, detail::deadline by,
                          detail::completion<detail::consul::read_reply> done) override;
    [[nodiscard]] op keys(std::string_view prefix, detail::deadline by,
                          detail::completion<std::vector<std::string>> done) override;
    [[nodiscard]] op create(const detail::consul::session_request& what, detail::deadline by,
                            detail::completion<std::string> done) override;
    [[nodiscard]] op renew(std::string_view session, detail::deadline by,
                           detail::completion<std::chrono::seconds> done) override;
    [[nodiscard]] op destroy(std::string_view session, detail::deadline by,
                             detail::completion<int> done) override;
    [[nodiscard]] op facts(
        std::string_view session, detail::deadline by,
        detail::completion<std::optional<detail::consul::session_facts>> done) override;
    [[nodiscard]] op sessions(
        detail::deadline by,
        detail::completion<std::vector<detail::consul::session_facts>> done) override;
    [[nodiscard]] op watch(const detail::consul::read_request& what, on_news news,
                           on_over over) override;
    [[nodiscard]] op status(
        detail::deadline by,
        detail::completion<std::vector<detail::consul::server_status>> done) override;
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
           std::function<simulated_consul::answer<T>(simulated_consul&)> carry_out);

    std::shared_ptr<shared> shared_;
    std::vector<op> breaks_;
};

}  // namespace trinco::sim
