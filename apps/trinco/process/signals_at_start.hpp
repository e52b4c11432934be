// The signal mask and the ignored signals with which the program began: a command gets them back,
// so that under `nohup`, in cron or in a script that ignores a signal it runs as it would alone.
//
// Of the dispositions the program changes those of CHLD and XFSZ only, until it dies; whoever
// changes another one adds it to the list in signals_at_start.cpp. Handlers end with an exec.
#pragma once

namespace trinco::program {

// Remembers them; the first call counts. Before anything changes a mask or a disposition.
void remember_signals_at_start();
// Whether the program was told to ignore this one. Makes system calls only.
[[nodiscard]] bool was_ignored_at_start(int number);
// In a child between fork and exec: makes system calls only.
void restore_signals_at_start();

// Every signal but those that a fault of the program itself raises, which must not be blocked.
void block_all_signals();

}  // namespace trinco::program
