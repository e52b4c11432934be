// A thread on which a session calls its user: one function after another, in order, under no lock
// of ours. It is made for the first of them and ends when there was none for a while.
//
// A user's callback may take its time, or the lock that it guards; were it called on the loop's
// thread, renewals would wait for it. A session has two: stop tokens are requested on one and
// everything else is called on the other, so that a slow callback does not keep a loss from
// anybody.
#pragma once

#include <chrono>
#include <memory>

#include "core/unique_function.hpp"

namespace trinco::detail {

class callback_queue {
public:
    // The name of its thread, of at most 15 bytes.
    explicit callback_queue(const char* thread_name);
    // The thread finishes what is queued by itself.
    ~callback_queue();
    callback_queue(const callback_queue&) = delete;
    callback_queue& operator=(const callback_queue&) = delete;

    // Any thread. When the system refuses a thread, f runs here and now: late is worse than slow.
    void post(unique_function<void()> f);
    // Waits until everything posted before has run, at most until then; not when called by one of
    // them.
    bool drain_until(std::chrono::steady_clock::time_point by);

private:
    struct state;
    std::shared_ptr<state> state_;  // also the thread's
};

}  // namespace trinco::detail
