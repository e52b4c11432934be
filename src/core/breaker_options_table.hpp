// What there is to know about each option of a breaker, in one table: the check of the ranges, the
// text form that travels to a store and the help of the program all read it, so that they cannot
// disagree.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "trinco/breaker_options.hpp"

namespace trinco::detail {

enum class option_unit : std::uint8_t {
    share,  // of one: a rate
    factor,
    number,
    duration,  // milliseconds, as a number
    choice     // of words
};

struct option_row {
    using member = std::variant<double breaker_options::*, std::uint32_t breaker_options::*,
                                std::chrono::milliseconds breaker_options::*,
                                std::optional<std::chrono::milliseconds> breaker_options::*,
                                consistency breaker_options::*>;

    std::string_view key;  // the member's name
    option_unit unit;
    member field;
    double lowest;  // shares must lie above it
    double highest;
    bool zero_is_off;          // 0 is allowed too
    std::string_view bound;    // what another option adds to the range, in words; empty: nothing
    std::string_view why;      // why the default is what it is
    std::string_view watch;    // what to look at when choosing another value
    std::string_view classic;  // its name in other libraries; empty: it has none

    // As a number; nothing when it is unset.
    [[nodiscard]] std::optional<double> value(const breaker_options& options) const;
};

[[nodiscard]] std::span<const option_row> breaker_option_table() noexcept;
// Null when there is none.
[[nodiscard]] const option_row* find_option(std::string_view key) noexcept;

// As people write it: "10 s", "0.5", "20", "cached".
[[nodiscard]] std::string value_text(const option_row& option, double value);
// The same of a default-made option; "off" and "unset" as such.
[[nodiscard]] std::string default_text(const option_row& option);
// "share of 1", "factor", "number", "duration" or "choice".
[[nodiscard]] std::string_view unit_of(const option_row& option) noexcept;
// "1 to 1,000,000", "0 (off) or 1 ms to 1 h, and less than call_timeout".
[[nodiscard]] std::string range_text(const option_row& option);

// The wire form: the key ("_ms" appended for durations) and a number or a word without spaces.
[[nodiscard]] std::string wire_key(const option_row& option);
[[nodiscard]] bool is_wire_key(const option_row& option, std::string_view text) noexcept;
[[nodiscard]] std::string wire_value(const option_row& option, const breaker_options& options);
// False when the text is not such a value; the range is validate()'s business.
[[nodiscard]] bool set_from_wire(const option_row& option, std::string_view text,
                                 breaker_options& options);

// "10 s", "1500 ms", "5 min", "24 h", "30 days": the largest unit that divides it.
[[nodiscard]] std::string duration_text(std::chrono::milliseconds d);

}  // namespace trinco::detail
