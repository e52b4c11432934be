// The TTL that a lock, an election and a run of 'trinco once' ask for: --ttl, or the setting
// locks.ttl, with the same limits.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program {

// `help` says what it means to the command; its limits and what holds without it are added.
void declare_ttl(arguments& to, std::optional<std::chrono::milliseconds>& ttl,
                 std::string_view help);

// What is asked for: the option where it was given, else the setting.
[[nodiscard]] std::variant<std::chrono::seconds, problem> ttl_of(
    const std::optional<std::chrono::milliseconds>& option, const settings& with);

// The setting's text ("30s"), or a sentence about it.
[[nodiscard]] std::variant<std::chrono::seconds, std::string> parse_ttl(std::string_view text);

}  // namespace trinco::program
