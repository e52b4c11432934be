// `trinco setup --machine [--dry-run]`: see machine_setup.hpp.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_setup();

}  // namespace trinco::program
