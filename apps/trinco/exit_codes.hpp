// The codes with which the program ends. Shown by `trinco help exit-codes`. Below 64, and above
// 128 for signals, they are the command's own.
#pragma once

namespace trinco::program {

inline constexpr int exit_ok = 0;
inline constexpr int exit_nothing = 1;  // what was to be shown is not there
inline constexpr int exit_usage = 64;   // EX_USAGE of sysexits.h: command line or file is wrong
inline constexpr int exit_unavailable = 69;   // EX_UNAVAILABLE: the store cannot be used
inline constexpr int exit_output = 74;        // EX_IOERR: standard output could not be written
inline constexpr int exit_not_acquired = 75;  // EX_TEMPFAIL: not acquired in time, or breaker open
inline constexpr int exit_lost = 76;          // the lock was lost while the command ran
inline constexpr int exit_denied = 77;        // EX_NOPERM: the store refuses these rights
inline constexpr int exit_interrupted = 79;   // what was to run once was interrupted; resolve it
inline constexpr int exit_cannot_execute = 126;
inline constexpr int exit_no_such_command = 127;
inline constexpr int exit_signal = 128;  // + n: the command, or the wait for it, ended by signal n

}  // namespace trinco::program
