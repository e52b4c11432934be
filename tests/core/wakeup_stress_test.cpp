// The wakeup under real threads: nobody goes on before it is given, whatever signals come, and
// everybody does afterwards.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "core/wakeup.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr int waiters = 6;
constexpr int signals = 2'000;  // to each

// A signal that ends system calls, which are not begun again.
class interrupting {
public:
    interrupting() {
        struct sigaction how {};
        how.sa_handler = [](int) {};
        ::sigaction(SIGUSR1, &how, &before_);
    }
    ~interrupting() { ::sigaction(SIGUSR1, &before_, nullptr); }
    interrupting(const interrupting&) = delete;
    interrupting& operator=(const interrupting&) = delete;

private:
    struct sigaction before_ {};
};

TEST(WakeupStress, NobodyGoesOnBeforeItIsGivenAndEverybodyAfterwards) {
    const interrupting with_signals;
    wakeup w;
    std::atomic<int> went_on = 0, in_time = 0;
    std::latch started(waiters + 1);
    std::vector<std::thread> all;
    for (int i = 0; i < waiters; ++i) {
        all.emplace_back([&, by_time = i % 2 == 0] {
            started.arrive_and_wait();
            if (by_time) {
                if (w.wait_until(steady::now() + 60s)) ++in_time;
            } else {
                w.wait();
            }
            ++went_on;
        });
    }
    started.arrive_and_wait();
    for (int n = 0; n < signals; ++n) {
        for (auto& t : all) ::pthread_kill(t.native_handle(), SIGUSR1);
        std::this_thread::yield();
    }
    EXPECT_EQ(went_on, 0);
    w.give();
    for (auto& t : all) t.join();
    EXPECT_EQ(went_on, waiters);
    EXPECT_EQ(in_time, waiters / 2);
}

TEST(WakeupStress, WhatIsGivenStaysGivenForWhoComesLater) {
    wakeup w;
    EXPECT_FALSE(w.wait_until(steady::now() - 1s));
    w.give();
    w.wait();
    w.wait();
    EXPECT_TRUE(w.wait_until(steady::now() - 1s)) << "a time that is over does not matter then";
    EXPECT_TRUE(w.wait_until(steady::time_point::max()));
    w.wait();
}

TEST(WakeupStress, AWaitEndsByItsTime) {
    wakeup w;
    const auto begin = steady::now();
    EXPECT_FALSE(w.wait_until(begin + 20ms));
    EXPECT_GE(steady::now(), begin + 20ms);
}

}  // namespace
}  // namespace trinco::detail
