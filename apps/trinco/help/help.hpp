// What `trinco help`, `--help` and the bare `trinco` print.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

// Four lines that work as they stand.
[[nodiscard]] std::string_view first_steps();

// All commands in their groups, and the topics.
[[nodiscard]] std::string help_overview();

// Usage, summary, notes, options and examples.
[[nodiscard]] std::string help_on_command(const command_entry& entry);
// The verbs of a noun.
[[nodiscard]] std::string help_on_noun(std::string_view noun);

// The topics that `trinco help` takes.
[[nodiscard]] std::span<const std::string_view> help_topics();
// The text of a topic; empty when there is no such topic.
[[nodiscard]] std::string help_on_topic(std::string_view topic);
// The table of `trinco help options`, made from the one table that the library validates by.
[[nodiscard]] std::string help_options();
// What -o json prints: `trinco help json`.
[[nodiscard]] std::string help_json();

}  // namespace trinco::program
