// etcd's members over gRPC: the transport of etcd_transport.hpp. The only users of gRPC are this
// class and what grpc_*.cpp beside it has.
//
// Connections  One a member and lane, made when it is needed. gRPC looks after a connection that is
//              up: it asks a silent peer for a sign of life after 10 s (etcd tolerates one in 5 s)
//              and waits 3 s for it, while something is under way only. Attempts to connect end
//              after 2 s, repeat after 100 ms ... 1 s.
// Threads      gRPC's own run none of our code but the hand-over to the loop.
// Fork         In a child nothing of gRPC is touched any more: calls do nothing, and memory is
// left.
// Errors       Of files that cannot be read, and of addresses: the calls fail with a sentence.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/stream_address.hpp"
#include "net/tls_settings.hpp"
#include "store/etcd/etcd_transport.hpp"

namespace trinco::detail::etcd {

// The loop must outlive it. Makes no connection yet. `tls`: with TLS, so; without: in the clear.
[[nodiscard]] std::unique_ptr<transport> make_grpc_transport(loop& on,
                                                             std::vector<stream_address> members,
                                                             std::optional<tls_settings> tls);

}  // namespace trinco::detail::etcd
