// The program: what it does is in command_line/command.hpp.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <vector>

#include "apps/trinco/command_line/command.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/signals_at_start.hpp"
#include "apps/trinco/process/standard_descriptors.hpp"

namespace {

// The number of a standard descriptor that the caller has closed would be given to the next file
// that is opened, the store's say, and be written to. It is taken by something that can neither be
// read nor written as that one is; the user's command finds it closed as before.
void take_closed_descriptors() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        static_cast<void>(
            ::open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC));
    }
}

}  // namespace

int main(int argc, char** argv) {
    using namespace trinco::program;
    take_closed_descriptors();
    remember_signals_at_start();
    // A file that may not grow is an error to tell, and nothing to die of. The user's command gets
    // the signal as it was.
    ::signal(SIGXFSZ, SIG_IGN);
    try {
        return run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
    } catch (const std::exception& error) {
        // Memory, threads or descriptors are used up: what is left of errors that are no values.
        return complain({exit_unavailable, std::string("the system refused: ") + error.what()});
    }
}
