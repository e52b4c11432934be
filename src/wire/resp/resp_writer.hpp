// Commands for Redis as bytes: an array of bulk strings, so that a word may hold any byte.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trinco::detail {

// Empty when there are no words, or more than 512 MiB of them, which no server takes.
[[nodiscard]] std::string resp_command(std::span<const std::string> words);
[[nodiscard]] std::string resp_command(std::span<const std::string_view> words);

}  // namespace trinco::detail
