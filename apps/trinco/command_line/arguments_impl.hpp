// What the two source files of `arguments` share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
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
    CLI::Option* parsed = nullptr;

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

    CLI::App app{"", "trinco"};
    CLI::Option* help = nullptr;
    std::vector<option> options;
    std::vector<place> places;
    std::vector<std::string> given;  // the words that are no options, in their order
    // How many of them stand before the first unknown option, behind which one may be its value.
    std::optional<std::size_t> given_before_unknown;

    option& add(std::string_view names, std::string_view placeholder, std::string_view help_line,
                take_value take);
    // What the parser does not know, sorted into `given` and the first unknown option.
    std::optional<std::string> sort_rest();
    [[nodiscard]] const option* find(std::string_view name) const;
    [[nodiscard]] problem unknown(const std::string& typed, std::string_view called) const;
    [[nodiscard]] std::optional<problem> take_options();
    [[nodiscard]] std::optional<problem> take_places(std::string_view called);
};

}  // namespace trinco::program
