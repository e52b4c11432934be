// A process in which many locks wait, looked at from outside: what it takes, and what it leaves.
//
// It is forked, so make it before this process opens a store. It ends with the object.
// Threads: one at a time. Whatever cannot be done in 60 s throws std::runtime_error.
#pragma once

#include <sys/types.h>

#include <string>

namespace trinco::detail::test {

class many_waiters {
public:
    explicit many_waiters(const std::string& url);
    ~many_waiters();
    many_waiters(const many_waiters&) = delete;
    many_waiters& operator=(const many_waiters&) = delete;

    // Locks and unlocks once, in a store that is closed again: what libraries then keep is not
    // taken for something that is left.
    void warm_up();
    // Begins to wait for the locks PREFIX0, PREFIX1 ... in one session, beside so many breakers.
    void begin(const std::string& prefix, int locks, int breakers);
    // Gives up all waits, and closes session and store. How many locks it had got.
    int end();

    [[nodiscard]] double memory_mib() const;
    [[nodiscard]] int threads_of_ours() const;  // the main one among them
    [[nodiscard]] int threads() const;
    [[nodiscard]] int descriptors() const;
    [[nodiscard]] double seconds_on_core() const;

private:
    std::string ask(const std::string& line);

    ::pid_t pid_ = -1;
    int ours_ = -1;
};

}  // namespace trinco::detail::test
