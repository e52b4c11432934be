// The processes that use locks in act (d) of `trinco demo`, hidden commands that it starts itself.
//
// `trinco demo-hold`, the command of a `trinco lock`: says "holds TOKEN" and ends with a line of
// its stdin. `trinco demo-grants`, which takes and gives back a lock of its own again and again on
// the store of TRINCO_LOCKS, so that it shows when the store grants anything: "granted AT_US" each
// time (CLOCK_BOOTTIME, see gateway_server.hpp), until its stdin ends.
#pragma once

#include <filesystem>
#include <string>

#include "apps/trinco/demo/cast.hpp"

namespace trinco::program::demo {

// `trinco lock LOCK --label LABEL -- trinco demo-hold`.
[[nodiscard]] role holder_role(const std::string& lock, const std::string& label,
                               const std::string& locks, const std::filesystem::path& errors);
[[nodiscard]] role grants_role(const std::string& locks, const std::filesystem::path& errors);

}  // namespace trinco::program::demo
