#include "apps/trinco/process/guardian_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "apps/trinco/process/descendants.hpp"
#include "apps/trinco/process/signals_at_start.hpp"
#include "apps/trinco/process/terminal.hpp"

namespace trinco::program {

namespace {

using detail::boot_clock;
using kind = guardian_event::kind_t;

// Sent by the kernel when the wrapper dies; comes on top of the end of the channel.
constexpr int parent_died = SIGTERM;

// Longer than most take that need not wait, too short for anybody to notice that the guardian is
// held meanwhile.
constexpr auto stand_by_for = std::chrono::milliseconds(20);

// What the wrapper opened for itself is close-on-exec, which only exec would close. The system
// gives out the lowest number that is free, and the wrapper has opened a few files before this:
// beyond so many free numbers in a row there is none of them. To ask each number takes a tenth of
// the time of reading /proc/self/fd.
void close_what_is_the_wrappers(int channel) {
    constexpr int row = 64;
    for (int descriptor = STDERR_FILENO + 1, unused = 0; unused < row; ++descriptor) {
        const int flags = ::fcntl(descriptor, F_GETFD);
        unused = flags < 0 ? unused + 1 : 0;
        const bool is_theirs = flags >= 0 && (flags & FD_CLOEXEC) != 0 && descriptor != channel;
        if (is_theirs) ::close(descriptor);
    }
}

int make_signalfd() {
    sigset_t interesting;
    ::sigemptyset(&interesting);
    ::sigaddset(&interesting, SIGCHLD);
    ::sigaddset(&interesting, parent_died);
    return ::signalfd(-1, &interesting, SFD_CLOEXEC | SFD_NONBLOCK);
}

void hang_up(::pid_t process) {
    ::kill(process, SIGHUP);
    ::kill(process, SIGCONT);
}

// What the command leaves behind. Who is stopped would stay so for ever, as its shell is gone; the
// kernel says HUP and CONT to such a job, but not while it has a parent in the session: us.
std::uint32_t settle_leftovers() {
    siginfo_t child{};
    if (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0) return 0;  // no child at all
    std::uint32_t living = 0;
    for (const ::pid_t process : descendants_of(::getpid())) {
        const char state = state_of(process);
        if (state == 'T') hang_up(process);
        if (state != 'Z' && state != '\0') ++living;
    }
    return living;
}

// Refers to the text.
new_command command_of(const request& what, std::string_view text) {
    new_command command;
    command.words = strings_of(text);
    command.environment.assign(command.words.begin() + what.words, command.words.end());
    command.words.resize(what.words);
    return command;
}

itimerspec at(boot_clock::time_point when) {
    // Zero would switch the timer off.
    const auto since_boot = std::max<std::int64_t>(when.time_since_epoch().count(), 1);
    itimerspec time{};
    time.it_value.tv_sec = since_boot / 1'000'000'000;
    time.it_value.tv_nsec = since_boot % 1'000'000'000;
    return time;
}

}  // namespace

guardian_process::guardian_process(int channel, ::pid_t wrapper, guardian::commands of)
    : channel_(channel),
      wrapper_(wrapper),
      wrapper_group_(::getpgrp()),
      is_for_several_(of == guardian::commands::several) {
    ::setpgid(0, 0);
    block_all_signals();
    ::signal(SIGCHLD, SIG_DFL);  // ignored, the kernel would reap and tell nothing
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_PDEATHSIG, parent_died);
    ::prctl(PR_SET_NAME, "trinco-guardian");
    close_what_is_the_wrappers(channel);
    signals_ = make_signalfd();
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void guardian_process::run() {
    stand_by();
    while (!is_done_ || !unsent_.empty()) {
        if (is_wrapper_gone()) leave();
        wait();
    }
    ::_exit(0);
}

bool guardian_process::is_wrapper_gone() const {
    return ::getppid() != wrapper_;
}

void guardian_process::leave() {
    if (command_ != 0) {
        // At once: a script around the wrapper goes on now, and may want to read.
        give_terminal_back(command_, wrapper_group_, false);
        end_all({.group = has_ended_ ? 0 : command_});
    }
    ::_exit(0);
}

void guardian_process::wait() {
    std::array<::pollfd, 4> watched{};
    const short channel_events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
    watched[0] = {.fd = channel_, .events = channel_events, .revents = 0};
    watched[1] = {.fd = signals_, .events = POLLIN, .revents = 0};
    watched[2] = {.fd = timer_, .events = POLLIN, .revents = 0};
    watched[3] = {.fd = answer_, .events = POLLIN, .revents = 0};
    if (::poll(watched.data(), watched.size(), -1) < 0) return;
    if (watched[2].revents != 0) on_timer();
    if (watched[3].revents != 0) read_answer();
    if (watched[1].revents != 0) on_signals();
    if (watched[0].revents != 0) {
        flush();
        read_requests();
    }
}

void guardian_process::read_requests() {
    for (;;) {
        received_request next = receive_request(channel_);
        if (next.closed) leave();
        switch (next.what.kind) {
            case request::kind_t::nothing: return;
            case request::kind_t::text: text_ += next.text; break;
            case request::kind_t::run:
                text_ += next.text;
                start(next.what, next.descriptor);
                break;
            case request::kind_t::move: move(next.what.until); break;
            case request::kind_t::signal: pass_on(next.what.number); break;
        }
    }
}

void guardian_process::move(const deadlines& to) {
    if (is_done_) return;
    const auto now = boot_clock::now();
    until_ = to;
    if (until_.act > now) has_acted_ = false;
    // At once: the next request may be a later deadline, and then this one would never have been.
    if (command_ != 0 && until_.end <= now) return end();
    set_timer();
}

// Who takes a lock that nobody has takes it within this time.
void guardian_process::stand_by() {
    if (signals_ < 0 || timer_ < 0) return;
    const auto by = boot_clock::now() + stand_by_for;
    std::string text;
    new_command what;
    const starting begun =
        start_when_told([&] { return is_told(what, text, by) ? &what : nullptr; });
    if (begun.process == 0) return;
    // It has left us the request, with a descriptor that is ours.
    const received_request run = receive_request(channel_);
    take(run.what, run.descriptor);
    supervise(begun);
}

// In the process that is to become the command. Everything but a command is left to the guardian.
bool guardian_process::is_told(new_command& what, std::string& text, boot_clock::time_point by) {
    for (;;) {
        ::pollfd watched{.fd = channel_, .events = POLLIN, .revents = 0};
        const auto left = std::max(by - boot_clock::now(), boot_clock::duration(0));
        const ::timespec patience{.tv_sec = 0, .tv_nsec = left.count()};
        if (::ppoll(&watched, 1, &patience, nullptr) <= 0) return false;
        const received_request next = look_at_request(channel_);
        if (next.what.kind == request::kind_t::text) {
            text_ += receive_request(channel_).text;
            continue;
        }
        if (next.what.kind != request::kind_t::run) return false;
        if (next.what.until.end <= boot_clock::now()) return false;
        text = text_ + next.text;
        what = command_of(next.what, text);
        what.keep_open = next.descriptor;
        return !what.words.empty();
    }
}

void guardian_process::take(const request& what, int keep_open) {
    keep_open_ = keep_open;
    at_act_ = what.at_act;
    until_ = what.until;
}

void guardian_process::start(const request& what, int keep_open) {
    take(what, keep_open);
    if (until_.end <= boot_clock::now()) return refuse(ETIME);
    if (signals_ < 0 || timer_ < 0) return refuse(EMFILE);
    new_command command = command_of(what, text_);
    command.keep_open = keep_open;
    supervise(start_command(command));
}

void guardian_process::supervise(const starting& begun) {
    text_.clear();
    if (begun.process == 0) return refuse(begun.error);
    command_ = begun.process;
    answer_ = begun.answer;
    set_timer();
}

void guardian_process::read_answer() {
    int error = 0;
    const ::ssize_t size = ::read(answer_, &error, sizeof error);
    if (size < 0) return;
    ::close(answer_);
    answer_ = -1;
    if (size == sizeof error) return refuse(error);
    has_started_ = true;
    report({.kind = kind::started, .pid = command_});
}

// When there is a process, its end is no news.
void guardian_process::refuse(int error) {
    finish({.kind = kind::refused, .number = error});
}

void guardian_process::finish(const guardian_event& last) {
    if (is_for_several_) {
        be_as_new();
    } else {
        is_done_ = true;
    }
    report(last);
}

void guardian_process::be_as_new() {
    // The next one runs under another lease.
    if (keep_open_ >= 0) ::close(std::exchange(keep_open_, -1));
    text_.clear();
    command_ = 0;
    has_started_ = has_ended_ = has_acted_ = we_continued_ = false;
    until_ = {};
}

void guardian_process::on_signals() {
    ::signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) > 0) {
    }
    reap();
}

void guardian_process::reap() {
    for (;;) {
        int status = 0;
        const ::pid_t process = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (process == 0) return;
        if (process > 0) {
            on_child(process, status);
        } else if (errno == ECHILD) {
            if (has_ended_ && !is_done_) finish({.kind = kind::alone});
            return;
        }
    }
}

void guardian_process::on_child(::pid_t process, int status) {
    if (is_done_) return;
    if (process != command_) return on_orphan(process, status);
    if (answer_ >= 0) read_answer();  // started, and at once ended
    if (!has_started_) {
        // A key that came before the command became itself: it would wait for somebody to continue
        // what nobody knows yet.
        if (WIFSTOPPED(status)) ::kill(-process, SIGCONT);
        return;
    }
    if (WIFSTOPPED(status)) {
        we_continued_ = false;
        report({.kind = kind::stopped, .number = WSTOPSIG(status)});
    } else if (WIFCONTINUED(status)) {
        report({.kind = kind::continued});
        if (!we_continued_) continue_wrapper();
    } else {
        has_ended_ = true;
        report({.kind = kind::ended,
                .exited = WIFEXITED(status),
                .number = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                .alive = settle_leftovers()});
    }
}

// An orphan that wants the terminal in the background would be told at once that it cannot have it,
// were it not for us; see settle_leftovers.
void guardian_process::on_orphan(::pid_t process, int status) const {
    if (!has_ended_ || !WIFSTOPPED(status)) return;
    if (WSTOPSIG(status) == SIGTTIN || WSTOPSIG(status) == SIGTTOU) hang_up(process);
}

// For a user who continues the command that made the wrapper stop, and expects that this is all.
void guardian_process::continue_wrapper() const {
    if (state_of(wrapper_) == 'T') ::kill(wrapper_, SIGCONT);
}

void guardian_process::on_timer() {
    std::uint64_t times = 0;
    [[maybe_unused]] const auto size = ::read(timer_, &times, sizeof times);
    if (command_ == 0 || is_done_) return;
    const auto now = boot_clock::now();
    if (now >= until_.end) return end();
    if (now >= until_.act && !has_acted_) act();
    set_timer();
}

void guardian_process::set_timer() {
    if (command_ == 0) return;
    const auto next = has_acted_ ? until_.end : std::min(until_.act, until_.end);
    const itimerspec time = next == boot_clock::time_point::max() ? itimerspec{} : at(next);
    ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &time, nullptr);
}

void guardian_process::act() {
    has_acted_ = true;
    report({.kind = kind::acted});
    if (at_act_ == on_deadline::kill) {
        end_command();
    } else if (at_act_ == on_deadline::term) {
        for (const int number : {SIGTERM, SIGCONT}) {
            pass_on(number);
            if (!has_ended_) signal_descendants(number, command_);
        }
    }
}

void guardian_process::end() {
    report({.kind = kind::killed});
    end_command();
}

void guardian_process::end_command() {
    end_all({.group = has_ended_ ? 0 : command_,
             .on_reaped = [this](::pid_t process, int status) { on_child(process, status); }});
    reap();
}

// Once the command has ended its number may belong to a stranger; what it left behind is all that
// the signal can be meant for.
void guardian_process::pass_on(int number) {
    if (command_ == 0 || is_done_) return;
    if (number == SIGCONT) we_continued_ = true;
    if (!has_ended_) {
        ::kill(-command_, number);
        return;
    }
    signal_descendants(number, 0);
    // Shells start what runs in the background of a script deaf to these two.
    if (number == SIGINT || number == SIGQUIT) signal_descendants(SIGTERM, 0);
}

void guardian_process::report(const guardian_event& event) {
    flush();
    if (unsent_.empty() && send_event(channel_, event) != sent::full) return;
    unsent_.push_back(event);
}

void guardian_process::flush() {
    while (!unsent_.empty() && send_event(channel_, unsent_.front()) != sent::full) {
        unsent_.pop_front();
    }
}

}  // namespace trinco::program
