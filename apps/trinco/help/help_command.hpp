// `trinco help [TOPIC|COMMAND [VERB]]`.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_help();

}  // namespace trinco::program
