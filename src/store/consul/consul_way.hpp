// Consul's HTTP API at several addresses, of which one is in use (member_way.hpp): one that
// answered who leads, and knows a leader.
//
// Connections  of the addresses' own: for requests, and for watches, so that these do not hold up
//              the others. An address that failed gets new ones.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/http_client.hpp"
#include "net/stream_factory.hpp"
#include "store/consul/consul_client.hpp"
#include "store/consul/consul_token.hpp"
#include "store/member_way.hpp"

namespace trinco::detail::consul {

struct consul_call {
    const char* method = "GET";
    std::string path = {};   // "/v1/kv/a", escaped
    std::string query = {};  // "index=7&wait=60s", escaped
    std::string body = {};
};

enum class lane : std::uint8_t { requests, watches };

class consul_way final : private way_members, public member_way {
public:
    consul_way(loop& on, std::unique_ptr<stream_factory> streams, consul_settings settings);
    // What asks still stands on what goes first.
    ~consul_way() override { stop(); }

    [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
    [[nodiscard]] const std::string& name(std::size_t member) const { return places_[member].name; }
    [[nodiscard]] const std::optional<tls_settings>& tls() const noexcept { return tls_; }
    [[nodiscard]] consul_token& token() noexcept { return token_; }
    // Adds the token, the datacenter and the namespace.
    [[nodiscard]] op call(std::size_t member, lane by, const consul_call& what, deadline until,
                          unique_function<void(http_answer)> done);

private:
    using client = std::shared_ptr<http_client>;
    struct place {
        stream_address address;
        std::string name;  // "10.0.0.1:8500"
        client requests;   // null: none yet
        client watches;
    };

    [[nodiscard]] std::size_t count() const noexcept override { return places_.size(); }
    // One is made when it is needed.
    [[nodiscard]] bool connected(std::size_t) const override { return true; }
    [[nodiscard]] op ask(std::size_t member, deadline by,
                         unique_function<void(member_word)> done) override;
    [[nodiscard]] member_word word_of(std::size_t member, const http_answer& said) const;

    loop& loop_;
    const std::unique_ptr<stream_factory> streams_;
    const std::optional<tls_settings> tls_;
    const std::string datacenter_;
    const std::string name_space_;
    consul_token token_;
    std::vector<place> places_;
};

}  // namespace trinco::detail::consul
