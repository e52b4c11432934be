#include "apps/trinco/process/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace trinco::program {

void occupy_standard_descriptors() noexcept {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
        if (::fcntl(number, F_GETFD) >= 0) continue;
        const int direction = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;  // the useless one
        // The system gives the lowest number that is free: this one.
        [[maybe_unused]] const int same = ::open("/dev/null", direction | O_CLOEXEC);
    }
}

}  // namespace trinco::program
