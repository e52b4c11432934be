// Starts the user's command as a child of the guardian.
#pragma once

#include <sys/types.h>

#include <vector>

namespace trinco::program {

struct starting {
    ::pid_t process = 0;  // leader of its process group
    int answer = -1;      // readable: an int, the errno of exec; or the end, and the command runs
    int error = 0;        // there is no process
};

// `words` is looked for in PATH unless it has a slash; `environment` holds "name=value", added to
// what we were given. `keep_open` (-1: none) is inherited, with a number that scripts do not use.
// No other descriptor of ours is, because all are close-on-exec; what the user's shell gave us
// stays.
[[nodiscard]] starting start_command(const std::vector<const char*>& words,
                                     const std::vector<const char*>& environment, int keep_open);

}  // namespace trinco::program
