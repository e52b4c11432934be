// The names that a store knows right now: for completion.
#pragma once

#include <string>
#include <vector>

#include "apps/trinco/config/settings.hpp"

namespace trinco::program {

// Names of locks that are held or waited for, without the settings' prefix; names of breakers. In
// their order, each once, at most some hundred; never one that is no name, which a shell might take
// for more. Within a second and without a word: whatever goes wrong, there are none.
[[nodiscard]] std::vector<std::string> live_locks(const store_flags& flags);
[[nodiscard]] std::vector<std::string> live_breakers(const store_flags& flags);

}  // namespace trinco::program
