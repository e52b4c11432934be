#include "apps/trinco/command_line/duration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using std::chrono::milliseconds;

struct unit {
    std::string_view name;
    std::int64_t ms;
};

constexpr std::int64_t second = 1'000;
constexpr std::int64_t minute = 60 * second;
constexpr std::int64_t hour = 60 * minute;
constexpr std::int64_t day = 24 * hour;
// Longer than any option allows, and far from the end of the type.
constexpr double longest = 36'500.0 * static_cast<double>(day);

constexpr std::array<unit, 6> units{
    {{"ms", 1}, {"s", second}, {"min", minute}, {"m", minute}, {"h", hour}, {"d", day}}};

const unit* find_unit(std::string_view name) {
    for (const unit& u : units) {
        if (u.name == name) return &u;
    }
    return nullptr;
}

std::string not_one(std::string_view text) {
    return detail::quoted(text) +
           " is not a duration; write a number and a unit: 250ms, 30s, 5min, 1h30m, 1d";
}

std::string no_unit(std::string_view text, std::string_view digits) {
    const std::string plain(digits.substr(0, 16));
    return detail::quoted(text) + " has no unit" +
           (digits == text ? ": " : " behind its last number: ") + plain + "s are seconds, " +
           plain + "ms milliseconds";
}

// Takes the name of a unit off the text, with the blank in front of it and one behind it.
std::string_view unit_name(std::string_view& rest) {
    if (rest.starts_with(' ')) rest.remove_prefix(1);
    const auto end = std::min(rest.find_first_of(" .0123456789"), rest.size());
    const auto name = rest.substr(0, end);
    rest.remove_prefix(end);
    if (rest.size() > 1 && rest.starts_with(' ')) rest.remove_prefix(1);
    return name;
}

std::string counted(std::int64_t n, std::string_view name) {
    return std::to_string(n) + " " + std::string(name);
}

// "3 min 20 s", without a second part that is zero.
std::string two_parts(std::int64_t ms, unit large, unit small) {
    // To the nearest small unit first, so that 59.7 s never become "0 min 60 s".
    const std::int64_t smalls = (ms + small.ms / 2) / small.ms;
    const std::int64_t per_large = large.ms / small.ms;
    std::string text = counted(smalls / per_large, large.name);
    if (smalls % per_large != 0) text += " " + counted(smalls % per_large, small.name);
    return text;
}

// With one digit behind the point, which a zero does not need.
std::string seconds_words(std::int64_t ms) {
    const std::int64_t tenths = (ms + 50) / 100;
    std::string text = std::to_string(tenths / 10);
    if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
    return text + " s";
}

}  // namespace

std::variant<milliseconds, std::string> parse_duration(std::string_view text) {
    if (text == "0") return milliseconds(0);
    double all = 0;
    std::string_view rest = text;
    const unit* before = nullptr;
    do {
        double number = 0;
        const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number,
                                          std::chars_format::fixed);
        const bool is_number = read.ec == std::errc() && std::isfinite(number);
        if (!is_number && read.ec != std::errc::result_out_of_range) return not_one(text);
        const auto digits = rest.substr(0, static_cast<std::size_t>(read.ptr - rest.data()));
        rest.remove_prefix(digits.size());
        if (text.starts_with('-')) return detail::quoted(text) + " is negative";
        const auto name = unit_name(rest);
        if (name.empty()) return no_unit(text, digits);
        const unit* const in = find_unit(name);
        if (in == nullptr) {
            return detail::quoted(text) + " has the unknown unit " + detail::quoted(name) +
                   "; units are ms, s, min (or m), h and d";
        }
        if (before != nullptr && in->ms >= before->ms) {
            return detail::quoted(text) + " is not a duration; the larger unit comes first: 1h30m";
        }
        before = in;
        all += is_number ? number * static_cast<double>(in->ms) : longest * 2;
    } while (!rest.empty());
    if (all > longest) return detail::quoted(text) + " is longer than a century";
    return milliseconds(std::llround(all));
}

std::string duration_words(milliseconds d) {
    if (d < milliseconds(0)) return "-" + duration_words(-d);
    const std::int64_t ms = d.count();
    constexpr std::int64_t seconds_end = minute - 50;  // beyond, a tenth rounds to a minute
    constexpr std::int64_t minutes_end = hour - second / 2;
    constexpr std::int64_t hours_end = day - minute / 2;
    if (ms < second) return counted(ms, "ms");
    if (ms < seconds_end) return seconds_words(ms);
    if (ms < minutes_end) return two_parts(ms, {"min", minute}, {"s", second});
    if (ms < hours_end) return two_parts(ms, {"h", hour}, {"min", minute});
    return two_parts(ms, {"d", day}, {"h", hour});
}

std::string duration_option(milliseconds d) {
    if (d == milliseconds(0)) return "0s";
    constexpr std::array<unit, 4> large_first{
        {{"d", day}, {"h", hour}, {"min", minute}, {"s", second}}};
    for (const unit& u : large_first) {
        if (d.count() % u.ms == 0) return std::to_string(d.count() / u.ms) + std::string(u.name);
    }
    return std::to_string(d.count()) + "ms";
}

}  // namespace trinco::program
