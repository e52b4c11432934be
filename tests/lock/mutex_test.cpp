// The public mutex on the memory store, with real threads.
#include "trinco/mutex.hpp"

#include <dirent.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trinco/memory.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::errc;
using trinco::lock_error;
using trinco::session;

class Mutex : public ::testing::Test {
protected:
    trinco::store where_ = trinco::open("memory:", {trinco::drivers::memory()});
    session one_{where_};
    session two_{where_};
};

template <class F>
std::error_code code_of(F f) {
    try {
        f();
    } catch (const lock_error& e) {
        EXPECT_NE(std::string(e.what()).find("trinco: mutex"), std::string::npos) << e.what();
        return e.code();
    }
    return {};
}

TEST_F(Mutex, WorksWithTheStandardsGuards) {
    trinco::mutex a(one_, "a");
    trinco::mutex b(one_, "b");
    {
        const std::lock_guard hold(a);
        EXPECT_TRUE(a.held());
    }
    EXPECT_FALSE(a.held());
    {
        const std::scoped_lock both(a, b);
        EXPECT_TRUE(a.held() && b.held());
    }
    std::unique_lock later(a, std::defer_lock);
    EXPECT_TRUE(later.try_lock_for(1s));
    later.unlock();
    std::unique_lock tried(a, std::try_to_lock);
    EXPECT_TRUE(tried.owns_lock());
}

TEST_F(Mutex, ExcludesAcrossSessionsAndWithinOne) {
    trinco::mutex a(one_, "n");
    trinco::mutex same(one_, "n");
    trinco::mutex other(two_, "n");
    a.lock();
    EXPECT_FALSE(same.try_lock());
    EXPECT_FALSE(other.try_lock());
    std::error_code error;
    EXPECT_FALSE(other.try_lock(error));
    EXPECT_EQ(error, errc::conflict);
    a.unlock();
    EXPECT_TRUE(other.try_lock());
    EXPECT_GT(other.fencing_token(), a.fencing_token());
    EXPECT_GT(other.valid_for(), 10s);
    EXPECT_EQ(a.valid_for(), 0ns);
}

TEST_F(Mutex, TimedWaitsEndInTime) {
    trinco::mutex a(one_, "n");
    trinco::mutex b(two_, "n");
    a.lock();
    const auto before = std::chrono::steady_clock::now();
    std::error_code error;
    EXPECT_FALSE(b.try_lock_for(30ms, error));
    EXPECT_EQ(error, errc::not_acquired);
    EXPECT_FALSE(b.try_lock_until(std::chrono::system_clock::now() + 30ms));
    EXPECT_FALSE(b.try_lock_for(-1s));
    const auto took = std::chrono::steady_clock::now() - before;
    EXPECT_GE(took, 60ms);
    EXPECT_LT(took, 5s);
    a.unlock();
    EXPECT_TRUE(b.try_lock_for(10s)) << "what was given up stood in the way";
}

TEST_F(Mutex, TimesAtTheEndOfTheirRangeDoNotOverflow) {
    using hours = std::chrono::hours;
    using in_hours = std::chrono::time_point<std::chrono::system_clock, hours>;
    trinco::mutex a(one_, "n");
    a.lock();
    trinco::mutex b(two_, "n");
    EXPECT_FALSE(b.try_lock_for(hours::min()));
    EXPECT_FALSE(b.try_lock_until(in_hours::min()));
    EXPECT_FALSE(b.try_lock_until(std::chrono::steady_clock::time_point::min()));
    EXPECT_FALSE(b.try_lock_for(std::chrono::duration<double>(std::nan(""))));
    for (const int form : {0, 1, 2, 3}) {
        trinco::mutex c(two_, "n");
        auto waiting = std::async(std::launch::async, [&] {
            switch (form) {
                case 0: return c.try_lock_for(hours::max());
                case 1: return c.try_lock_for(std::chrono::nanoseconds::max());
                case 2: return c.try_lock_until(in_hours::max());
                default: return c.try_lock_until(std::chrono::steady_clock::time_point::max());
            }
        });
        a.unlock();
        EXPECT_TRUE(waiting.get()) << form;
        c.unlock();
        a.lock();
    }
    EXPECT_EQ(trinco::detail::saturated(1us + 1ns), 1'001ns);
    EXPECT_EQ(trinco::detail::saturated(hours::max()), std::chrono::nanoseconds::max());
    EXPECT_EQ(trinco::detail::saturated(hours::min()), 0ns);
    EXPECT_EQ(trinco::detail::time_to(in_hours::max()), std::chrono::nanoseconds::max());
    EXPECT_EQ(trinco::detail::time_to(in_hours::min()), 0ns);
}

TEST_F(Mutex, NotRecursiveAndNotForContendingThreads) {
    trinco::mutex a(one_, "n");
    a.lock();
    EXPECT_EQ(code_of([&] { a.lock(); }), errc::would_deadlock);
    EXPECT_EQ(code_of([&] { static_cast<void>(a.try_lock()); }), errc::would_deadlock);
    EXPECT_TRUE(a.held());
}

TEST_F(Mutex, AStopRequestEndsTheWaitAtOnce) {
    trinco::mutex a(one_, "n");
    trinco::mutex b(two_, "n");
    a.lock();
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] {
        std::error_code error;
        b.lock(stop.get_token(), error);
        return error;
    });
    stop.request_stop();
    EXPECT_EQ(waiting.get(), errc::canceled);
    EXPECT_EQ(code_of([&] { b.lock(stop.get_token()); }), errc::canceled) << "requested before";
    EXPECT_FALSE(b.held());
    a.unlock();
    b.lock();
    EXPECT_TRUE(b.held());
}

TEST_F(Mutex, UnlockingTellsWhatItFound) {
    trinco::mutex a(one_, "n");
    std::error_code error;
    a.unlock(error);
    EXPECT_EQ(error, errc::not_held);
    a.lock();
    a.unlock(error);
    EXPECT_FALSE(error);
    a.lock();
    one_.close();
    EXPECT_FALSE(a.held());
    a.unlock(error);
    EXPECT_TRUE(error == errc::shut_down || error == errc::lost) << error.message();
    EXPECT_EQ(code_of([&] { a.lock(); }), errc::shut_down);
}

TEST_F(Mutex, LossIsAStopTokenAndACallback) {
    trinco::mutex a(one_, "n");
    EXPECT_FALSE(a.lost().stop_possible());
    std::promise<std::error_code> told;
    a.on_loss([&](std::error_code why) { told.set_value(why); });
    a.lock();
    const auto lost = a.lost();
    EXPECT_TRUE(lost.stop_possible());
    EXPECT_FALSE(lost.stop_requested());
    one_.close();
    EXPECT_EQ(told.get_future().get(), errc::shut_down);
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_FALSE(a.held());
}

TEST_F(Mutex, DestroyingReleases) {
    auto a = std::make_unique<trinco::mutex>(one_, "n");
    a->lock();
    trinco::mutex b(two_, "n");
    EXPECT_FALSE(b.try_lock());
    a.reset();
    EXPECT_TRUE(b.try_lock());
    trinco::mutex moved(std::move(b));
    EXPECT_TRUE(moved.held());
    moved = trinco::mutex(one_, "m");
    trinco::mutex c(one_, "n");
    EXPECT_TRUE(c.try_lock()) << "assigning over a held mutex must release it";
}

TEST_F(Mutex, OutlivesItsSession) {
    auto s = std::make_unique<session>(where_);
    trinco::mutex a(*s, "n");
    a.lock();
    s.reset();
    EXPECT_FALSE(a.held());
    trinco::mutex b(two_, "n");
    EXPECT_TRUE(b.try_lock());
}

TEST_F(Mutex, BadNamesAreRefused) {
    for (const auto* bad : {"", "a//b", "a/../b", "a/", "a b", "\n"}) {
        try {
            const trinco::mutex m(one_, bad);
            ADD_FAILURE() << "accepted " << bad;
        } catch (const lock_error& e) {
            EXPECT_EQ(e.code(), errc::invalid);
            EXPECT_GT(std::string(e.what()).size(), 20U);
        }
    }
    EXPECT_THROW(trinco::mutex(one_, "n", std::string(4'097, 'x')), lock_error);
}

TEST_F(Mutex, AsyncLockTellsOnceAndCancelEndsIt) {
    trinco::mutex a(one_, "n");
    trinco::mutex b(two_, "n");
    a.lock();
    std::promise<std::error_code> first;
    b.async_lock([&](std::error_code error) { first.set_value(error); });
    b.cancel();
    EXPECT_EQ(first.get_future().get(), errc::canceled);
    std::promise<std::error_code> second;
    b.async_lock([&](std::error_code error) { second.set_value(error); });
    std::promise<std::error_code> again;
    b.async_lock([&](std::error_code error) { again.set_value(error); });
    EXPECT_EQ(again.get_future().get(), errc::would_deadlock);
    a.unlock();
    EXPECT_FALSE(second.get_future().get());
    EXPECT_TRUE(b.held());
}

int threads_now() {
    int n = 0;
    DIR* const dir = ::opendir("/proc/self/task");
    while (const dirent* e = ::readdir(dir)) {
        if (e->d_name[0] != '.') ++n;
    }
    ::closedir(dir);
    return n;
}

TEST_F(Mutex, TenThousandWaitersAreNotTenThousandThreads) {
    constexpr int waiters = 10'000;
    const int threads_before = threads_now();
    trinco::mutex first(two_, "n");
    first.lock();
    std::deque<trinco::mutex> all;
    std::atomic<int> granted = 0;
    std::promise<void> done;
    std::uint64_t before = first.fencing_token();
    for (int i = 0; i < waiters; ++i) {
        auto& m = all.emplace_back(one_, "n");
        m.async_lock([&](std::error_code error) {
            EXPECT_FALSE(error);
            EXPECT_GT(m.fencing_token(), before);
            before = m.fencing_token();
            m.unlock();
            if (++granted == waiters) done.set_value();
        });
    }
    EXPECT_LE(threads_now(), threads_before + 2);
    first.unlock();
    ASSERT_EQ(done.get_future().wait_for(60s), std::future_status::ready) << granted;
}

}  // namespace
