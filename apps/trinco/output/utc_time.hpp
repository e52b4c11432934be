// The time by the wall clock, for people and for logs.
#pragma once

#include <chrono>
#include <string>

namespace trinco::program {

// "2026-11-29T19:20:01.123Z"
[[nodiscard]] std::string utc_now();
[[nodiscard]] std::string utc_text(std::chrono::system_clock::time_point when);

}  // namespace trinco::program
