// An amount of memory or disk, for people.
#pragma once

#include <cstdint>
#include <string>

namespace trinco::program {

// "0 bytes", "812 bytes", "1.5 KiB", "880 KiB", "9.9 MiB", "77.6 GiB": rounded, in the unit in
// which it is at least 1, with one decimal below 100.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);

}  // namespace trinco::program
