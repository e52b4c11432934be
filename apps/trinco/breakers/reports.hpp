// What a store knows of its breakers, for the commands that look at them and change them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/stores/breaker_trouble.hpp"
#include "core/breaker/messages.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

using trinco::detail::report;

// A store of breakers that is open, how a command line names it: " --breakers URL", and the
// settings that name it: a configuration that comes through a pipe can be read once.
struct breakers_place {
    store at;
    std::string words;
    settings with;
};

// The store that the settings name. Not opened, and so not made, when one of the words is no name.
[[nodiscard]] std::variant<breakers_place, problem> open_breakers(
    const settings& with, std::span<const std::string> names = {});
// The same, of settings_for(flags).
[[nodiscard]] std::variant<breakers_place, problem> open_breakers(
    const store_flags& flags, std::span<const std::string> names = {});

// Names as they are, "PREFIX*", and none for all. Each breaker once, by name; a name that does not
// exist is no problem here, and one whose record cannot be read is a row with an error
// (report::now). The problem: the store's, or a word that is no name. `action` is what it names:
// "trip the breaker pay".
[[nodiscard]] std::variant<std::vector<report>, problem> read_reports(
    const breakers_place& in, std::span<const std::string> names, std::string_view action);

// One breaker; empty when the store has none of this name. A record that cannot be read is a
// problem.
[[nodiscard]] std::variant<std::optional<report>, problem> read_report(const breakers_place& in,
                                                                       const std::string& name,
                                                                       std::string_view action);

// There is none: says which one may have been meant (64). Also of a record that cannot be read.
[[nodiscard]] problem no_such_breaker(const breakers_place& in, const std::string& name);
// Why the record cannot be read, though something is there: conflict (of another kind), unavailable
// (damaged), not_supported (of a later version). No error: it can, or there is none.
[[nodiscard]] std::error_code unreadable(const store& at, const std::string& name);
// The same as a sentence without a name: "something else than a breaker lives under its keys".
[[nodiscard]] std::string unreadable_text(const std::error_code& why);

// The store did not do it: breaker_problem, and, while a server is away, how to look at what stands
// in for it on this machine.
[[nodiscard]] problem not_done(const breakers_place& in, std::string_view action, asked for_what,
                               const std::error_code& error);

// Completion of names from the store, as it is when somebody presses the key.
void complete_breakers(arguments& to, std::string_view placeholder, const store_flags& flags);

}  // namespace trinco::program
