#include "apps/trinco/process/signals_at_start.hpp"

#include <array>
#include <csignal>

namespace trinco::program {

namespace {

constexpr std::array<int, 6> faults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};

struct signals {
    bool known = false;
    sigset_t blocked{};
    sigset_t ignored{};
};

constinit signals at_start;

}  // namespace

void remember_signals_at_start() {
    if (at_start.known) return;
    at_start.known = true;
    ::sigprocmask(SIG_SETMASK, nullptr, &at_start.blocked);
    ::sigemptyset(&at_start.ignored);
    for (int number = 1; number <= SIGRTMAX; ++number) {
        struct sigaction now {};
        if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
            ::sigaddset(&at_start.ignored, number);
        }
    }
}

bool was_ignored_at_start(int number) {
    return at_start.known && ::sigismember(&at_start.ignored, number) == 1;
}

void restore_signals_at_start() {
    for (int number = 1; number <= SIGRTMAX; ++number) {
        struct sigaction action {};
        action.sa_handler = was_ignored_at_start(number) ? SIG_IGN : SIG_DFL;
        ::sigaction(number, &action, nullptr);  // fails for those that nobody can change
    }
    ::sigprocmask(SIG_SETMASK, &at_start.blocked, nullptr);
}

void block_all_signals() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : faults) ::sigdelset(&all, fault);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace trinco::program
