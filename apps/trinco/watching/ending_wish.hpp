// The wish to end a command that would go on and on: a signal, as something to wait for.
#pragma once

#include <signal.h>

namespace trinco::program {

// While it lives INT, TERM, HUP and QUIT are told here instead of ending the program; those that
// were ignored when it was made (nohup) stay so. Made before any thread that takes signals.
class ending_wish {
public:
    ending_wish();
    ~ending_wish();
    ending_wish(const ending_wish&) = delete;
    ending_wish& operator=(const ending_wish&) = delete;

    // Readable when one has come.
    [[nodiscard]] int descriptor() const noexcept { return fd_; }
    // The signal that has come first; 0: none.
    [[nodiscard]] int signal() noexcept;

private:
    ::sigset_t before_{};
    int fd_ = -1;
    int came_ = 0;
};

}  // namespace trinco::program
