// Runs a command under a guardian and behaves, in front of the user, as if the command ran alone:
// its exit code, its signals, its terminal.
//
// Signals      Every catchable signal that the program gets goes on to the command's group. The
//              wrapper itself ends when the command has.
// Terminal     Typed at a prompt (the program leads the foreground group, standard input and output
//              are the terminal) the command gets the terminal when it starts. Otherwise, in a
//              pipeline or a script, it begins in the background of the terminal, where writing is
//              free. The first time that it reads or sets the terminal the kernel stops it (TTIN,
//              TTOU); if the program's own group is in the foreground then, the command gets the
//              terminal and goes on. So `trinco lock x -- generate | less` leaves the terminal to
//              less. What looks for its place there before it shows progress (git, wget) shows
//              none.
//              Ctrl-C, wherever the terminal is: reaches the command; when the command dies of it
//              while it had the terminal the program's own group gets it, too, as it would have.
//              Ctrl-Z: the command stops, before_stop says what that means, the terminal goes back,
//              and the program's group stops. `fg` continues both, unless `still_good` says no.
//              Where nobody could continue it (a session without a shell) it does not stop.
// Descendants  that outlive the command are waited for, up to the deadlines, and said so once
//              after a second. The terminal goes back to the program, and keys and signals now are
//              for them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "apps/trinco/process/guardian.hpp"

namespace trinco::program {

// Blocks the signals that a wrapper passes on, and remembers what the command gets back. To be
// called first thing, before any thread: threads inherit the mask. Afterwards `next` tells of one
// that came before the command ran. Signals that the program was started to ignore (by nohup, say)
// stay ignored, here and in the command. The mask stays when the desk goes, so that nothing that
// comes late changes the exit code.
class signal_desk {
public:
    signal_desk();
    ~signal_desk();
    signal_desk(const signal_desk&) = delete;
    signal_desk& operator=(const signal_desk&) = delete;

    // Readable when a signal waits.
    [[nodiscard]] int descriptor() const noexcept;
    // The next one of those that end a program (INT, TERM, HUP, QUIT) or are passed on.
    [[nodiscard]] std::optional<int> next();
    // Whether the last one came from a key of the terminal, and so to the whole group, too.
    [[nodiscard]] bool came_from_terminal() const noexcept { return came_from_terminal_; }

private:
    int fd_ = -1;
    bool came_from_terminal_ = false;
};

struct supervision {
    // Asked every `every`, and after each event; moved to the guardian when it has changed.
    std::function<deadlines()> until;
    std::chrono::milliseconds every{0};  // 0: `until` is asked once
    std::chrono::milliseconds soon{0};   // other than 0: when it is asked for the second time
    // Rung (an eventfd or a pipe; it is read) when `until` should be asked at once, as after a
    // loss; -1: none.
    int wake = -1;
    // Once, while the command begins: what need not be done after its end.
    std::function<void()> meanwhile;
    // Before the program stops with its command: what to say.
    std::function<void()> before_stop;
    // After fg: whether the command may go on.
    std::function<bool()> still_good;
    std::function<void(const guardian_event&)> on_event;
};

struct command_end {
    enum class how_t : std::uint8_t { exited, signaled, not_started, guardian_lost };
    how_t how = how_t::exited;
    int number = 0;             // exit code, signal or errno
    bool acted = false;         // a deadline made it end
    bool interrupted = false;   // it died of INT or QUIT from its terminal: see finish
    bool had_terminal = false;  // of `interrupted`: the program's own group did not get the signal
    bool passed_on = false;     // one of INT, TERM, HUP, QUIT was passed on to it
    bool asked_to_end = false;  // one of INT, TERM, QUIT was; HUP often means something else
};

// Until the command has ended and no descendant is left (or the deadlines have ended them).
[[nodiscard]] command_end supervise(guardian& over, const command_spec& what, signal_desk& desk,
                                    const supervision& how);

// The exit code as shells have it: the command's own, 128+n, 126, 127. When it died of the
// terminal's INT or QUIT the same signal is sent to the program's own group with its default
// action, so that shells and scripts around it stop as they would have; that may not return, so
// everything else is to be done before. Says why a command was not started.
[[nodiscard]] int finish(const command_end& end, const command_spec& what);

}  // namespace trinco::program
