// Where a byte stream leads to or is waited for: a TCP port of a host, or a path of this machine.
//
// A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "net/tls_settings.hpp"

namespace trinco::detail {

struct stream_address {
    enum class kind_t : std::uint8_t { tcp, local };
    kind_t kind = kind_t::tcp;
    std::string host;        // of tcp: a name, or an IPv4 or IPv6 address without brackets
    std::uint16_t port = 0;  // of tcp; to listen at 0 means a free one
    std::string path;        // of local: of a Unix socket, at most 107 bytes
    std::optional<tls_settings> tls =
        {};  // to connect with TLS, by a factory of net/tls_factory.hpp

    [[nodiscard]] static stream_address tcp(std::string host, std::uint16_t port) {
        return {kind_t::tcp, std::move(host), port, {}, {}};
    }
    [[nodiscard]] static stream_address local(std::string path) {
        return {kind_t::local, {}, 0, std::move(path), {}};
    }
    bool operator==(const stream_address&) const = default;
};

// "example.com:80", "[::1]:80", "unix:/run/x.sock".
[[nodiscard]] std::string text_of(const stream_address& address);

}  // namespace trinco::detail
