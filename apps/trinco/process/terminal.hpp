// Which process group the terminal of this session belongs to, and in which mode it is. Everything
// fails quietly where there is no terminal, or it is another session's.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

namespace trinco::program {

class terminal {
public:
    terminal();
    ~terminal();
    terminal(const terminal&) = delete;
    terminal& operator=(const terminal&) = delete;

    // The group that reads and gets the keys' signals; -1: there is no terminal.
    [[nodiscard]] ::pid_t foreground() const;
    // The caller blocks TTOU, or it would be stopped when it is in the background itself.
    void give_to(::pid_t group) const;
    [[nodiscard]] std::optional<::termios> mode() const;
    // As give_to.
    void set_mode(const ::termios& to) const;

private:
    int fd_ = -1;
};

// Gives the terminal to `to` when it belongs to `from`; with `or_nobodys` also when the group that
// it belongs to has no process left.
void give_terminal_back(::pid_t from, ::pid_t to, bool or_nobodys);

}  // namespace trinco::program
