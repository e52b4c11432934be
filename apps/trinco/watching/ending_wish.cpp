#include "apps/trinco/watching/ending_wish.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace trinco::program {
namespace {

bool is_ignored(int number) {
    struct ::sigaction now {};
    return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

ending_wish::ending_wish() {
    ::sigset_t ending{};
    ::sigemptyset(&ending);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
        // A blocked one would come even though it is ignored.
        if (!is_ignored(number)) ::sigaddset(&ending, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
    fd_ = ::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

ending_wish::~ending_wish() {
    // What came is taken, or it would end the program when it is no longer blocked.
    static_cast<void>(signal());
    ::close(fd_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int ending_wish::signal() noexcept {
    ::signalfd_siginfo said{};
    while (::read(fd_, &said, sizeof said) == static_cast<::ssize_t>(sizeof said)) {
        if (came_ == 0) came_ = static_cast<int>(said.ssi_signo);
    }
    return came_;
}

}  // namespace trinco::program
