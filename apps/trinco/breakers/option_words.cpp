#include "apps/trinco/breakers/option_words.hpp"

#include <algorithm>
#include <variant>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/command_line/percent.hpp"
#include "core/breaker/policy.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using trinco::detail::option_row;
using trinco::detail::option_unit;

// The range of the option alone; how options fit together is validate()'s business.
bool is_in_range(const option_row& option, double value) {
    if (value == 0 && option.zero_is_off) return true;
    const bool is_above =
        option.unit == option_unit::share ? value > option.lowest : value >= option.lowest;
    return is_above && value <= option.highest;  // NaN is not
}

struct problem_text {
    std::string sentence;
};

// The option that has this name elsewhere; null when there is none. `classic` is a list with ", ".
const option_row* called_elsewhere(std::string_view key) {
    for (const option_row& o : detail::breaker_option_table()) {
        std::string_view names = o.classic;
        while (!names.empty()) {
            const std::string_view one = names.substr(0, names.find(','));
            if (one == key) return &o;
            names.remove_prefix(std::min(names.size(), one.size() + 2));
        }
    }
    return nullptr;
}

std::string no_such_option(std::string_view key) {
    if (const option_row* const here = called_elsewhere(key)) {
        return "the option " + std::string(key) + " is called " + std::string(here->key) +
               " here, and its unit is: " + std::string(detail::unit_of(*here)) +
               "; 'trinco help options' lists all";
    }
    std::vector<std::string_view> keys;
    for (const option_row& o : detail::breaker_option_table()) keys.push_back(o.key);
    const std::string_view meant = nearest(key, keys);
    std::string text = "there is no option " + detail::quoted(key) + " of breakers; ";
    if (meant.empty()) return text + "'trinco help options' lists them";
    return text + "did you mean " + std::string(meant) + "?";
}

std::string bad_value(const option_row& option, std::string_view value) {
    std::string text = "the option " + std::string(option.key) + " is " + detail::quoted(value) +
                       "; allowed is " + detail::range_text(option);
    const std::string percent = std::string(value) + "%";
    breaker_options read;
    const bool is_meant = option.unit == option_unit::share &&
                          detail::set_from_wire(option, without_percent(percent), read) &&
                          is_in_range(option, option.value(read).value_or(0));
    return is_meant ? text + "; or do you mean " + percent + "?" : text;
}

// The value in the table's own form, where durations are milliseconds without a unit.
std::variant<std::string, problem_text> wire_form(const option_row& option,
                                                  std::string_view value) {
    // "off" is how the table shows a zero that switches something off.
    if (option.zero_is_off && value == "off") return "0";
    if (option.unit == option_unit::share) return without_percent(value);
    if (option.unit != option_unit::duration) return std::string(value);
    const auto read = parse_duration(value);
    if (const auto* why = std::get_if<std::string>(&read)) {
        return problem_text{"the option " + std::string(option.key) + ": " + *why};
    }
    return std::to_string(std::get<std::chrono::milliseconds>(read).count());
}

}  // namespace

bool is_shared_option(const option_row& option) {
    const std::string text = detail::to_text(detail::policy{});
    return (" " + text).find(" " + detail::wire_key(option) + "=") != std::string::npos;
}

std::optional<std::string> assign_option(std::string_view key, std::string_view value,
                                         breaker_options& to) {
    const option_row* const option = detail::find_option(key);
    if (option == nullptr) return no_such_option(key);
    const auto text = wire_form(*option, value);
    if (const auto* why = std::get_if<problem_text>(&text)) return why->sentence;
    breaker_options read = to;  // a bad value may leave half of it behind
    if (!detail::set_from_wire(*option, std::get<std::string>(text), read) ||
        !is_in_range(*option, option->value(read).value_or(0))) {
        return bad_value(*option, value);
    }
    to = read;
    return std::nullopt;
}

std::optional<option_pair> split_pair(std::string_view text) {
    const auto middle = text.find('=');
    if (middle == std::string_view::npos || middle == 0) return std::nullopt;
    return option_pair{text.substr(0, middle), text.substr(middle + 1)};
}

std::string on_wire(const option_row& option, const breaker_options& from) {
    return detail::wire_key(option) + "=" + detail::wire_value(option, from);
}

breaker_options options_of_text(std::string_view text) {
    breaker_options options;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        const auto pair = split_pair(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!pair) continue;
        for (const option_row& o : detail::breaker_option_table()) {
            if (detail::wire_key(o) != pair->key) continue;
            // A newer version's value that does not read here keeps the default.
            static_cast<void>(detail::set_from_wire(o, pair->value, options));
        }
    }
    return options;
}

std::vector<option_shown> shared_options(const breaker_options& of) {
    std::vector<option_shown> shown;
    for (const option_row& o : detail::breaker_option_table()) {
        if (!is_shared_option(o)) continue;
        const double value = o.value(of).value_or(0);
        shown.push_back(
            {o.key, value == 0 && o.zero_is_off ? "off" : detail::value_text(o, value)});
    }
    return shown;
}

std::string differences(const breaker_options& here, const breaker_options& there) {
    const auto ours = shared_options(here);
    const auto theirs = shared_options(there);
    std::string text;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        if (ours[i].value == theirs[i].value) continue;
        text += (text.empty() ? "" : ", ") + std::string(ours[i].key) + " " + ours[i].value +
                " (there " + theirs[i].value + ")";
    }
    return text;
}

}  // namespace trinco::program
