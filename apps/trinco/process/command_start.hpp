// Starts the user's command as a child of the guardian.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace trinco::program {

// `words` is looked for in PATH unless it has a slash; `environment` holds "name=value", added to
// what we were given. `keep_open` (-1: none) is inherited, with a number that scripts do not use.
// No other descriptor of ours is, because all are close-on-exec; what the user's shell gave us
// stays.
struct new_command {
    std::vector<const char*> words;
    std::vector<const char*> environment;
    int keep_open = -1;
};

struct starting {
    ::pid_t process = 0;  // leader of its process group
    int answer = -1;      // readable: an int, the errno of exec; or the end, and the command runs
    int error = 0;        // there is no process
};

[[nodiscard]] starting start_command(const new_command& what);

// For a command that is still to be told: makes the process first, and asks `told` there what to
// become. That runs in our memory while we are held, so it must not take long. Told nothing, the
// process ends, and is gone when this returns without one.
[[nodiscard]] starting start_when_told(const std::function<const new_command*()>& told);

}  // namespace trinco::program
