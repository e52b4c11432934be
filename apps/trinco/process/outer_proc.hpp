// Processes seen through a /proc that belongs to an outer PID namespace, as in `unshare --pid`
// without `--mount-proc`: its numbers are not ours. Whoever takes them for ours misses descendants
// and signals strangers. What is told here are our numbers.
#pragma once

#include <sys/types.h>

#include <vector>

namespace trinco::program {

// Whether /proc is there and has other numbers than ours.
[[nodiscard]] bool is_proc_of_others();

// As descendants_of and state_of, for the caller and its descendants; none and '\0' for others.
[[nodiscard]] std::vector<::pid_t> descendants_in_outer_proc(::pid_t root);
[[nodiscard]] char state_in_outer_proc(::pid_t process);

}  // namespace trinco::program
