// Making a group of the system.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

// By the system's groupadd, as one of its own (--system), in the system below `root`.
[[nodiscard]] std::optional<problem> add_group(const std::string& name,
                                               const std::filesystem::path& root);

}  // namespace trinco::program
