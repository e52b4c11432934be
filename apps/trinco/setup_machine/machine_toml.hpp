// Naming the machine's store in a configuration, without touching what else is in it. Pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

// The text of the file (nothing: there is none) with breakers.store and locks.store set to the URL;
// as it was when they are. Comments, order and everything else stay. The problem: one of the keys
// is set to something else, the text is no TOML, or it is written in a way into which they do not
// fit (breakers as an inline table).
[[nodiscard]] std::variant<std::string, problem> with_store(const std::optional<std::string>& text,
                                                            std::string_view url,
                                                            const std::filesystem::path& file);

}  // namespace trinco::program
