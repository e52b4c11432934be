// Words of a command line that are right elsewhere: those of flock(1), and dashes that an editor
// made of "--".
#pragma once

#include <optional>
#include <span>
#include <string>

#include "apps/trinco/command_line/arguments.hpp"

namespace trinco::program {

// "\"-w\" is an option of flock; did you mean 'trinco lock x --wait 5s -- echo hi'?"; nothing when
// there is no such word. For a line that is a mistake. `own`: what stands in front of "--", behind
// the command's name; `command`: what stands behind it. `takes`: the command's options. Options of
// flock are looked for when `is_lock`.
[[nodiscard]] std::optional<std::string> habit_hint(const std::string& name,
                                                    std::span<const std::string> own,
                                                    std::span<const std::string> command,
                                                    const arguments& takes, bool is_lock);

}  // namespace trinco::program
