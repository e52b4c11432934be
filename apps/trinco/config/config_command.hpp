// `trinco config show`: what holds here, and why; or what is wrong, also with the policies, whose
// values other commands do not look at.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_config_show();

}  // namespace trinco::program
