// The command as a job of the user's shell: what signals and the terminal's keys mean for it and
// for the program. See supervise.hpp for the rules.
#pragma once

#include <sys/types.h>

#include <optional>

#include "apps/trinco/process/supervise.hpp"
#include "apps/trinco/process/terminal.hpp"

namespace trinco::program {

class job_control {
public:
    job_control(guardian& over, signal_desk& desk, const supervision& how)
        : over_(over), desk_(desk), how_(how) {}

    // What the desk has just handed out.
    void on_signal(int number);

    void on_started(::pid_t group);
    void on_stopped(int number);
    void on_continued() { is_stopped_ = false; }
    // Says whether it died of a key, and takes the terminal.
    void on_ended(command_end& end);
    // It was killed together with its guardian.
    void on_gone() const { take_terminal(true); }

private:
    void on_continue();
    void stop_with_leftovers(int number);
    void find_out_about_key(command_end& end) const;
    [[nodiscard]] bool hand_over(const terminal& terminal);
    // Gives it back to the program's own group when the command had it. What was `killed` may have
    // left it in a mode in which nobody can type; a shell cares for that, but sees a program that
    // exits.
    void take_terminal(bool killed) const;
    void on_cannot_stop(int number, const terminal& terminal);

    guardian& over_;
    signal_desk& desk_;
    const supervision& how_;
    ::pid_t group_ = 0;  // the command's
    bool has_handed_over_ = false;
    std::optional<::termios> mode_;  // when it was
    bool has_ended_ = false;
    bool is_stopped_ = false;      // the command
    bool wants_terminal_ = false;  // when it goes on
    int stop_passed_on_ = 0;       // the last one that the program got itself
    int key_passed_on_ = 0;        // INT or QUIT that the program's group got from the terminal
};

}  // namespace trinco::program
