#include "apps/trinco/process/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace trinco::program {

terminal::terminal() : fd_(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)) {}

terminal::~terminal() {
    if (fd_ >= 0) ::close(fd_);
}

::pid_t terminal::foreground() const {
    return fd_ < 0 ? -1 : ::tcgetpgrp(fd_);
}

void terminal::give_to(::pid_t group) const {
    if (fd_ >= 0) ::tcsetpgrp(fd_, group);
}

std::optional<::termios> terminal::mode() const {
    ::termios now{};
    if (fd_ < 0 || ::tcgetattr(fd_, &now) != 0) return std::nullopt;
    return now;
}

void terminal::set_mode(const ::termios& to) const {
    if (fd_ >= 0) ::tcsetattr(fd_, TCSANOW, &to);
}

void give_terminal_back(::pid_t from, ::pid_t to, bool or_nobodys) {
    const terminal terminal;
    const ::pid_t now = terminal.foreground();
    if (now <= 0 || now == to) return;
    if (now == from || (or_nobodys && ::kill(-now, 0) != 0 && errno == ESRCH)) terminal.give_to(to);
}

}  // namespace trinco::program
