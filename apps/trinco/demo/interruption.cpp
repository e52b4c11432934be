#include "apps/trinco/demo/interruption.hpp"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace trinco::program::demo {
namespace {

constexpr std::array<int, 4> ending = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array<int, 2> ignored = {SIGTSTP, SIGPIPE};

// What a handler may touch.
std::atomic<int> first_signal{0};
std::atomic<int> signals{0};
std::atomic<int> event{-1};
std::array<struct sigaction, NSIG> before{};

// A terminal or a pipe that takes nothing may hold us up, so whoever insists gets the end without
// clearing up.
constexpr int insisting = 3;

void note(int number) {
    const int saved = errno;
    int none = 0;
    first_signal.compare_exchange_strong(none, number);
    const std::uint64_t one = 1;
    if (::write(event.load(), &one, sizeof one) < 0) {
        // Full: it is readable already.
    }
    errno = saved;
}

void on_signal(int number) {
    if (++signals >= insisting) {
        ::signal(number, SIG_DFL);
        ::raise(number);  // takes effect when this returns
    }
    note(number);
}

void handle(int number, void (*handler)(int)) {
    struct sigaction& old = before[static_cast<std::size_t>(number)];
    ::sigaction(number, nullptr, &old);
    if (old.sa_handler == SIG_IGN) return;  // under nohup, say
    struct sigaction with {};
    with.sa_handler = handler;
    with.sa_flags = SA_RESTART;
    ::sigaction(number, &with, nullptr);
}

void restore(int number) {
    ::sigaction(number, &before[static_cast<std::size_t>(number)], nullptr);
}

}  // namespace

interruption::interruption() {
    first_signal = 0;
    signals = 0;
    event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (const int number : ending) handle(number, on_signal);
    for (const int number : ignored) handle(number, SIG_IGN);
}

interruption::~interruption() {
    for (const int number : ending) restore(number);
    for (const int number : ignored) restore(number);
    ::close(event.exchange(-1));
}

void interruption::request(int number) noexcept {
    note(number);
}

int interruption::descriptor() const noexcept {
    return event.load();
}

int interruption::signal() const noexcept {
    return first_signal.load();
}

}  // namespace trinco::program::demo
