// How the programs begin that run a command under a lock, an election or a key.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct outset {
    guardian over;
    command_spec what;  // its words
    store at;
};

// The guardian first, as long as there is no thread; then the store, by `open`: meanwhile signals
// end this program.
[[nodiscard]] std::variant<outset, problem> set_out(
    std::span<const std::string> words, guardian::commands many,
    const std::function<std::variant<store, problem>()>& open);

}  // namespace trinco::program
