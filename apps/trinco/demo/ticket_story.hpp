// Act (a) of `trinco demo`: selling the last ticket exactly once.
#pragma once

#include "apps/trinco/demo/stage.hpp"

namespace trinco::program::demo {

// The last ticket and two buyers, then eight services and a hundred tickets. About 15 s.
[[nodiscard]] act_result ticket_story(const stage& on);

}  // namespace trinco::program::demo
