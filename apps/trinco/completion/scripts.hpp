// The completion scripts of the shells. Each only hands the words to `trinco complete`.
#pragma once

#include <string_view>

namespace trinco::program {

// Of bash, zsh or fish; empty for others.
[[nodiscard]] std::string_view completion_script(std::string_view shell);

}  // namespace trinco::program
