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
#include "core/breaker/messages.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

using trinco::detail::report;

// Names as they are, "PREFIX*", and none for all. Each breaker once, by name; a name that does not
// exist is no problem here. The problem: the store's, or a word that is no name.
[[nodiscard]] std::variant<std::vector<report>, problem> read_reports(
    const store& at, std::span<const std::string> names);

// One breaker; empty when the store has none of this name.
[[nodiscard]] std::variant<std::optional<report>, problem> read_report(const store& at,
                                                                       const std::string& name);

// There is none: says which one may have been meant (64). Also of a record that cannot be read.
[[nodiscard]] problem no_such_breaker(const store& at, const std::string& name);
// The record is there, but damaged or of another version; then only `forget` helps.
[[nodiscard]] bool is_unreadable(const store& at, const std::string& name);

// The store that the flags name. Not opened, and so not made, when one of the words is no name.
[[nodiscard]] std::variant<store, problem> open_breakers(const store_flags& flags,
                                                         std::span<const std::string> names = {});

// Completion of names from the store, as it is when somebody presses the key.
void complete_breakers(arguments& to, std::string_view placeholder, const store_flags& flags);

}  // namespace trinco::program
