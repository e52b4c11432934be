// One `trinco elect`, once it is known what is wanted: stands, runs the command while it leads,
// stands again when the lead is lost, and ends the program when the command ends by itself.
#pragma once

#include "apps/trinco/elect/elect_options.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// The process ends here, with the exit code that fits, or by the signal that interrupted it; or it
// goes on as a new program that stands again, see elect_run.cpp. `over`: made for several commands.
[[noreturn]] void run_while_leading(const elect_options& options, const lock_plan& plan,
                                    const store& at, guardian over, signal_desk& desk,
                                    const command_spec& what);

}  // namespace trinco::program
