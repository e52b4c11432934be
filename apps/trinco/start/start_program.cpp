#include "apps/trinco/start/start_program.hpp"

#include <signal.h>

#include <exception>
#include <string>
#include <vector>

#include "apps/trinco/command_line/command.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/signals_at_start.hpp"
#include "apps/trinco/process/standard_descriptors.hpp"
#include "apps/trinco/start/executables.hpp"

namespace trinco::program {

int start_program(int argc, char** argv) {
    occupy_standard_descriptors();
    remember_signals_at_start();
    remember_words(argv);
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

}  // namespace trinco::program
