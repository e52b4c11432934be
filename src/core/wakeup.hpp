// Wakes a thread that waits for one thing, as a condition variable does, but without its mutex: who
// wakes from that one makes a system call more to take it again. Over POSIX's semaphore: who waits
// for GCC 12's std::counting_semaphore may sleep for ever (its bug 104928).
#pragma once

#include <semaphore.h>

#include <cerrno>
#include <chrono>
#include <ctime>

namespace trinco::detail {

// Once it is given it stays given, and who waits then goes on at once. Several pass it on one after
// another: a wait_until that ends meanwhile may not have seen it yet. ThreadSanitizer does not know
// sem_clockwait: what is to be read after wait_until is read under a mutex.
class wakeup {
public:
    wakeup() { ::sem_init(&given_, 0, 0); }
    ~wakeup() { ::sem_destroy(&given_); }
    wakeup(const wakeup&) = delete;
    wakeup& operator=(const wakeup&) = delete;

    // Once.
    void give() { ::sem_post(&given_); }
    void wait() {
        while (::sem_wait(&given_) != 0) {
        }
        ::sem_post(&given_);  // for the next one
    }
    // Whether it came by then.
    bool wait_until(std::chrono::steady_clock::time_point by) {
        using namespace std::chrono;
        const auto since_start = by.time_since_epoch();
        const auto whole = floor<seconds>(since_start);
        const ::timespec until{whole.count(), nanoseconds(since_start - whole).count()};
        while (::sem_clockwait(&given_, CLOCK_MONOTONIC, &until) != 0) {
            if (errno != EINTR) return false;
        }
        ::sem_post(&given_);
        return true;
    }

private:
    ::sem_t given_{};
};

}  // namespace trinco::detail
