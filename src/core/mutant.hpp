// Planted bugs, by which the suites prove that they can fail.
//
//     if (TRINCO_MUTANT("lease_without_era")) return true;
//
// In a normal build the condition is the constant false and nothing remains of it. In a build with
// TRINCO_MUTANTS the environment variable TRINCO_MUTANT names the one that is alive in this
// process.
#pragma once

#if defined(TRINCO_MUTANTS) && TRINCO_MUTANTS
#include <cstdlib>
#include <string_view>

namespace trinco::detail {

[[nodiscard]] inline bool mutant_is(std::string_view name) noexcept {
    static const char* const alive = std::getenv("TRINCO_MUTANT");
    return alive != nullptr && name == alive;
}

}  // namespace trinco::detail

#define TRINCO_MUTANT(name) (::trinco::detail::mutant_is(name))
#else
#define TRINCO_MUTANT(name) (false)
#endif
