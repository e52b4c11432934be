// What the source files of `arguments` share.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/command_line/arguments.hpp"

namespace trinco::program {

// Stores a value, or answers what is wrong with it; "" stands for a flag's presence.
using take_value = std::function<std::optional<std::string>(const std::string&)>;

struct arguments::option {
    std::string names;        // "-o,--output"
    std::string shown;        // "--output", or the short name where there is no long one
    std::string placeholder;  // empty: a flag
    std::string help;
    std::string range;     // in words; empty: none to tell
    std::string standard;  // the default; empty: none to tell
    take_value take;
    std::vector<std::string> words;  // of a choice
    std::function<std::vector<std::string>()> candidates;
    bool is_given = false;            // among the words
    std::vector<std::string> values;  // that were given with it

    [[nodiscard]] bool is_flag() const noexcept { return placeholder.empty(); }
    [[nodiscard]] bool is_called(std::string_view name) const;
};

struct arguments::impl {
    struct place {
        std::string placeholder;
        std::string help;
        std::string standard;
        need how = need::required;
        bool takes_all = false;
        std::function<void(const std::string&)> take;
        std::function<std::vector<std::string>()> candidates;
    };

    std::vector<option> options;
    std::vector<place> places;

    // What was found among the words.
    bool wants_help = false;
    std::vector<std::string> given;            // those that are no options, in their order
    std::optional<std::string> first_unknown;  // option
    // How many are given before that, behind which one may be its value.
    std::optional<std::size_t> given_before_unknown;
    bool lacks_value = false;  // the last word, an option

    option& add(std::string_view names, std::string_view placeholder, std::string_view help_line,
                take_value take);
    using words_left = std::span<const std::string>;
    void sort(words_left words);
    // Of the first of the words; answers what is behind it and its value.
    [[nodiscard]] words_left sort_long(words_left words);
    [[nodiscard]] words_left sort_short(words_left words);
    [[nodiscard]] words_left take_value_of(option& o, words_left behind);
    void note_unknown(std::string word);
    [[nodiscard]] const option* find(std::string_view name) const;
    [[nodiscard]] option* find(std::string_view name);
    [[nodiscard]] problem unknown(const std::string& typed, std::string_view called) const;
    [[nodiscard]] std::optional<problem> take_options();
    [[nodiscard]] std::optional<problem> take_places(std::string_view called);
};

}  // namespace trinco::program
