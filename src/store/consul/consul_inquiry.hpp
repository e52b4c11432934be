// Asks every address of Consul what it says of itself.
#pragma once

#include <vector>

#include "core/loop.hpp"
#include "store/consul/consul_messages.hpp"
#include "store/consul/consul_way.hpp"

namespace trinco::detail::consul {

// One row an address; the way must outlive the op. What an agent tells only those who have a right
// to it (agent:read) stays empty without one.
[[nodiscard]] op inquire(consul_way& way, deadline by, completion<std::vector<server_status>> done);

}  // namespace trinco::detail::consul
