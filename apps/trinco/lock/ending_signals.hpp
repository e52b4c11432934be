// The signals that end a program which has no command yet: INT, TERM, HUP, QUIT.
#pragma once

#include <signal.h>

namespace trinco::program {

[[nodiscard]] bool is_ending_signal(int number) noexcept;

// While one lives, they and Ctrl-Z act as for any program: for calls that wait without a
// descriptor. What they leave behind ends with the process. `hang_up`: HUP, too.
class ending_signals_allowed {
public:
    explicit ending_signals_allowed(bool hang_up = true) noexcept;
    ~ending_signals_allowed();
    ending_signals_allowed(const ending_signals_allowed&) = delete;
    ending_signals_allowed& operator=(const ending_signals_allowed&) = delete;

private:
    ::sigset_t before_;
};

// Ends the process as the signal does by default, without a core file. Comes back only when the
// signal cannot end it.
void die_of(int number) noexcept;

}  // namespace trinco::program
