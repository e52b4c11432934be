#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/shell_hint.hpp"
#include "apps/trinco/process/signals_at_start.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "core/quoted.hpp"

namespace trinco::program {

namespace {

// Returns when the signal does not end the program: it is the first process of a container, or was
// told to ignore it.
void die_of(int number, bool with_group) {
    std::fflush(nullptr);
    const ::rlimit no_core{0, 0};  // the command may leave one, its wrapper not
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(number, was_ignored_at_start(number) ? SIG_IGN : SIG_DFL);
    ::kill(with_group ? 0 : ::getpid(), number);
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, number);
    ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

int say_why_not_started(int error, const command_spec& what) {
    const std::string name = detail::quoted(what.words.empty() ? "" : what.words.front(), 200);
    if (error == ENOENT) {
        return complain(
            {exit_no_such_command, "there is no command " + name + words_for_a_shell(what.words)});
    }
    return complain(
        {exit_cannot_execute, name + " cannot be run: " + std::generic_category().message(error)});
}

}  // namespace

int finish(const command_end& end, const command_spec& what) {
    switch (end.how) {
        case command_end::how_t::exited: return end.number;
        case command_end::how_t::not_started: return say_why_not_started(end.number, what);
        case command_end::how_t::guardian_lost:
            return complain({exit_signal + SIGKILL,
                             "the command's guardian was killed, and the command with it"});
        case command_end::how_t::signaled: break;
    }
    if (end.interrupted) die_of(end.number, end.had_terminal);
    return exit_signal + end.number;
}

}  // namespace trinco::program
