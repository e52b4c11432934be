// A line for a shell that asks a server what the doctor cannot do itself.
#pragma once

#include <string>
#include <vector>

#include "net/stream_address.hpp"
#include "store/redis/redis_url.hpp"

namespace trinco::program::doctor {

// "redis-cli -h 10.0.0.7 -p 6379 -n 2 --user ann --askpass DEL 'trinco:1:default:{pay}'": to one
// server, with the database, the user and the TLS of the URL. It asks for the password, which it
// does not show. Pure.
[[nodiscard]] std::string redis_cli_line(const trinco::detail::redis_target& target,
                                         const trinco::detail::stream_address& server,
                                         const std::vector<std::string>& command);

}  // namespace trinco::program::doctor
