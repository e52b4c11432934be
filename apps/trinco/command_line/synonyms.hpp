// Words that people try for commands and verbs, because other programs have them.
#pragma once

#include <string_view>

namespace trinco::program {

// "reset" for ("breakers", "close"); empty when the word means nothing here.
[[nodiscard]] std::string_view meant_verb(std::string_view noun, std::string_view typed) noexcept;

// "'trinco locks break'" for "unlock"; empty when the word means nothing here.
[[nodiscard]] std::string_view meant_commands(std::string_view typed) noexcept;

}  // namespace trinco::program
