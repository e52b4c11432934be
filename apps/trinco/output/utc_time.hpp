// The time by the wall clock, for people and for logs.
#pragma once

#include <string>

namespace trinco::program {

// "2026-11-29T19:20:01.123Z"
[[nodiscard]] std::string utc_now();

}  // namespace trinco::program
