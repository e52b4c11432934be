// What lies under the keys of a breaker in Redis and is of another type than a breaker's: nobody
// can use the breaker until it is gone.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program {

// Removes it, whatever it is, in one step with finding out that it is no breaker's. The keys that
// were removed; the problem: why none was.
[[nodiscard]] std::variant<std::vector<std::string>, problem> remove_foreign_keys(
    const settings& with, const std::string& breaker);

}  // namespace trinco::program
