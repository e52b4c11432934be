// What the demonstration says at its end.
#pragma once

#include <string>

#include "apps/trinco/demo/programme.hpp"

namespace trinco::program::demo {

// The claims with their figures, and commands to try next. Lines of at most 80 columns, each ended.
[[nodiscard]] std::string summary_text(const programme& what, const programme_result& seen,
                                       bool colours);

// The last line of --json: {"schema", "seed", "ok", "elapsed_ms", "nothing_left", "tickets": {...},
// "breaker": {...}, "invoice": {...}, "leader": {...}}; an act that was not played is null.
[[nodiscard]] std::string summary_json(const programme& what, const programme_result& seen);

// How the user calls this program: "trinco" when that finds it, otherwise its path.
[[nodiscard]] std::string how_called();

}  // namespace trinco::program::demo
