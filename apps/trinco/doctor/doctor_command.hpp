// `trinco doctor`: looks at the stores that the settings name, and says what to change.
//
// Exit code: 0 when nothing is bad; 69 (77 for rights, 64 for a URL) when something is, as the
// commands that use the store would end; with --strict 1 when there are warnings and nothing worse.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_doctor();

}  // namespace trinco::program
