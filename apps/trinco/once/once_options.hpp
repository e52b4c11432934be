// What `trinco once` is asked for, and what follows from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/problem.hpp"
#include "core/lock/once.hpp"

namespace trinco::program {

struct once_options {
    std::string key;
    std::optional<std::chrono::milliseconds> wait;  // none: for ever
    std::optional<std::chrono::milliseconds> ttl;   // none: that of the settings
    std::chrono::milliseconds keep{24 * 3'600'000};
    std::string fingerprint;
    std::string on_interrupted = "tell";
    bool retry_on_failure = false;
    bool no_output = false;
    std::uint32_t code_not_acquired = exit_not_acquired;
    std::uint32_t code_interrupted = exit_interrupted;
    std::string label;
    bool verbose = false;
    store_flags where;
};

void declare_once_options(arguments& to, once_options& options);

// The options, checked together.
struct once_plan {
    std::string key;  // with the prefix of the settings
    std::optional<std::chrono::milliseconds> wait;
    std::chrono::seconds ttl{0};
    std::chrono::seconds keep{0};
    std::chrono::milliseconds grace{0};
    detail::once_wishes wishes;
    std::string label;
};

// `command`: the user's, for the label.
[[nodiscard]] std::variant<once_plan, problem> plan_of(const once_options& options,
                                                       const settings& with,
                                                       const std::string& command);

}  // namespace trinco::program
