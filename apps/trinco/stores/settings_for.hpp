// The settings of a command that opens stores, in the executable that can open them.
#pragma once

#include <initializer_list>
#include <variant>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/stores/needs.hpp"

namespace trinco::program {

// load_settings(flags). When one of the stores that are needed is none of this executable's, the
// process goes on as the one that has them all (start/executables.hpp) and reads its words anew: so
// it is called before the command has said, asked, forked or opened anything. The problem, beyond
// those of the settings: that executable is missing.
[[nodiscard]] std::variant<settings, problem> settings_for(const store_flags& flags,
                                                           std::initializer_list<needs> what);

// A configuration that comes through a pipe, as that of --config <(...): who has read it leaves
// nothing to the one that comes after.
[[nodiscard]] bool is_read_once(const store_flags& flags);

}  // namespace trinco::program
