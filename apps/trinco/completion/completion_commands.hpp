// `trinco completion SHELL`, and the hidden `trinco complete` that the scripts of all shells ask.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_completion();
[[nodiscard]] std::unique_ptr<command> make_complete();

// What may stand in place of the last word, behind those before it (without the program's name):
// commands, verbs, options, choices, live names. Nothing where a shell completes files, or where
// the user's own command begins.
[[nodiscard]] std::vector<std::string> completions(std::span<const std::string> words);

}  // namespace trinco::program
