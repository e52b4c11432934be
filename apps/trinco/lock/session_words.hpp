// What the library says of a session, in the program's words.
#pragma once

#include <string>
#include <string_view>

namespace trinco::program {

// Without "trinco: ", which complain() puts in front of every sentence.
[[nodiscard]] std::string without_name(std::string_view sentence);

}  // namespace trinco::program
