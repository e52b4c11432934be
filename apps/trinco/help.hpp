// `trinco help [TOPIC]`, and what the bare `trinco` says.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace trinco::program {

// Four lines that work as they stand.
[[nodiscard]] std::string_view first_steps();

// The words that `trinco help` takes.
[[nodiscard]] std::span<const std::string_view> help_topics();

// The text of a topic; an empty topic is the overview. Empty when there is no such topic.
[[nodiscard]] std::string help_on(std::string_view topic);

// The table of `trinco help options`, made from the one table that the library validates by.
[[nodiscard]] std::string help_options();

}  // namespace trinco::program
