// What `trinco elect` is asked for, and what follows from it.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program {

struct elect_options {
    lock_options as_lock;              // what it has in common with a lock, its name too
    std::optional<std::string> value;  // none: host, process and command
    bool observe = false;
    std::string format = "table";  // of what is observed
};

void declare_elect_options(arguments& to, elect_options& options);

// The options, checked together, of a candidate. `command`: the user's.
[[nodiscard]] std::variant<lock_plan, problem> plan_of(const elect_options& options,
                                                       const settings& with,
                                                       const std::string& command);
// The same of an observer: the election's name with the prefix.
[[nodiscard]] std::variant<std::string, problem> observed_name(const elect_options& options,
                                                               const std::string& prefix);

}  // namespace trinco::program
