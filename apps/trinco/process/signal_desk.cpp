#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "apps/trinco/process/signals_at_start.hpp"
#include "apps/trinco/process/supervise.hpp"

namespace trinco::program {

namespace {

// Never passed on: the first is how the program learns of its own children.
constexpr std::array<int, 7> not_ours = {SIGCHLD, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};

}  // namespace

signal_desk::signal_desk() {
    remember_signals_at_start();
    block_all_signals();
    ::signal(SIGCHLD, SIG_DFL);  // ignored, nothing would be left to wait for
    sigset_t ours;
    ::sigfillset(&ours);
    for (const int number : not_ours) ::sigdelset(&ours, number);
    for (int number = 1; number <= SIGRTMAX; ++number) {
        if (was_ignored_at_start(number)) ::sigdelset(&ours, number);
    }
    fd_ = ::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

signal_desk::~signal_desk() {
    if (fd_ >= 0) ::close(fd_);
}

int signal_desk::descriptor() const noexcept {
    return fd_;
}

std::optional<int> signal_desk::next() {
    ::signalfd_siginfo info{};
    while (::read(fd_, &info, sizeof info) == sizeof info) {
        // PIPE or XFSZ for what the program itself wrote is nothing to the command.
        if (info.ssi_pid == static_cast<std::uint32_t>(::getpid())) continue;
        came_from_terminal_ = info.ssi_code == SI_KERNEL;
        return static_cast<int>(info.ssi_signo);
    }
    return std::nullopt;
}

}  // namespace trinco::program
