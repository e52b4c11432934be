// One attempt to reach an address, from its name to a connected stream.
#pragma once

#include <memory>

#include "net/event_loop.hpp"
#include "net/name_service.hpp"
#include "net/stream_factory.hpp"

namespace trinco::detail {

// As stream_factory::connect.
[[nodiscard]] op connect_socket(event_loop& on, const std::shared_ptr<name_service>& names,
                                const stream_address& to, deadline by,
                                completion<std::unique_ptr<byte_stream>> done);

}  // namespace trinco::detail
