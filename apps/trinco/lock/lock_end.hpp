// How a program that ran a command under a lock ends.
#pragma once

#include <optional>

#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// What has to be said has been said.
struct lock_end {
    int code = 0;
    std::optional<command_end> command;  // the code is the command's own: see finish
    int interrupted = 0;                 // by this signal, while it waited
    bool by_key = false;                 // of the terminal
    bool left = true;                    // the store has taken everything back
};

[[nodiscard]] lock_end ended_with(int code);

// Ends the process, with the exit code that fits or by the signal that interrupted it.
[[noreturn]] void end_program(const lock_end& end, const store& at, guardian over,
                              const command_spec& what);

}  // namespace trinco::program
