// A byte stream over a connected socket.
#pragma once

#include <memory>
#include <system_error>

#include "net/byte_stream.hpp"
#include "net/watched_descriptor.hpp"

namespace trinco::detail {

// Null, and why, when the loop cannot watch it.
[[nodiscard]] std::unique_ptr<byte_stream> make_socket_stream(
    const std::shared_ptr<event_loop::impl>& on, own_descriptor connected, std::error_code& error);

}  // namespace trinco::detail
