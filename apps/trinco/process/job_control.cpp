#include "apps/trinco/process/job_control.hpp"

#include <unistd.h>

#include <csignal>

namespace trinco::program {

namespace {

bool wants_terminal(int stop) {
    return stop == SIGTTIN || stop == SIGTTOU;
}

// Stops the program, with `group` everybody in its process group, until somebody continues it.
// False: the kernel does not stop it, as there is no shell that could continue it.
bool stop_by(int number, bool group) {
    // Sent while it is blocked, so that one that waits already and this one stop us once.
    ::kill(group ? 0 : ::getpid(), number);
    if (number != SIGSTOP) {
        sigset_t one;
        ::sigemptyset(&one);
        ::sigaddset(&one, number);
        ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
        ::sigprocmask(SIG_BLOCK, &one, nullptr);
    }
    // What continued us is still to be taken from the desk. A stop that did not happen has none.
    sigset_t waiting;
    ::sigpending(&waiting);
    return ::sigismember(&waiting, SIGCONT) == 1;
}

}  // namespace

void job_control::on_signal(int number) {
    if (number == SIGCONT) return on_continue();
    if (number == SIGTSTP || wants_terminal(number)) {
        if (has_ended_) return stop_with_leftovers(number);
        stop_passed_on_ = number;
    }
    if ((number == SIGINT || number == SIGQUIT) && desk_.came_from_terminal()) {
        key_passed_on_ = number;
    }
    over_.signal(number);
}

void job_control::on_started(::pid_t group) {
    group_ = group;
    // Alone in the foreground, as typed at a prompt: no script around it and no pager behind it
    // could want the terminal or its keys. Some commands look for their place before they show
    // progress.
    const bool is_typed =
        ::getpgrp() == ::getpid() && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
    if (is_typed) (void)hand_over(terminal());
}

bool job_control::hand_over(const terminal& terminal) {
    if (terminal.foreground() != ::getpgrp()) return false;
    mode_ = terminal.mode();
    terminal.give_to(group_);
    if (terminal.foreground() != group_) return false;
    has_handed_over_ = true;
    return true;
}

void job_control::on_stopped(int number) {
    const terminal terminal;
    const bool had_terminal = terminal.foreground() == group_;
    // It may have asked before it was given.
    if (wants_terminal(number) && (had_terminal || hand_over(terminal))) {
        over_.signal(SIGCONT);
        return;
    }
    is_stopped_ = true;
    wants_terminal_ = had_terminal || wants_terminal(number);
    if (how_.before_stop) how_.before_stop();
    if (had_terminal) terminal.give_to(::getpgrp());
    // A key, or a read in the background, would have stopped all of the program's group. It has
    // already when the program passed it on.
    const bool whole_group = number != SIGSTOP && number != stop_passed_on_;
    stop_passed_on_ = 0;
    if (!stop_by(number, whole_group)) on_cannot_stop(number, terminal);
}

void job_control::on_cannot_stop(int number, const terminal& terminal) {
    if (number == SIGSTOP) return;  // somebody stopped the command alone, and will continue it
    if (wants_terminal_) (void)hand_over(terminal);
    // Alone it would have failed to read; the kernel's word to a job that is stopped and that
    // nobody can continue is this one.
    if (wants_terminal(number)) over_.signal(SIGHUP);
    is_stopped_ = false;
    over_.signal(SIGCONT);
}

void job_control::on_continue() {
    if (is_stopped_) {
        if (how_.still_good && !how_.still_good()) {
            const auto now = detail::boot_clock::now();
            over_.move({.act = now, .end = now});
            return;
        }
        if (wants_terminal_) (void)hand_over(terminal());
        is_stopped_ = false;  // the guardian sees no end of a stop that another one follows at once
    }
    over_.signal(SIGCONT);
}

// There is no command any more that would stop, and lead the program to do so.
void job_control::stop_with_leftovers(int number) {
    over_.signal(number);
    if (how_.before_stop) how_.before_stop();
    if (!stop_by(number, false)) over_.signal(SIGCONT);
}

void job_control::on_ended(command_end& end) {
    find_out_about_key(end);
    has_ended_ = true;
    // Now: keys are for what is left behind, which may be in any group.
    take_terminal(end.how == command_end::how_t::signaled);
}

void job_control::find_out_about_key(command_end& end) const {
    if (end.how != command_end::how_t::signaled) return;
    if (end.number != SIGINT && end.number != SIGQUIT) return;
    end.had_terminal = terminal().foreground() == group_;
    end.interrupted = end.had_terminal || key_passed_on_ == end.number;
}

void job_control::take_terminal(bool killed) const {
    if (group_ <= 0) return;
    give_terminal_back(group_, ::getpgrp(), has_handed_over_);
    const terminal terminal;
    if (killed && mode_ && terminal.foreground() == ::getpgrp()) terminal.set_mode(*mode_);
}

}  // namespace trinco::program
