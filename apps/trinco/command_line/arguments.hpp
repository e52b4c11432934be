// What a command takes: options and positionals, bound to variables.
//
//     void declare(arguments& to) override {
//         to.positional("NAME", name_, "the lock");
//         to.duration("--wait", wait_, {0ms, 365 * 24h}, "how long to wait for it");
//         to.flag("--shared", shared_, "with other shared holders");
//         to.store_options(where_);
//     }
//
// Every mistake becomes one sentence with the word, what is allowed, and the nearest option that
// exists. "--option value" and "--option=value" both work, as do "-o value", "-ovalue" and, for
// flags, "-ab" instead of "-a -b". Defaults are the variables' values at the time of declaring, and
// help shows them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

struct store_flags;  // config/settings.hpp

class arguments {
public:
    using milliseconds = std::chrono::milliseconds;

    arguments();
    ~arguments();
    arguments(const arguments&) = delete;
    arguments& operator=(const arguments&) = delete;

    // `names`: "-o,--output" or "--wait". `help`: half a sentence, without a full stop.
    void flag(std::string_view names, bool& to, std::string_view help);
    void text(std::string_view names, std::string& to, std::string_view placeholder,
              std::string_view help);
    void optional_text(std::string_view names, std::optional<std::string>& to,
                       std::string_view placeholder, std::string_view help);
    // One of some words. Anything else is answered with the list.
    void choice(std::string_view names, std::string& to, std::span<const std::string_view> words,
                std::string_view help);
    template <class T>
    struct range {
        T lowest;
        T highest;
    };
    // As duration.hpp reads it: a number and a unit. Without a unit: "30 has no unit; 30s, 30ms..."
    void duration(std::string_view names, milliseconds& to, range<milliseconds> allowed,
                  std::string_view help);
    void optional_duration(std::string_view names, std::optional<milliseconds>& to,
                           range<milliseconds> allowed, std::string_view help);
    void number(std::string_view names, std::uint32_t& to, range<std::uint32_t> allowed,
                std::string_view help);
    void optional_number(std::string_view names, std::optional<std::uint32_t>& to,
                         range<std::uint32_t> allowed, std::string_view help);
    // A share or a factor.
    void optional_real(std::string_view names, std::optional<double>& to, range<double> allowed,
                       std::string_view help);
    // Required unless `optional`. In the order of declaring.
    enum class need : std::uint8_t { required, optional };
    void positional(std::string_view placeholder, std::string& to, std::string_view help,
                    need n = need::required);
    // All that remain.
    void positionals(std::string_view placeholder, std::vector<std::string>& to,
                     std::string_view help, need n = need::required);

    // -o,--output table|json|name, for commands that print rows.
    void output_option(std::string& to);
    // --config, --breakers, --locks, --namespace, --prefix, --instance: those that this command
    // can use. See config/settings.hpp.
    enum class stores : std::uint8_t { breakers, locks, both };
    void store_options(store_flags& to, stores which);

    // Candidates for completion of a positional or an option's value: words, or live names.
    void complete_with(std::string_view placeholder_or_option,
                       std::function<std::vector<std::string>()> candidates);

    // Reads the words (without the command's own name, and without "--" and what follows). The
    // problem has code 64. `called`: "lock", "locks show", for messages.
    [[nodiscard]] std::optional<problem> parse(std::span<const std::string> words,
                                               std::string_view called = {});
    // Whether --help was among the words; parse answers no problem then.
    [[nodiscard]] bool wants_help() const;
    // The first word that is one positional too many; parse answers a problem then. None where it
    // may be the value of an option that is not known.
    [[nodiscard]] std::optional<std::string> surplus() const;
    // How many positionals were among the words.
    [[nodiscard]] std::size_t positional_count() const;
    // The list of options and positionals, as `--help` prints it below usage and summary.
    [[nodiscard]] std::string help_text() const;
    // For completion: the names of all options, candidates for the value of `option` (nothing when
    // there is none, or it takes none), or for the nth positional. After parse, however that went:
    // candidates may depend on --config and its like.
    [[nodiscard]] std::vector<std::string> option_names() const;
    [[nodiscard]] bool takes_value(std::string_view option) const;
    [[nodiscard]] std::vector<std::string> candidates_for(std::string_view option) const;
    [[nodiscard]] std::vector<std::string> candidates_for(std::size_t positional) const;

private:
    struct option;
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace trinco::program
