// A listening socket.
#pragma once

#include <memory>
#include <system_error>

#include "net/event_loop_impl.hpp"
#include "net/stream_factory.hpp"

namespace trinco::detail {

// As stream_factory::listen.
[[nodiscard]] std::unique_ptr<stream_listener> listen_at(
    const std::shared_ptr<event_loop::impl>& on, const stream_address& at, std::error_code& error);

}  // namespace trinco::detail
