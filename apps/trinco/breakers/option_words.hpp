// The options of breakers as people write them: "failure_rate=0.3 window=20s", on a command line
// and in trinco.toml. Keys are those of `trinco help options`, values as duration.hpp and the table
// of options read them. Pure; what is wrong is one sentence.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/breaker_options_table.hpp"
#include "trinco/breaker_options.hpp"

namespace trinco::program {

// Whether the fleet agrees on it, in the record of the store. The others are of a process.
[[nodiscard]] bool is_shared_option(const detail::option_row& option);

// Reads one value within its range. The sentence names key, value and what is allowed; a key that
// does not exist, the nearest one that does. Whether options fit together is validate()'s business.
[[nodiscard]] std::optional<std::string> assign_option(std::string_view key, std::string_view value,
                                                       breaker_options& to);

// "window" and "20s" of "window=20s"; nothing when there is no "=", or nothing before it.
struct option_pair {
    std::string_view key;
    std::string_view value;
};
[[nodiscard]] std::optional<option_pair> split_pair(std::string_view text);

// An option's value in the form in which it travels to a store: "window_ms=20000".
[[nodiscard]] std::string on_wire(const detail::option_row& option, const breaker_options& from);

// The options in a text that came from a store; those that it does not name keep their defaults.
[[nodiscard]] breaker_options options_of_text(std::string_view text);

// Keys and values of what the fleet agrees on, as people write them: {"window", "20 s"}.
struct option_shown {
    std::string_view key;
    std::string value;
};
[[nodiscard]] std::vector<option_shown> shared_options(const breaker_options& of);

// "open_for 10 s (there 30 s), quorum 1 (there 2)": in what the fleet would have to agree on.
[[nodiscard]] std::string differences(const breaker_options& here, const breaker_options& there);

}  // namespace trinco::program
