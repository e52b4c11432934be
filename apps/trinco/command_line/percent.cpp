#include "apps/trinco/command_line/percent.hpp"

#include <array>
#include <charconv>

namespace trinco::program {

std::string without_percent(std::string_view text) {
    if (!text.ends_with('%')) return std::string(text);
    std::string_view digits = text.substr(0, text.size() - 1);
    if (digits.ends_with(' ')) digits.remove_suffix(1);
    double number = 0;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, number, std::chars_format::fixed);
    if (read.ec != std::errc() || read.ptr != end) return std::string(text);
    std::array<char, 32> share{};
    const auto written = std::to_chars(share.data(), share.data() + share.size(), number / 100);
    return {share.data(), written.ptr};
}

}  // namespace trinco::program
