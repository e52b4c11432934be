// `trinco version`: which version this is and how it was built.
#pragma once

#include <string>

namespace trinco::program {

// A line for people.
[[nodiscard]] std::string version_line();
// One JSON object for programs; `schema` changes when a member changes its meaning or goes away.
[[nodiscard]] std::string version_json();

}  // namespace trinco::program
