// `trinco version`: which version this is and how it was built.
#pragma once

#include <memory>
#include <string>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

// A line for people.
[[nodiscard]] std::string version_line();
// One JSON object for programs; `schema` changes when a member changes its meaning or goes away.
[[nodiscard]] std::string version_json();

[[nodiscard]] std::unique_ptr<command> make_version();

}  // namespace trinco::program
