// The processes below this one, and how to end them all.
//
// Orphans stay in reach because the caller is a child subreaper: whatever a command starts, and
// however it detaches, ends up as a child of the caller when its parents are gone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace trinco::program {

// Parents before children, zombies included. Processes that come and go meanwhile may be missed:
// ask until the answer is empty.
[[nodiscard]] std::vector<::pid_t> descendants_of(::pid_t root);
// The same from a look at every process, for kernels that keep no lists of children.
[[nodiscard]] std::vector<::pid_t> descendants_by_scan(::pid_t root);

// The state of the process as a letter of proc(5): Z is a zombie; '\0' when there is none.
[[nodiscard]] char state_of(::pid_t process);

// Sends a signal to every descendant of the caller but those in `group`, which got it already; 0:
// to all.
void signal_descendants(int number, ::pid_t group);

struct ending {
    ::pid_t group = 0;  // killed first and at once; 0: none
    std::vector<::pid_t>
        strangers{};  // children that the caller had before: left alone, with theirs
    std::function<void(::pid_t, int)> on_reaped{};  // process and status, as of waitpid
};

// Kills, and goes on until no descendant is left. Processes that do not end though they were killed
// (in the middle of a system call that hangs, or of another user) are named on standard error after
// two seconds, and tried again.
void end_all(const ending& how);

}  // namespace trinco::program
