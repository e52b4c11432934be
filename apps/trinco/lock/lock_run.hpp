// One `trinco lock`, once it is known what is wanted: waits for the lock, runs the command under
// it, gives it back, and ends the program.
#pragma once

#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// The process ends here, with the exit code that fits, or by the signal that interrupted it.
[[noreturn]] void run_under_lock(const lock_options& options, const lock_plan& plan,
                                 const store& at, guardian over, signal_desk& desk,
                                 const command_spec& what);

}  // namespace trinco::program
