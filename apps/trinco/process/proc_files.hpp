// Reading /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace trinco::program {

// The whole of a small file of /proc; nothing when it cannot be read.
[[nodiscard]] std::optional<std::string> proc_file(const std::string& path);
// The names in a folder of /proc that are numbers.
[[nodiscard]] std::vector<::pid_t> proc_numbers(const std::string& path);

}  // namespace trinco::program
