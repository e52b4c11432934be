// The thread on which a session calls its user: one function after another, in order, under no lock
// of ours. It is made for the first of them and ends when there was none for a while.
//
// A user's callback may take its time, or the lock that it guards; were it called on the loop's
// thread, renewals would wait for it.
#pragma once

#include <chrono>
#include <memory>

#include "core/unique_function.hpp"

namespace trinco::detail {

class callback_queue {
public:
    callback_queue();
    // The thread finishes what is queued by itself.
    ~callback_queue();
    callback_queue(const callback_queue&) = delete;
    callback_queue& operator=(const callback_queue&) = delete;

    // Any thread. When the system refuses a thread, f runs here and now: late is worse than slow.
    void post(unique_function<void()> f);
    // Waits until everything posted before has run, at most that long; not when called by one of
    // them.
    bool drain(std::chrono::milliseconds bound);

private:
    struct state;
    std::shared_ptr<state> state_;  // also the thread's
};

}  // namespace trinco::detail
