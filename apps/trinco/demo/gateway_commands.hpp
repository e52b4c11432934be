// The processes of act (b) of `trinco demo`: hidden commands that it starts itself.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program::demo {

// demo-gateway: a payment gateway that is well, hangs or fails, see gateway_server.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_gateway();
// demo-caller: a service that calls it, see gateway_caller.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_caller();

}  // namespace trinco::program::demo
