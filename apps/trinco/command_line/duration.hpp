// Durations as people write them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <variant>

namespace trinco::program {

// Numbers, with a fraction if need be, each with a unit, the larger one first: ms, s, m or min, h,
// d. "1.5s", "250ms", "1h30m"; also with blanks, as duration_words writes it: "1 min 3 s". "0"
// alone is zero. Not negative; what is finer than a millisecond is rounded. Otherwise
// one sentence that says what is wrong with the text and how it would be written: "30" has no unit:
// 30s are seconds, 30ms milliseconds.
[[nodiscard]] std::variant<std::chrono::milliseconds, std::string> parse_duration(
    std::string_view text);

// "1.5 s", "250 ms", "3 min 20 s": for people, of any length, rounded to what is worth saying.
[[nodiscard]] std::string duration_words(std::chrono::milliseconds d);

// "1500ms", "30s", "5min", "24h": exact, as parse_duration reads it, in the largest unit that
// divides it.
[[nodiscard]] std::string duration_option(std::chrono::milliseconds d);

}  // namespace trinco::program
