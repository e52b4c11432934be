// Contention with real threads, loops and sessions: run under ThreadSanitizer as well.
#include <gtest/gtest.h>

#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;

TEST(MutexStress, CountsExactlyUnderEveryFormOfWaitingAndGivingUp) {
    constexpr int threads = 8;
    constexpr int rounds = 150;
    const auto memory = trinco::drivers::memory();
    // Two stores share the server, each with sessions of its own.
    std::vector<trinco::store> stores;
    stores.push_back(trinco::open("memory:", {memory}));
    stores.push_back(trinco::open("memory:", {memory}));
    std::vector<trinco::session> sessions;
    for (int i = 0; i < 4; ++i) sessions.emplace_back(stores[static_cast<std::size_t>(i % 2)]);

    int counter = 0;            // guarded by the mutex under test alone
    std::uint64_t highest = 0;  // so is this
    std::atomic<int> expected = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            std::minstd_rand random(static_cast<unsigned>(t));
            trinco::mutex m(sessions[static_cast<std::size_t>(t % 4)], "counter");
            for (int i = 0; i < rounds; ++i) {
                bool got = true;
                std::stop_source stop;
                std::error_code error;
                switch (random() % 4) {
                    case 0: got = m.try_lock(); break;
                    case 1: got = m.try_lock_for(1ms); break;
                    case 2: {
                        std::jthread canceller([&] { stop.request_stop(); });
                        m.lock(stop.get_token(), error);
                        got = !error;
                        break;
                    }
                    default: m.lock(); break;
                }
                if (!got) continue;
                ++counter;
                EXPECT_GT(m.fencing_token(), highest);
                highest = m.fencing_token();
                ++expected;
                m.unlock();
            }
        });
    }
    for (auto& t : all) t.join();
    EXPECT_EQ(counter, expected.load());
    EXPECT_GT(counter, threads * rounds / 5);
}

TEST(MutexStress, SessionsMayBeClosedUnderWaitersAndHolders) {
    const auto memory = trinco::drivers::memory();
    const auto where = trinco::open("memory:", {memory});
    for (int i = 0; i < 30; ++i) {
        auto s = std::make_unique<trinco::session>(where);
        std::vector<std::jthread> users;
        for (int t = 0; t < 4; ++t) {
            users.emplace_back([m = trinco::mutex(*s, "n")]() mutable {
                std::error_code error;
                while (!error) {
                    m.lock(error);
                    if (!error) m.unlock(error);
                }
            });
        }
        s.reset();
    }
    trinco::session last(where);
    trinco::mutex m(last, "n");
    EXPECT_TRUE(m.try_lock()) << "something was left behind";
}

}  // namespace
