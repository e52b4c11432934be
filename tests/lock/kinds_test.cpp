// The public kinds of locks beside the mutex, on the memory store, with real threads.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "trinco/lock_all.hpp"
#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/semaphore.hpp"
#include "trinco/shared_mutex.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::errc;
using trinco::lock_error;
using trinco::session;

class Kinds : public ::testing::Test {
protected:
    trinco::store where_ = trinco::open("memory:", {trinco::drivers::memory()});
    session one_{where_};
    session two_{where_};
};

std::string sentence_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const lock_error& e) {
        return e.what();
    }
    return "none";
}

TEST_F(Kinds, ReadersShareAndWritersExclude) {
    trinco::shared_mutex a(one_, "n"), b(two_, "n"), c(one_, "n");
    {
        const std::shared_lock first(a);
        const std::shared_lock second(b);
        EXPECT_TRUE(a.held() && b.held());
        EXPECT_EQ(a.fencing_token(), 0U) << "a shared grant is no fence";
        EXPECT_FALSE(c.try_lock());
        EXPECT_FALSE(c.held());
    }
    const std::unique_lock alone(c);
    EXPECT_GT(c.fencing_token(), 0U);
    EXPECT_FALSE(a.try_lock_shared());
    EXPECT_FALSE(a.try_lock_shared_for(10ms));
}

TEST_F(Kinds, AReaderBehindAWaitingWriterWaitsForIt) {
    trinco::shared_mutex reader(one_, "n"), writer(two_, "n"), late(one_, "n");
    reader.lock_shared();
    std::promise<void> wrote;
    writer.async_lock([&](std::error_code error) {
        EXPECT_FALSE(error);
        wrote.set_value();
    });
    // In the order of posting to one loop the writer's entry comes before this one.
    while (late.try_lock_shared()) {
        late.unlock_shared();
        std::this_thread::yield();
    }
    reader.unlock_shared();
    wrote.get_future().get();
    EXPECT_FALSE(late.try_lock_shared());
    writer.unlock();
    late.lock_shared();
    EXPECT_TRUE(late.held());
}

TEST_F(Kinds, WhatIsHeldOneWayIsNotGivenBackTheOther) {
    trinco::shared_mutex a(one_, "n"), b(two_, "n");
    a.lock();
    std::error_code error;
    a.unlock_shared(error);
    EXPECT_EQ(error, errc::not_held);
    EXPECT_TRUE(a.held());
    a.unlock();
    a.lock_shared();
    a.unlock(error);
    EXPECT_EQ(error, errc::not_held);
    EXPECT_TRUE(a.held());
    // Going away gives back whatever it is.
    { const auto gone = std::move(a); }
    EXPECT_TRUE(b.try_lock());
}

TEST_F(Kinds, ASemaphoreLetsInNAndWakesWhenAnyOfThemLeaves) {
    trinco::semaphore a(one_, "n", 2), b(two_, "n", 2), c(one_, "n", 2);
    a.acquire();
    b.acquire();
    EXPECT_FALSE(c.try_acquire());
    auto third = std::async(std::launch::async, [&] { c.acquire(); });
    b.release();
    third.get();
    EXPECT_TRUE(a.held() && c.held());
    EXPECT_EQ(c.permits(), 2U);
}

TEST_F(Kinds, AnotherNumberOfPermitsIsRefusedWithASentence) {
    trinco::semaphore a(one_, "n", 2), b(two_, "n", 3);
    a.acquire();
    std::error_code error;
    b.acquire(error);
    EXPECT_EQ(error, errc::limit_mismatch);
    EXPECT_NE(sentence_of([&] { b.acquire(); }).find("another number of permits than 3"),
              std::string::npos);
    EXPECT_NE(sentence_of([&] { trinco::semaphore none(one_, "n", 0); }).find("1 to 1000000"),
              std::string::npos);
}

TEST_F(Kinds, NeverMoreThanNHoldASemaphore) {
    std::atomic<int> inside{0}, most{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
            trinco::semaphore slot(i % 2 == 0 ? one_ : two_, "n", 3);
            for (int round = 0; round < 20; ++round) {
                slot.acquire();
                const int now = ++inside;
                int seen = most.load();
                while (seen < now && !most.compare_exchange_weak(seen, now)) {
                }
                std::this_thread::yield();
                --inside;
                slot.release();
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_LE(most, 3);
    EXPECT_GT(most, 1) << "nobody ever shared it";
}

TEST_F(Kinds, LockAllTakesAllAndHasATokenOfEach) {
    trinco::lock_all both(one_, {"b", "a"});
    trinco::mutex a(two_, "a"), b(two_, "b");
    EXPECT_EQ(both.names(), (std::vector<std::string>{"a", "b"}));
    {
        const std::lock_guard hold(both);
        EXPECT_FALSE(a.try_lock() || b.try_lock());
        EXPECT_GT(both.fencing_token("a"), 0U);
        EXPECT_GT(both.fencing_token("b"), 0U);
        EXPECT_EQ(both.fencing_token("c"), 0U);
    }
    a.lock();
    EXPECT_GT(a.fencing_token(), both.fencing_token("a"));
    EXPECT_FALSE(both.try_lock());
    EXPECT_TRUE(b.try_lock()) << "a part of a try that failed stayed behind";
}

TEST_F(Kinds, LockAllRefusesWhatItCannotTake) {
    EXPECT_NE(sentence_of([&] {
                  trinco::lock_all l(one_, {"a", "b", "a"});
              }).find("given twice"),
              std::string::npos);
    EXPECT_NE(sentence_of([&] {
                  trinco::lock_all l(one_, {"a", "b//c"});
              }).find("b//c"),
              std::string::npos);
    const std::vector<std::string> none;
    EXPECT_NE(sentence_of([&] { trinco::lock_all l(one_, none); }).find("1 to 32"),
              std::string::npos);
}

}  // namespace
