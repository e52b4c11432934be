#include <algorithm>
#include <array>
#include <string>

#include "apps/trinco/help.hpp"
#include "core/breaker_options_table.hpp"

namespace trinco::program {
namespace {

using detail::option_row;

constexpr std::size_t columns = 5;
using cells = std::array<std::string, columns>;

cells cells_of(const option_row& option) {
    return {std::string(option.key), std::string(option.classic),
            std::string(detail::unit_of(option)), detail::default_text(option),
            detail::range_text(option)};
}

std::string line_of(const cells& row, const std::array<std::size_t, columns>& widths) {
    std::string line;
    for (std::size_t i = 0; i < columns; ++i) {
        line += row[i];
        if (i + 1 < columns) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    return line + "\n";
}

}  // namespace

std::string help_options() {
    const cells head = {"option", "also called", "unit", "default", "range"};
    std::array<std::size_t, columns> widths{};
    const auto widen = [&](const cells& row) {
        for (std::size_t i = 0; i < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
    };
    widen(head);
    for (const option_row& option : detail::breaker_option_table()) widen(cells_of(option));

    std::string text = line_of(head, widths);
    for (const option_row& option : detail::breaker_option_table()) {
        text += line_of(cells_of(option), widths);
        text += "    why:   " + std::string(option.why) + "\n";
        text += "    watch: " + std::string(option.watch) + "\n";
    }
    text +=
        "\nThe time (current_time elsewhere) is no option: breakers read the monotonic clock.\n"
        "All options are checked together when a breaker is made; nothing is clamped silently.\n";
    return text;
}

}  // namespace trinco::program
