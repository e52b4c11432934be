// Losses and callbacks with real threads: who is told, where, and whom nobody may keep waiting.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lock/lock_shell.hpp"
#include "lock/session_shell.hpp"
#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::errc;
using trinco::session;
using trinco::session_state;

constexpr auto patience = 20s;  // of the test, for what must happen at once

// Opened at the end of a test that fails half way, too.
class gate {
public:
    ~gate() { open(); }
    void open() {
        if (!opened_.exchange(true)) way_.set_value();
    }
    void pass() const { passed_.wait(); }

private:
    std::promise<void> way_;
    std::shared_future<void> passed_ = way_.get_future().share();
    std::atomic<bool> opened_ = false;
};

class event {
public:
    void happens() {
        if (!happened_.exchange(true)) told_.set_value();
    }
    [[nodiscard]] bool comes() { return future_.wait_for(patience) == std::future_status::ready; }
    [[nodiscard]] bool came() const { return happened_; }

private:
    std::promise<void> told_;
    std::future<void> future_ = told_.get_future();
    std::atomic<bool> happened_ = false;
};

std::string thread_name() {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    return name.data();
}

class Loss : public ::testing::Test {
protected:
    trinco::store where_ = trinco::open("memory:", {trinco::drivers::memory()});
};

TEST_F(Loss, ACallbackThatWaitsKeepsNoTokenFromBeingRequested) {
    gate go;
    event begun;
    std::vector<std::unique_ptr<event>> told;
    session s(where_);
    std::vector<trinco::mutex> all;
    for (int i = 0; i < 20; ++i) {
        all.emplace_back(s, "n/" + std::to_string(i)).lock();
        told.push_back(std::make_unique<event>());
    }
    event later;
    all[0].on_loss([&](std::error_code) {
        begun.happens();
        go.pass();
    });
    all[1].on_loss([&](std::error_code) { later.happens(); });
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> on_tokens;
    for (std::size_t i = 0; i < all.size(); ++i) {
        on_tokens.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(
            all[i].lost(), [&, i] { told[i]->happens(); }));
    }
    event whole;
    const std::stop_callback on_session(s.lost(), [&] { whole.happens(); });
    s.close();
    ASSERT_TRUE(begun.comes());
    for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_TRUE(told[i]->comes()) << "of lock " << i;
        EXPECT_TRUE(all[i].lost().stop_requested());
        EXPECT_FALSE(all[i].held());
    }
    EXPECT_TRUE(whole.comes());
    EXPECT_FALSE(later.came()) << "callbacks must keep their order";
    go.open();
    EXPECT_TRUE(later.comes());
}

TEST_F(Loss, AStopCallbackThatWaitsKeepsNoOtherTokenFromBeingRequested) {
    gate go;
    event begun;
    event other;
    session s(where_);
    trinco::mutex a(s, "a");
    trinco::mutex b(s, "b");
    a.lock();
    b.lock();
    const std::stop_callback waits(a.lost(), [&] {
        begun.happens();
        go.pass();
    });
    const std::stop_callback quick(b.lost(), [&] { other.happens(); });
    s.close();
    EXPECT_TRUE(begun.comes());
    EXPECT_TRUE(other.comes());
    go.open();
}

TEST_F(Loss, TheTokenIsRequestedBeforeTheCallback) {
    for (int i = 0; i < 200; ++i) {
        event told;
        std::atomic<bool> requested = false;
        session s(where_);
        trinco::mutex m(s, "n");
        m.lock();
        m.on_loss([&, token = m.lost()](std::error_code) {
            requested = token.stop_requested();
            told.happens();
        });
        s.close();
        ASSERT_TRUE(told.comes());
        ASSERT_TRUE(requested);
    }
}

TEST_F(Loss, NothingIsCalledAfterTheMutexIsGone) {
    gate go;
    event begun;
    std::atomic<int> calls = 0;
    {
        session s(where_);
        trinco::mutex first(s, "first");
        auto second = std::make_unique<trinco::mutex>(s, "second");
        trinco::mutex third(s, "third");
        first.on_loss([&](std::error_code) {
            begun.happens();
            go.pass();
        });
        second->on_loss([&](std::error_code) { ++calls; });
        third.on_loss([&](std::error_code) { ++calls; });
        first.lock();
        second->lock();
        third.lock();
        s.close();
        ASSERT_TRUE(begun.comes());
        second.reset();
        third.on_loss(nullptr);
        go.open();
    }
    EXPECT_EQ(calls, 0);
}

TEST_F(Loss, DestroyingWaitsForTheCallbackUnderWay) {
    gate go;
    event begun;
    std::atomic<bool> ended = false;
    session s(where_);
    auto m = std::make_unique<trinco::mutex>(s, "n");
    m->on_loss([&](std::error_code) {
        begun.happens();
        go.pass();
        for (int i = 0; i < 50; ++i) std::this_thread::yield();
        ended = true;
    });
    m->lock();
    s.close();
    ASSERT_TRUE(begun.comes());
    const std::jthread opener([&] { go.open(); });
    m.reset();
    EXPECT_TRUE(ended);
}

TEST_F(Loss, ACallbackMayDestroyItsMutexAndItsSession) {
    event told;
    auto s = std::make_unique<session>(where_);
    auto m = std::make_unique<trinco::mutex>(*s, "n");
    m->on_loss([&](std::error_code) {
        m.reset();
        s.reset();
        told.happens();
    });
    m->lock();
    s->close();
    ASSERT_TRUE(told.comes());
    session next(where_);
    trinco::mutex again(next, "n");
    EXPECT_TRUE(again.try_lock());
}

TEST_F(Loss, ACallbackMayLockAndWait) {
    event told;
    session s(where_);
    session spare(where_);
    trinco::mutex m(s, "n");
    trinco::mutex n(spare, "n");
    m.on_loss([&](std::error_code) {
        n.lock();
        told.happens();
    });
    m.lock();
    s.close();
    ASSERT_TRUE(told.comes());
    EXPECT_TRUE(n.held());
}

// Says on which thread it ended.
struct last_words {
    std::promise<std::string>& where;
    ~last_words() { where.set_value(thread_name()); }
};

TEST_F(Loss, WhatACallbackOwnsEndsOnTheThreadOfCallbacks) {
    session s(where_);
    // Which thread is the last to know of the wait is a matter of luck.
    for (int i = 0; i < 300; ++i) {
        std::promise<std::string> where;
        {
            // The usual way to keep a lock alive for its own callback.
            auto own = std::make_shared<trinco::mutex>(s, "own");
            auto words = std::make_shared<last_words>(where);
            auto* const m = own.get();
            m->async_lock([own = std::move(own), words = std::move(words)](std::error_code) {});
        }
        auto ended = where.get_future();
        ASSERT_EQ(ended.wait_for(patience), std::future_status::ready);
        ASSERT_EQ(ended.get(), "trinco-calls");
    }
    trinco::mutex other(s, "own");
    EXPECT_TRUE(other.try_lock_for(patience)) << "the lock did not end with its callback";
}

TEST_F(Loss, WhatTheSessionsCallbackOwnsEndsOnTheThreadOfCallbacks) {
    std::promise<std::string> where;
    session s(where_,
              {.on_lost = [words = std::make_shared<last_words>(where)](std::error_code) {}});
    s.close();
    auto ended = where.get_future();
    ASSERT_EQ(ended.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(ended.get(), "trinco-calls");
}

TEST_F(Loss, TakesNoThreadWhenNobodyIsToBeTold) {
    const auto threads = [] {
        const std::filesystem::directory_iterator tasks("/proc/self/task");
        return std::distance(begin(tasks), end(tasks));
    };
    session s(where_);
    trinco::mutex m(s, "x");
    m.lock();
    const auto before = threads();
    s.close();
    EXPECT_EQ(threads(), before);
    // Whoever asks afterwards is told all the same.
    EXPECT_TRUE(s.lost().stop_requested());
    EXPECT_TRUE(m.lost().stop_requested());
    EXPECT_FALSE(m.held());
}

TEST_F(Loss, AQuickAnswerComesOnTheLoopsThread) {
    session s(where_);
    const auto lock = std::make_shared<trinco::detail::lock_shell>(
        trinco::detail::lock_access::shell(s), std::vector<trinco::detail::part>{{.name = "x"}},
        "");
    std::promise<std::pair<std::error_code, std::string>> answer;
    lock->async_lock_quick(
        [&](std::error_code error) {
            answer.set_value({error, thread_name()});
        },
        {});
    const auto [error, thread] = answer.get_future().get();
    EXPECT_FALSE(error);
    EXPECT_EQ(thread, "trinco");
    trinco::mutex other(s, "x");
    EXPECT_FALSE(other.try_lock());
    lock->retire();
    EXPECT_TRUE(other.try_lock_for(patience));
}

TEST_F(Loss, TheThreadThatRenewsNeverWaits) {
    auto s = std::make_unique<session>(where_);
    session two(where_);
    trinco::mutex held(*s, "n");
    held.lock();
    auto waiter = std::make_unique<trinco::mutex>(*s, "n");
    std::vector<std::error_code> said(5);
    event over;
    trinco::detail::lock_access::shell(*s)->on().post([&] {
        waiter->lock(said[0]);
        static_cast<void>(waiter->try_lock(said[1]));
        static_cast<void>(waiter->try_lock_for(1h, said[2]));
        held.unlock(said[3]);
        waiter.reset();
        s->close(said[4]);
        s.reset();
        over.happens();
    });
    ASSERT_TRUE(over.comes());
    EXPECT_EQ(said[0], errc::would_deadlock);
    EXPECT_EQ(said[1], errc::would_deadlock);
    EXPECT_EQ(said[2], errc::would_deadlock);
    EXPECT_EQ(said[3], errc::unknown_outcome);
    EXPECT_EQ(said[4], errc::unknown_outcome);
    trinco::mutex next(two, "n");
    next.lock();
    EXPECT_TRUE(next.held()) << "it was not released all the same";
}

}  // namespace
