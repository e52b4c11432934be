#include "apps/trinco/output/visible.hpp"

namespace trinco::program {
namespace {

// How many bytes a first byte asks for; 0 when none begins with it.
std::size_t length_of(unsigned char first) noexcept {
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    if (first >= 0xf0 && first < 0xf5) return 4;
    return 0;
}

bool is_harmful(std::uint32_t c) noexcept {
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
    const bool turns = c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                       (c >= 0x2066 && c <= 0x2069);
    return control || turns;
}

void append_bytes(std::string& to, std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        to += "\\x";
        to += digits[value >> 4U];
        to += digits[value & 15U];
    }
}

}  // namespace

character first_character(std::string_view text) noexcept {
    if (text.empty()) return {};
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t length = length_of(first);
    if (length == 0 || text.size() < length) return {};
    if (length == 1) return {1, first};
    std::uint32_t value = first & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xc0U) != 0x80) return {};
        value = value << 6U | (byte & 0x3fU);
    }
    constexpr std::uint32_t first_of_three = 0x800;
    constexpr std::uint32_t first_of_four = 0x10000;
    const bool too_long =
        (length == 3 && value < first_of_three) || (length == 4 && value < first_of_four);
    const bool surrogate = value >= 0xd800 && value < 0xe000;
    if (too_long || surrogate || value > 0x10ffff) return {};
    return {length, value};
}

std::string visible(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const character c = first_character(text);
        const std::size_t taken = c.bytes == 0 ? 1 : c.bytes;
        if (c.bytes == 0 || is_harmful(c.value)) {
            append_bytes(shown, text.substr(0, taken));
        } else {
            shown += text.substr(0, taken);
        }
        text.remove_prefix(taken);
    }
    return shown;
}

std::size_t width_of(std::string_view text) noexcept {
    std::size_t width = 0;
    while (!text.empty()) {
        const character c = first_character(text);
        text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
        ++width;
    }
    return width;
}

bool is_utf8(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::size_t bytes = first_character(text).bytes;
        if (bytes == 0) return false;
        text.remove_prefix(bytes);
    }
    return true;
}

}  // namespace trinco::program
