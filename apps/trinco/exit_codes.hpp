// The codes with which the program ends. Shown by `trinco help exit-codes`.
#pragma once

namespace trinco::program {

inline constexpr int exit_ok = 0;
inline constexpr int exit_usage = 64;   // EX_USAGE of sysexits.h: the command line is wrong
inline constexpr int exit_output = 74;  // EX_IOERR: standard output could not be written

}  // namespace trinco::program
