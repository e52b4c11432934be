// One `trinco once`, once it is known what is wanted: finds out whether it is done, runs the
// command when it is not, records how it ended, and ends the program.
//
// A command that ends by itself is recorded: done with code 0, else failed, with what it wrote. One
// that could not be started has done nothing, and is recorded as undone. One that ended by a
// signal, whoever sent it, may have done it or not: it stays what it is for everybody else,
// interrupted.
#pragma once

#include "apps/trinco/once/once_options.hpp"
#include "apps/trinco/once/output_tap.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// The process ends here, with the exit code that fits, or by the signal that interrupted it. `tap`
// is null when the output is not to be kept; else the guardian was forked with it.
[[noreturn]] void run_once(const once_options& options, const once_plan& plan, const store& at,
                           guardian over, output_tap* tap, signal_desk& desk, command_spec what);

}  // namespace trinco::program
