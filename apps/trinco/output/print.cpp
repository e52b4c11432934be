#include "apps/trinco/output/print.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>
#include <system_error>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program {
namespace {

// Keeps SIGPIPE from this thread, without a change of what the process does with it: that is
// inherited by commands. One that came meanwhile is taken back unless one waited before.
class no_sigpipe {
public:
    no_sigpipe() {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::sigset_t pending;
        ::sigpending(&pending);
        waited_before_ = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~no_sigpipe() {
        const ::timespec at_once{};
        if (!waited_before_) ::sigtimedwait(&pipe_, nullptr, &at_once);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    no_sigpipe(const no_sigpipe&) = delete;
    no_sigpipe& operator=(const no_sigpipe&) = delete;

private:
    ::sigset_t pipe_{};
    ::sigset_t before_{};
    bool waited_before_ = false;
};

bool is_set(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
}

}  // namespace

int write_all(int descriptor, std::string_view text) {
    const no_sigpipe quiet;
    while (!text.empty()) {
        const auto written = ::write(descriptor, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            ::pollfd until{descriptor, POLLOUT, 0};
            if (::poll(&until, 1, -1) < 0 && errno != EINTR) return errno;
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int print(std::string_view text) {
    const int error = write_all(STDOUT_FILENO, text);
    if (error == 0) return exit_ok;
    if (error == EPIPE) return exit_output;
    const std::string why = std::generic_category().message(error);
    return complain({exit_output, "standard output could not be written: " + why});
}

std::optional<terminal_size> size_of_terminal(int descriptor) {
    ::winsize size{};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
    return terminal_size{size.ws_col, size.ws_row};
}

bool is_live_terminal(int descriptor) {
    const char* const kind = std::getenv("TERM");
    const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
    return ::isatty(descriptor) == 1 && !dumb && !is_set("NO_COLOR");
}

}  // namespace trinco::program
