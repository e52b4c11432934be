// How a holder is called where nobody has said it: this machine, the process, what it runs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

// "host:1234 backup", at most as long as a session allows.
[[nodiscard]] std::string holder_label(const std::string& command);
// A sentence when what was given with --label cannot be shown.
[[nodiscard]] std::optional<problem> check_label(const std::string& label);

}  // namespace trinco::program
