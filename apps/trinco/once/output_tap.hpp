// Takes a copy of what a command writes to standard output, on its way there.
//
//     output_tap tap;          // standard output of this process is a pipe now
//     ... fork the guardian, whose command inherits the pipe ...
//     tap.begin(most);         // standard output is what it was; a thread carries over
//     ... the command and all its descendants end ...
//     tap.take_rest();         // all has come here
//     tap.taken();
//     tap.end();               // all has gone on, or nobody takes it
//
// What is written arrives at once and unchanged, also when more than `most` bytes come, of which
// only the first are kept. Who takes it slowly from standard output holds the command up, as it
// would without us, but not the record of a command that has ended. When the real standard output
// is gone (a pipe whose reader ended), the rest is still taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

class output_tap {
public:
    output_tap() = default;
    ~output_tap();
    output_tap(const output_tap&) = delete;
    output_tap& operator=(const output_tap&) = delete;

    // Before the fork. The problem: the system has no descriptors left.
    [[nodiscard]] std::optional<problem> open();
    // After it.
    void begin(std::size_t most);
    // Waits until nobody has the pipe open any more and what was in it is here.
    void take_rest();
    // Waits until it has gone on.
    void end();
    [[nodiscard]] const std::string& taken() const noexcept { return taken_; }
    // Bytes that came, also those that were not kept.
    [[nodiscard]] std::size_t came() const noexcept { return came_; }

private:
    void carry(std::size_t most);
    bool read_some(std::size_t most);
    void write_some();

    int real_ = -1;  // standard output as it was
    int from_ = -1;  // the pipe's end to read
    std::thread carrier_;
    std::atomic<bool> ending_ = false;  // nobody writes any more: no need to hold anybody up
    std::promise<void> complete_;       // the pipe is empty and closed
    std::shared_future<void> is_complete_{complete_.get_future()};

    // The carrier's, and everybody's when it is complete.
    std::string taken_;
    std::size_t came_ = 0;
    std::string waiting_;  // to be written to standard output
    bool there_ = true;    // standard output is
};

}  // namespace trinco::program
