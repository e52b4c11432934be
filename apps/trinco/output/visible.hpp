// Foreign text that is harmless to a terminal and stays on its line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace trinco::program {

// The text with what is not UTF-8, control characters (also those beyond ASCII) and marks that turn
// the direction of writing replaced by \xNN for each byte. Everything else stays as it is.
[[nodiscard]] std::string visible(std::string_view text);

// The characters of a text, for aligning: one column each. Bytes that are not UTF-8 count as one.
[[nodiscard]] std::size_t width_of(std::string_view text) noexcept;

// The character that a text begins with: its bytes, 0 when they are not UTF-8, and its value.
struct character {
    std::size_t bytes = 0;
    std::uint32_t value = 0;
};
[[nodiscard]] character first_character(std::string_view text) noexcept;

// Whether all of it is UTF-8: what people write is kept for others, whose terminals and JSON can
// show nothing else.
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace trinco::program
