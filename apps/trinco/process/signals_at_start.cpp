#include "apps/trinco/process/signals_at_start.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace trinco::program {

namespace {

constexpr std::array<int, 6> faults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
// Whose dispositions the program changes. To look at all of them, and to set all of them again, is
// a hundred system calls.
constexpr std::array<int, 2> changed = {SIGCHLD, SIGXFSZ};

bool is_ignored_now(int number) {
    struct sigaction now {};
    return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

struct signals {
    bool known = false;
    sigset_t blocked{};
    sigset_t ignored{};  // of those that are changed
};

constinit signals at_start;

}  // namespace

void remember_signals_at_start() {
    if (at_start.known) return;
    at_start.known = true;
    ::sigprocmask(SIG_SETMASK, nullptr, &at_start.blocked);
    ::sigemptyset(&at_start.ignored);
    for (const int number : changed) {
        if (is_ignored_now(number)) ::sigaddset(&at_start.ignored, number);
    }
}

bool was_ignored_at_start(int number) {
    if (!at_start.known) return false;
    const bool is_changed = std::find(changed.begin(), changed.end(), number) != changed.end();
    return is_changed ? ::sigismember(&at_start.ignored, number) == 1 : is_ignored_now(number);
}

void restore_signals_at_start() {
    for (const int number : changed) {
        struct sigaction action {};
        action.sa_handler = was_ignored_at_start(number) ? SIG_IGN : SIG_DFL;
        ::sigaction(number, &action, nullptr);
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
