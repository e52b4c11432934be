#include "apps/trinco/command_line/arguments.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "apps/trinco/command_line/arguments_impl.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/command_line/percent.hpp"
#include "apps/trinco/config/settings.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using std::chrono::milliseconds;

// "table, json or name"
std::string one_of(std::span<const std::string> words) {
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
        list += words[i];
    }
    return list;
}

std::string real_text(double value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    return {digits.data(), end.ptr};
}

// The whole text as a number, or nothing.
template <class T>
std::optional<T> number_in(std::string_view text) {
    T value{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

using maybe_sentence = std::optional<std::string>;

template <class T>
maybe_sentence read_number(const std::string& text, arguments::range<T> allowed,
                           const std::string& range, T& to) {
    const auto value = number_in<T>(std::is_floating_point_v<T> ? without_percent(text) : text);
    if (!value || !(*value >= allowed.lowest && *value <= allowed.highest)) {
        return detail::quoted(text) + " is not a number of " + range;
    }
    to = *value;
    return std::nullopt;
}

maybe_sentence read_duration(const std::string& text, arguments::range<milliseconds> allowed,
                             const std::string& range, milliseconds& to) {
    const auto read = parse_duration(text);
    if (const auto* const wrong = std::get_if<std::string>(&read)) {
        return text.starts_with('-') ? *wrong + "; it is " + range : *wrong;
    }
    const milliseconds value = std::get<milliseconds>(read);
    if (value < allowed.lowest || value > allowed.highest) {
        return detail::quoted(text) + " is outside of " + range;
    }
    to = value;
    return std::nullopt;
}

std::string range_of(arguments::range<milliseconds> allowed) {
    return duration_option(allowed.lowest) + " to " + duration_option(allowed.highest);
}
std::string range_of(arguments::range<std::uint32_t> allowed) {
    return std::to_string(allowed.lowest) + " to " + std::to_string(allowed.highest);
}
std::string range_of(arguments::range<double> allowed) {
    return real_text(allowed.lowest) + " to " + real_text(allowed.highest);
}

// Wraps a reader of T into one of optional<T>.
template <class T, class Read>
take_value into_optional(std::optional<T>& to, Read read) {
    return [&to, read](const std::string& text) -> maybe_sentence {
        T value{};
        if (auto wrong = read(text, value)) return wrong;
        to = value;
        return std::nullopt;
    };
}

}  // namespace

arguments::arguments() : impl_(std::make_unique<impl>()) {}
arguments::~arguments() = default;

void arguments::flag(std::string_view names, bool& to, std::string_view help) {
    impl_->add(names, "", help, [&to](const std::string&) {
        to = true;
        return maybe_sentence();
    });
}

void arguments::text(std::string_view names, std::string& to, std::string_view placeholder,
                     std::string_view help) {
    impl_
        ->add(names, placeholder, help,
              [&to](const std::string& text) {
                  to = text;
                  return maybe_sentence();
              })
        .standard = to;
}

void arguments::optional_text(std::string_view names, std::optional<std::string>& to,
                              std::string_view placeholder, std::string_view help) {
    impl_->add(names, placeholder, help, [&to](const std::string& text) {
        to = text;
        return maybe_sentence();
    });
}

void arguments::choice(std::string_view names, std::string& to,
                       std::span<const std::string_view> words, std::string_view help) {
    const std::vector<std::string> known(words.begin(), words.end());
    std::string placeholder;
    for (const std::string& word : known) placeholder += (placeholder.empty() ? "" : "|") + word;
    option& made = impl_->add(names, placeholder, help, [&to, known](const std::string& text) {
        if (std::find(known.begin(), known.end(), text) == known.end()) {
            return maybe_sentence(detail::quoted(text) + " is not known; it is " + one_of(known));
        }
        to = text;
        return maybe_sentence();
    });
    made.standard = to;
    made.words = known;
}

void arguments::duration(std::string_view names, milliseconds& to, range<milliseconds> allowed,
                         std::string_view help) {
    const std::string limits = range_of(allowed);
    option& made = impl_->add(names, "DURATION", help, [&to, allowed, limits](const auto& text) {
        return read_duration(text, allowed, limits, to);
    });
    made.range = limits;
    made.standard = duration_option(to);
}

void arguments::optional_duration(std::string_view names, std::optional<milliseconds>& to,
                                  range<milliseconds> allowed, std::string_view help) {
    const std::string limits = range_of(allowed);
    impl_
        ->add(names, "DURATION", help,
              into_optional(to,
                            [allowed, limits](const std::string& text, milliseconds& value) {
                                return read_duration(text, allowed, limits, value);
                            }))
        .range = limits;
}

void arguments::number(std::string_view names, std::uint32_t& to, range<std::uint32_t> allowed,
                       std::string_view help) {
    const std::string limits = range_of(allowed);
    option& made = impl_->add(names, "NUMBER", help, [&to, allowed, limits](const auto& text) {
        return read_number(text, allowed, limits, to);
    });
    made.range = limits;
    made.standard = std::to_string(to);
}

void arguments::optional_number(std::string_view names, std::optional<std::uint32_t>& to,
                                range<std::uint32_t> allowed, std::string_view help) {
    const std::string limits = range_of(allowed);
    impl_
        ->add(names, "NUMBER", help,
              into_optional(to,
                            [allowed, limits](const std::string& text, std::uint32_t& value) {
                                return read_number(text, allowed, limits, value);
                            }))
        .range = limits;
}

void arguments::optional_real(std::string_view names, std::optional<double>& to,
                              range<double> allowed, std::string_view help) {
    const std::string limits = range_of(allowed);
    impl_
        ->add(names, "NUMBER", help,
              into_optional(to,
                            [allowed, limits](const std::string& text, double& value) {
                                return read_number(text, allowed, limits, value);
                            }))
        .range = limits;
}

void arguments::positional(std::string_view placeholder, std::string& to, std::string_view help,
                           need n) {
    impl_->places.push_back({std::string(placeholder), std::string(help), to, n, false,
                             [&to](const std::string& word) { to = word; }, nullptr});
}

void arguments::positionals(std::string_view placeholder, std::vector<std::string>& to,
                            std::string_view help, need n) {
    impl_->places.push_back({std::string(placeholder), std::string(help), "", n, true,
                             [&to](const std::string& word) { to.push_back(word); }, nullptr});
}

void arguments::output_option(std::string& to) {
    constexpr std::array<std::string_view, 3> formats = {"table", "json", "name"};
    choice("-o,--output", to, formats, "how rows are printed");
}

void arguments::store_options(store_flags& to, stores which) {
    const bool breakers = which != stores::locks;
    const bool locks = which != stores::breakers;
    optional_text("--config", to.config, "FILE", "configuration; see 'trinco help config'");
    if (breakers) {
        optional_text("--breakers", to.breakers, "URL",
                      "where breakers are kept; 'trinco help urls'");
        optional_text("--namespace", to.name_space, "NAME", "whose breakers: an environment's");
        optional_text("--instance", to.instance, "NAME", "the failure domain this counts as");
    }
    if (locks) {
        optional_text("--locks", to.locks, "URL", "where locks are kept; 'trinco help urls'");
        optional_text("--prefix", to.prefix, "TEXT", "put before the name of every lock");
    }
}

void arguments::complete_with(std::string_view placeholder_or_option,
                              std::function<std::vector<std::string>()> candidates) {
    for (option& o : impl_->options) {
        if (o.is_called(placeholder_or_option)) o.candidates = candidates;
    }
    for (impl::place& p : impl_->places) {
        if (p.placeholder == placeholder_or_option) p.candidates = candidates;
    }
}

bool arguments::wants_help() const {
    return impl_->wants_help;
}

std::optional<std::string> arguments::surplus() const {
    const bool takes_all = !impl_->places.empty() && impl_->places.back().takes_all;
    const std::size_t certain = impl_->given_before_unknown.value_or(impl_->given.size());
    if (takes_all || certain <= impl_->places.size()) return std::nullopt;
    return impl_->given[impl_->places.size()];
}

std::size_t arguments::positional_count() const {
    return impl_->given.size();
}

}  // namespace trinco::program
