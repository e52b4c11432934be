// What main is, in both executables (start/executables.hpp).
#pragma once

namespace trinco::program {

// Runs what the words say (command_line/command.hpp) and returns the exit code.
int start_program(int argc, char** argv);

}  // namespace trinco::program
