#include <algorithm>
#include <array>
#include <string>

#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/help/help.hpp"
#include "apps/trinco/output/wrapped.hpp"
#include "core/breaker_options_table.hpp"

namespace trinco::program {
namespace {

using detail::option_row;

constexpr std::size_t columns = 5;
constexpr std::size_t page = 100;
constexpr std::string_view outro = R"(
Given to a process as trinco::breaker_options; to 'trinco call' as --failure-rate 0.3; in
trinco.toml as failure_rate = 0.3 under [breakers.policies.NAME]; to all that run as
'trinco breakers set NAME failure_rate=0.3'. The defaults are the library's; of 'trinco call',
each process of which makes one call, minimum_calls is 5, and window, live_for and
probe_timeout are 5 min.
The time (current_time elsewhere) is no option: breakers read the monotonic clock.
All options are checked together when a breaker is made; nothing is clamped silently.
)";
using cells = std::array<std::string, columns>;

// Where there are more names elsewhere than one, they make a line of their own.
std::string_view first_name(const option_row& option) {
    return option.classic.substr(0, option.classic.find(','));
}

std::string_view names_beyond_first(const option_row& option) {
    const auto first = first_name(option).size();
    return option.classic.substr(std::min(first + 2, option.classic.size()));
}

cells cells_of(const option_row& option) {
    return {std::string(option.key), std::string(first_name(option)),
            std::string(detail::unit_of(option)), detail::default_text(option),
            detail::range_text(option)};
}

// The last column in as many lines as it takes.
std::string line_of(const cells& row, const std::array<std::size_t, columns>& widths) {
    std::string line;
    for (std::size_t i = 0; i + 1 < columns; ++i) {
        line += row[i];
        line.append(widths[i] - row[i].size() + 2, ' ');
    }
    return line + wrapped(row[columns - 1], line.size(), page) + "\n";
}

std::string note(std::string_view what, std::string_view text) {
    std::string line = "    " + std::string(what);
    line.append(11 - line.size(), ' ');
    return line + wrapped(text, line.size(), page) + "\n";
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
        if (!names_beyond_first(option).empty()) text += note("also:", names_beyond_first(option));
        text += note("why:", option.why);
        text += note("watch:", option.watch);
        if (!is_shared_option(option)) {
            text += note("set:", "each process's own: 'trinco breakers set' cannot set it for all");
        }
    }
    return text + std::string(outro);
}

}  // namespace trinco::program
