#include "apps/trinco/lock/ending_signals.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>

namespace trinco::program {
namespace {

constexpr std::array<int, 4> ending = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

}  // namespace

bool is_ending_signal(int number) noexcept {
    return std::find(ending.begin(), ending.end(), number) != ending.end();
}

ending_signals_allowed::ending_signals_allowed(bool hang_up) noexcept : before_{} {
    ::sigset_t allowed{};
    ::sigemptyset(&allowed);
    for (const int number : ending) ::sigaddset(&allowed, number);
    if (!hang_up) ::sigdelset(&allowed, SIGHUP);
    ::sigaddset(&allowed, SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &allowed, &before_);
}

ending_signals_allowed::~ending_signals_allowed() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void die_of(int number) noexcept {
    const ::rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(number, SIG_DFL);
    ::sigset_t only{};
    ::sigemptyset(&only);
    ::sigaddset(&only, number);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(number);
}

}  // namespace trinco::program
