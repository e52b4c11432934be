// The public guarded write on the memory store, with real threads.
#include "trinco/guarded_write.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trinco/election.hpp"
#include "trinco/lock_all.hpp"
#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/semaphore.hpp"
#include "trinco/shared_mutex.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::errc;
using trinco::guarded_write;
using trinco::lock_error;
using trinco::read_guarded;
using trinco::session;

class GuardedWrite : public ::testing::Test {
protected:
    std::string kept(std::string_view key) {
        const auto found = read_guarded(two_, key);
        return found ? found->value : "nothing";
    }
    static std::error_code commit(guarded_write& w) {
        std::error_code error;
        w.commit(error);
        return error;
    }
    trinco::store where_ = trinco::open("memory:", {trinco::drivers::memory()});
    session one_{where_};
    session two_{where_};
};

// The code and the sentence of what f throws.
template <class F>
std::pair<std::error_code, std::string> thrown(F f) {
    try {
        f();
    } catch (const lock_error& e) {
        return {e.code(), e.what()};
    }
    return {};
}

TEST_F(GuardedWrite, PutsErasesAndReads) {
    trinco::mutex m(one_, "accounts/7");
    m.lock();
    EXPECT_FALSE(read_guarded(one_, "accounts:7").has_value());
    const auto first = guarded_write(m).put("accounts:7", "90").put("log:1", "").commit();
    EXPECT_EQ(read_guarded(two_, "accounts:7")->revision, first);
    EXPECT_EQ(kept("accounts:7"), "90");
    EXPECT_EQ(kept("log:1"), "");
    const auto second = guarded_write(m).erase("accounts:7").erase("never:there").commit();
    EXPECT_GT(second, first);
    EXPECT_EQ(kept("accounts:7"), "nothing");
}

TEST_F(GuardedWrite, ComparesRevisions) {
    trinco::mutex m(one_, "n");
    m.lock();
    const auto at = guarded_write(m).put("k:1", "1", guarded_write::absent).commit();
    guarded_write twice(m), wrong(m), right(m);
    EXPECT_EQ(commit(twice.put("k:1", "x", guarded_write::absent)), errc::conflict);
    EXPECT_EQ(commit(wrong.put("k:2", "x").erase("k:1", at + 1)), errc::conflict);
    EXPECT_EQ(kept("k:2"), "nothing") << "half of a write was applied";
    EXPECT_FALSE(commit(right.put("k:1", "2", at)));
    EXPECT_EQ(kept("k:1"), "2");
}

TEST_F(GuardedWrite, NeedsTheGrantItWasMadeUnder) {
    trinco::mutex m(one_, "n");
    guarded_write before(m);
    before.put("k:1", "before");
    EXPECT_EQ(commit(before), errc::not_held);
    m.lock();
    EXPECT_EQ(commit(before), errc::not_held) << "what was read without the lock is worth nothing";
    guarded_write held(m);
    held.put("k:1", "held");
    EXPECT_FALSE(commit(held));
    m.unlock();
    EXPECT_EQ(commit(held), errc::lost);
    m.lock();
    EXPECT_EQ(commit(held), errc::lost) << "the grant is another one";
    EXPECT_EQ(kept("k:1"), "held");
}

TEST_F(GuardedWrite, MayOutliveItsLock) {
    std::optional<guarded_write> late;
    {
        trinco::mutex m(one_, "n");
        m.lock();
        late.emplace(m).put("k:1", "late");
    }
    EXPECT_EQ(commit(*late), errc::lost);
    EXPECT_EQ(thrown([&] { late->commit(); }).first, errc::lost);
    EXPECT_EQ(kept("k:1"), "nothing");
}

TEST_F(GuardedWrite, AClosedSessionGuardsNothing) {
    trinco::mutex m(one_, "n");
    m.lock();
    guarded_write w(m);
    w.put("k:1", "x");
    one_.close();
    EXPECT_EQ(commit(w), errc::shut_down);
    EXPECT_EQ(kept("k:1"), "nothing");
}

TEST_F(GuardedWrite, EveryKindOfLockGuards) {
    const auto works = [&](trinco::lock_handle& held, const char* key) {
        guarded_write(held).put(key, "1").commit();
        EXPECT_EQ(kept(key), "1");
    };
    trinco::election leader(one_, "e");
    leader.campaign("me");
    works(leader, "k:election");
    trinco::lock_all both(one_, {"a", "b"});
    both.lock();
    works(both, "k:both");
    trinco::semaphore slot(one_, "s", 3);
    slot.acquire();
    works(slot, "k:slot");
    trinco::shared_mutex book(one_, "book");
    book.lock_shared();
    works(book, "k:book");
    guarded_write late(leader);
    late.put("k:election", "late");
    leader.resign();
    EXPECT_EQ(commit(late), errc::lost);
}

TEST_F(GuardedWrite, WhatIsOutOfRangeIsToldAtOnce) {
    trinco::mutex m(one_, "n");
    m.lock();
    guarded_write w(m);
    const auto refused = [&](auto f, const char* said) {
        const auto [code, sentence] = thrown(f);
        EXPECT_EQ(code, errc::invalid) << said;
        EXPECT_NE(sentence.find(said), std::string::npos) << sentence;
    };
    refused([&] { w.put("accounts/7", "x"); }, "':' before any '/'");
    refused([&] { w.erase("trinco:records/once/k"); }, "trinco:records");
    refused([&] { w.put("k:1", std::string(131'073, 'x')); }, "131073");
    refused([&] { w.keep_for(-1s); }, "-1 s");
    refused([&] { w.keep_for(367 * 24h); }, "366 days");
    refused([&] { static_cast<void>(read_guarded(one_, "accounts")); }, "accounts");
    EXPECT_EQ(commit(w), errc::invalid) << "no changes";
    w.put("k:1", "x");
    refused([&] { w.erase("k:1"); }, "twice");
    for (int i = 2; i <= 64; ++i) w.put("k:" + std::to_string(i), "x");
    refused([&] { w.put("k:65", "x"); }, "64");
    EXPECT_FALSE(commit(w));
    guarded_write large(m);
    for (int i = 0; i < 7; ++i) large.put("l:" + std::to_string(i), std::string(131'072, 'x'));
    refused([&] { large.put("l:8", std::string(131'072, 'x')); }, "1048576");
    EXPECT_FALSE(commit(large));
    EXPECT_EQ(kept("l:6").size(), 131'072U);
}

TEST_F(GuardedWrite, SaysWhatHappenedAndWhatNext) {
    trinco::lock_all both(one_, {"a", "b"});
    both.lock();
    guarded_write w(both);
    w.put("k:1", "x");
    both.unlock();
    const auto [code, sentence] = thrown([&] { w.commit(); });
    EXPECT_EQ(code, errc::lost);
    EXPECT_NE(sentence.find("lock_all 'a', 'b'"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("nothing was changed"), std::string::npos) << sentence;
}

// A thread of the parent is often inside of the lock when the child is made, where nobody ever
// leaves it again.
TEST_F(GuardedWrite, AChildProcessIsToldSoWhateverTheParentDid) {
    trinco::mutex m(one_, "n");
    m.lock();
    std::atomic<bool> over = false;
    std::thread busy([&] {
        while (!over) static_cast<void>(m.valid_for());
    });
    for (int i = 0; i < 200 && !HasFailure(); ++i) {
        const auto child = ::fork();
        if (child == 0) {
            ::alarm(5);
            guarded_write w(m);
            w.put("k:1", "x");
            std::error_code read;
            static_cast<void>(read_guarded(one_, "k:1", read));
            ::_exit(commit(w) == errc::forked && read == errc::forked ? 0 : 1);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << "child " << i << " waited for ever, or was not told";
    }
    over = true;
    busy.join();
    EXPECT_EQ(kept("k:1"), "nothing");
}

// Each adds one to a number by reading and writing it, under the lock; none is lost.
TEST_F(GuardedWrite, ReadAndWriteUnderTheLockLosesNothing) {
    std::vector<std::future<void>> all;
    for (int i = 0; i < 8; ++i) {
        all.push_back(std::async(std::launch::async, [&, i] {
            session& on = i % 2 == 0 ? one_ : two_;
            trinco::mutex m(on, "sum");
            for (int n = 0; n < 50; ++n) {
                m.lock();
                const auto before = read_guarded(on, "sum:1");
                const int sum = before ? std::stoi(before->value) : 0;
                guarded_write(m)
                    .put("sum:1", std::to_string(sum + 1), before ? before->revision : 0)
                    .commit();
                m.unlock();
            }
        }));
    }
    for (auto& f : all) f.get();
    EXPECT_EQ(kept("sum:1"), "400");
}

}  // namespace
