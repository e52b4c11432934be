// Asking before something that cannot be taken back.
#pragma once

#include <optional>
#include <string>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

struct confirmation {
    std::string what;                  // "this takes the lock "x" from "vm:12""
    std::string name;                  // what --confirm must say
    bool severe = false;               // at a terminal the name is to be typed, instead of y
    std::optional<std::string> given;  // --confirm
};

// Nothing when it is confirmed: by --confirm, which must be equal to the name, or at a terminal.
// Elsewhere a problem that says how to confirm.
[[nodiscard]] std::optional<problem> not_confirmed(const confirmation& c);

}  // namespace trinco::program
