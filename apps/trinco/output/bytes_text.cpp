#include "apps/trinco/output/bytes_text.hpp"

#include <array>
#include <cstdio>
#include <string_view>

namespace trinco::program {

std::string bytes_text(std::uint64_t bytes) {
    constexpr double step = 1'024;
    constexpr std::array<std::string_view, 4> units = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1'024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
    double amount = static_cast<double>(bytes) / step;
    std::size_t unit = 0;
    // What would be rounded to 1024 is 1.0 of the next.
    while (amount >= step - 0.5 && unit + 1 < units.size()) {
        amount /= step;
        ++unit;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), amount < 99.95 ? "%.1f" : "%.0f", amount);
    return std::string(text.data()) + " " + std::string(units[unit]);
}

}  // namespace trinco::program
