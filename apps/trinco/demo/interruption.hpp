// The user's wish that the demonstration ends: INT, TERM, HUP, QUIT, or nobody reads it any more.
#pragma once

namespace trinco::program::demo {

// One at a time. While it lives these signals do nothing but make the descriptor readable for
// good. TSTP (Ctrl-Z) is ignored: leases would run out while everything stands still, and what was
// to be shown would be wrong afterwards. So is PIPE: whoever writes sees the error and requests the
// end. The third signal ends the program at once. What was ignored before (under nohup) stays so.
// The destructor restores what was before.
class interruption {
public:
    interruption();
    ~interruption();
    interruption(const interruption&) = delete;
    interruption& operator=(const interruption&) = delete;

    [[nodiscard]] int descriptor() const noexcept;
    // The first signal that came or was requested; 0: none.
    [[nodiscard]] int signal() const noexcept;
    // As if the signal had come. From any thread.
    void request(int number) noexcept;
};

}  // namespace trinco::program::demo
