// The voice for a terminal: what was told scrolls by, and below it a few rows are drawn anew in
// place, ten times a second at most. A drawing is one write, and nothing is erased before it is
// overwritten, so it does not flicker. The cursor stays visible: a demonstration that is killed
// leaves the terminal as it is.
#pragma once

#include <memory>

#include "apps/trinco/demo/voice.hpp"

namespace trinco::program::demo {

// Draws on a thread of its own until it is destroyed.
[[nodiscard]] std::unique_ptr<voice> make_live_view(const voice_settings& with);

}  // namespace trinco::program::demo
