// The wrapper's side of its guardian.

#include "apps/trinco/process/guardian.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/channel.hpp"
#include "apps/trinco/process/descendants.hpp"
#include "apps/trinco/process/guardian_process.hpp"
#include "apps/trinco/process/signals_at_start.hpp"

namespace trinco::program {

using kind = guardian_event::kind_t;

struct guardian::impl {
    impl(int socket, ::pid_t forked, std::vector<::pid_t> before)
        : channel(socket), process(forked), strangers(std::move(before)) {}
    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;
    ~impl();

    void flush();
    void clean_up();

    int channel;
    ::pid_t process;
    // Children that the program had when it began, of a shell that became it by exec.
    std::vector<::pid_t> strangers;
    ::pid_t group = 0;     // the command's, while it runs
    bool is_over = false;  // the last event was delivered
    // What a guardian that is paused has no room for; sent later.
    std::optional<deadlines> unsent_move;
    std::uint64_t unsent_signals = 0;
};

guardian::impl::~impl() {
    ::close(channel);
    if (process <= 0) return;
    ::kill(process, SIGCONT);  // should somebody have paused it: it has to end
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) clean_up();
}

void guardian::impl::flush() {
    if (unsent_move) {
        const request move{.kind = request::kind_t::move, .until = *unsent_move};
        if (send_request(channel, move) == sent::full) return;
        unsent_move.reset();
    }
    for (int number = 1; unsent_signals != 0 && number <= 64; ++number) {
        const std::uint64_t bit = 1ULL << (number - 1);
        if ((unsent_signals & bit) == 0) continue;
        const request signal{.kind = request::kind_t::signal, .number = number};
        if (send_request(channel, signal) == sent::full) return;
        unsent_signals &= ~bit;
    }
}

void guardian::impl::clean_up() {
    end_all({.group = std::exchange(group, 0), .strangers = strangers});
}

std::variant<guardian, problem> guardian::start(commands of) {
    remember_signals_at_start();
    const channel_ends ends = make_channel();
    if (ends.wrapper < 0) {
        return problem{exit_unavailable, "no guardian for the command could be made: " +
                                             std::generic_category().message(errno)};
    }
    // Orphans come to the wrapper when the guardian is gone.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::vector<::pid_t> strangers;
    siginfo_t child{};
    if (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0) {
        strangers = descendants_of(::getpid());
    }
    const ::pid_t wrapper = ::getpid();
    const ::pid_t process = ::fork();
    if (process == 0) {
        // By name: it may be one of the first three, and while it is open here the channel does not
        // end with the wrapper.
        ::close(ends.wrapper);
        guardian_process(ends.guardian, wrapper, of).run();
    }
    const int error = errno;
    ::close(ends.guardian);
    if (process < 0) {
        ::close(ends.wrapper);
        return problem{exit_unavailable, "no process for the command's guardian could be made: " +
                                             std::generic_category().message(error)};
    }
    return guardian(std::make_unique<impl>(ends.wrapper, process, std::move(strangers)));
}

guardian::guardian(std::unique_ptr<impl> what) noexcept : impl_(std::move(what)) {}
guardian::guardian(guardian&&) noexcept = default;
guardian& guardian::operator=(guardian&&) noexcept = default;
guardian::~guardian() = default;

std::error_code guardian::run(const command_spec& what) {
    if (what.words.empty()) return std::make_error_code(std::errc::invalid_argument);
    // What the one before was still to be told is not for this one.
    impl_->unsent_move.reset();
    impl_->unsent_signals = 0;
    impl_->is_over = impl_->process == 0;
    if (send_run(impl_->channel, what) == sent::yes) return {};
    return std::make_error_code(std::errc::broken_pipe);
}

void guardian::move(const deadlines& to) {
    impl_->unsent_move = to;
    impl_->flush();
}

void guardian::signal(int number) {
    if (number <= 0 || number > 64) return;
    impl_->unsent_signals |= 1ULL << (number - 1);
    impl_->flush();
}

void guardian::take_over() {
    if (impl_->is_over) return;
    if (impl_->group > 0) ::kill(-impl_->group, SIGKILL);
    ::kill(impl_->process, SIGKILL);
}

int guardian::descriptor() const noexcept {
    return impl_->channel;
}

std::optional<guardian_event> guardian::next() {
    if (impl_->is_over) return std::nullopt;
    impl_->flush();
    const received_event received = receive_event(impl_->channel);
    if (received.closed) {
        impl_->clean_up();
        impl_->process = 0;  // reaped with the others
        impl_->is_over = true;
        return guardian_event{.kind = kind::gone};
    }
    if (!received.event) return std::nullopt;
    switch (received.event->kind) {
        case kind::started: impl_->group = received.event->pid; break;
        case kind::ended: impl_->group = 0; break;
        case kind::refused:
        case kind::alone: impl_->is_over = true; break;
        default: break;
    }
    return received.event;
}

}  // namespace trinco::program
