// `trinco demo`, and what its processes are: hidden commands that it starts itself.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program::demo {

[[nodiscard]] std::unique_ptr<command> make_demo();
// demo-sell: sells one ticket, see sale.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_sell();
// demo-service: sells tickets until there is none left, see rush.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_service();

}  // namespace trinco::program::demo
