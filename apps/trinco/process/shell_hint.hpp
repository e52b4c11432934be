// What was meant by a command that does not exist: a line for a shell, which only a shell takes
// apart.
#pragma once

#include <span>
#include <string>

namespace trinco::program {

// "; a shell takes such a line: sh -c 'echo hi; echo there'"; empty when the command's first word
// looks like any program's name. Begins with "; ".
[[nodiscard]] std::string words_for_a_shell(std::span<const std::string> command);

}  // namespace trinco::program
