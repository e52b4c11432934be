// etcd's members over HTTP/2: the transport of etcd_transport.hpp.
//
// Connections  One a member and lane, made when it is needed, as http2_connection.hpp has it. After
//              its end, or when the server says that it goes, the next call makes another one.
// TLS          is asked for HTTP/2 (ALPN), and who does not agree is no etcd. Files are read anew
//              for each connection, so that a renewed certificate is used by the next one.
// Threads      none of its own.
// Fork         In a child calls do nothing, and memory is left.
// Errors       Of files that cannot be read, and of addresses: the calls fail with a sentence.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "net/event_loop.hpp"
#include "net/stream_address.hpp"
#include "net/stream_factory.hpp"
#include "net/tls_settings.hpp"
#include "store/etcd/etcd_transport.hpp"

namespace trinco::detail::etcd {

// The loop must outlive it. Makes no connection yet. `tls`: with TLS, so; without: in the clear.
[[nodiscard]] std::unique_ptr<transport> make_http2_transport(event_loop& on,
                                                              std::vector<stream_address> members,
                                                              std::optional<tls_settings> tls);
// Over other streams than the system's.
[[nodiscard]] std::unique_ptr<transport> make_http2_transport(
    loop& on, std::unique_ptr<stream_factory> streams, const std::vector<stream_address>& members,
    const std::optional<tls_settings>& tls);

}  // namespace trinco::detail::etcd
