// The rpc of consul_rpc.hpp over HTTP/1.1.
//
// Connections  are made when something is asked for: as many as there are requests under way, at
//              most 48, and one a watch, at most 96.
// TLS          Files are read anew for each connection, so that a renewed certificate is used by
//              the next one.
// Token        goes with each request. A file is read when it is first needed, and again when the
//              server refuses what it held.
// Threads      none of its own.
// Fork         In a child calls do nothing, and memory is left.
// Errors       Of files that cannot be read, and of addresses: the calls fail, and why() says it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/event_loop.hpp"
#include "net/stream_address.hpp"
#include "net/stream_factory.hpp"
#include "net/tls_settings.hpp"
#include "store/consul/consul_rpc.hpp"

namespace trinco::detail::consul {

struct consul_settings {
    std::vector<stream_address> addresses = {};  // at least one
    std::optional<tls_settings> tls = {};        // with TLS, so; without: in the clear
    std::string token = {};
    std::string token_file = {};  // counts where no token is given
    std::string datacenter = {};  // empty: the agent's
    std::string name_space = {};  // empty: the token's, or the default
    bool operator==(const consul_settings&) const = default;
};

// The loop must outlive it. Makes no connection yet.
[[nodiscard]] std::unique_ptr<rpc> make_consul_client(event_loop& on, consul_settings settings);
// Over other streams than the system's.
[[nodiscard]] std::unique_ptr<rpc> make_consul_client(loop& on,
                                                      std::unique_ptr<stream_factory> streams,
                                                      consul_settings settings);

}  // namespace trinco::detail::consul
