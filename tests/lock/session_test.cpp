// The public session on the memory store, with real threads.
#include "trinco/session.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <string>

#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::errc;
using trinco::lock_error;
using trinco::session;
using trinco::session_options;
using trinco::session_state;

class PublicSession : public ::testing::Test {
protected:
    trinco::driver memory_ = trinco::drivers::memory();
    trinco::store where_ = trinco::open("memory:", {memory_});
};

std::string refusal(const trinco::store& where, const session_options& options) {
    try {
        const session s(where, options);
    } catch (const lock_error& e) {
        EXPECT_EQ(e.code(), errc::invalid);
        return e.what();
    }
    return "accepted";
}

TEST_F(PublicSession, OpensHeldAndClosesLost) {
    session s(where_, {.ttl = 15s, .label = "test"});
    EXPECT_EQ(s.state(), session_state::held);
    EXPECT_GT(s.valid_for(), 13s);
    EXPECT_LE(s.valid_for(), 15s);
    EXPECT_EQ(s.ttl(), 15s);
    EXPECT_FALSE(s.id().empty());
    EXPECT_FALSE(s.why());
    EXPECT_FALSE(s.lost().stop_requested());
    s.close();
    EXPECT_EQ(s.state(), session_state::lost);
    EXPECT_EQ(s.valid_for(), 0ns);
    EXPECT_EQ(s.why(), errc::shut_down);
    s.close();
}

TEST_F(PublicSession, BadOptionsAreRefusedWithASentenceThatSaysAll) {
    EXPECT_EQ(refusal(where_, {.ttl = 0s}),
              "trinco: session option ttl is 0 s; allowed is 1 s to 86400 s");
    EXPECT_EQ(refusal(where_, {.label = std::string(257, 'x')}),
              "trinco: session option label is 257 bytes long; allowed is at most 256 bytes");
    EXPECT_EQ(refusal(where_, {.open_timeout = -1ms}),
              "trinco: session option open_timeout is -1 ms; allowed is 0 ms to 1 h");
    EXPECT_EQ(refusal(where_, {.request_timeout = 5ms}),
              "trinco: session option request_timeout is 5 ms; allowed is 10 ms to 1 min");
    EXPECT_NE(refusal(trinco::store(), {}).find("empty"), std::string::npos);
}

TEST_F(PublicSession, TheTwinReturnsALostSession) {
    std::error_code error;
    const session s(where_, {.ttl = 0s}, error);
    EXPECT_EQ(error, errc::invalid);
    EXPECT_EQ(s.state(), session_state::lost);
    EXPECT_TRUE(s.lost().stop_requested());
    EXPECT_EQ(s.why(), errc::invalid);
    const session good(where_, {}, error);
    EXPECT_FALSE(error);
    EXPECT_EQ(good.state(), session_state::held);
}

std::string refused_mutex(session& on) {
    try {
        const trinco::mutex m(on, "n");
    } catch (const lock_error& e) {
        EXPECT_EQ(e.code(), errc::invalid);
        return e.what();
    }
    return "accepted";
}

TEST_F(PublicSession, WhatWasNotOpenedAndWhatWasMovedFromAreToldApart) {
    std::error_code error;
    session refused(where_, {.ttl = 0s}, error);
    session moved = std::move(refused);
    EXPECT_EQ(moved.why(), errc::invalid);
    EXPECT_NE(refused_mutex(moved).find("not opened"), std::string::npos);
    session no_store(trinco::store(), {}, error);
    EXPECT_EQ(no_store.why(), errc::invalid);

    moved = session(where_);
    EXPECT_FALSE(moved.why());
    EXPECT_EQ(refused_mutex(moved), "accepted");
    const session taken = std::move(moved);
    EXPECT_EQ(moved.why(), errc::lost);  // NOLINT(bugprone-use-after-move): it is the point
    EXPECT_NE(refused_mutex(moved).find("moved from"), std::string::npos);
}

TEST_F(PublicSession, ALockOfAClosedSessionIsRefusedWithWhatToDo) {
    session s(where_);
    trinco::mutex m(s, "n");
    s.close();
    std::error_code error;
    m.lock(error);
    EXPECT_EQ(error, errc::shut_down);
    try {
        m.lock();
        ADD_FAILURE() << "locked";
    } catch (const lock_error& e) {
        EXPECT_EQ(e.code(), errc::shut_down);
        EXPECT_EQ(std::string(e.what()),
                  "trinco: mutex 'n': its session is closed, which frees its locks; make a new "
                  "session, and a mutex on it");
    }
}

TEST_F(PublicSession, OutlivesItsStoreHandleAndMoves) {
    auto where = trinco::open("memory:", {memory_});
    session s(where);
    where.close();
    session moved(std::move(s));
    EXPECT_EQ(moved.state(), session_state::held);
    moved = session(where_);
    EXPECT_EQ(moved.state(), session_state::held);
}

TEST_F(PublicSession, ClosingTellsTheLocksInOrderAndOutsideOfOurLocks) {
    session s(where_);
    std::promise<std::string> told;
    std::string order;
    trinco::mutex first(s, "first");
    trinco::mutex second(s, "second");
    first.on_loss([&](std::error_code why) {
        order += "1";
        // Everything may be asked from a callback.
        EXPECT_EQ(why, errc::shut_down);
        EXPECT_FALSE(first.held());
        EXPECT_FALSE(second.held());
        EXPECT_EQ(s.state(), session_state::lost);
    });
    second.on_loss([&](std::error_code) { told.set_value(order + "2"); });
    first.lock();
    second.lock();
    s.close();
    EXPECT_EQ(told.get_future().get(), "12");
}

TEST_F(PublicSession, AChildProcessIsToldSoAndHarmsNothing) {
    session s(where_);
    trinco::mutex held(s, "held");
    trinco::mutex other(s, "other");
    held.lock();
    const auto child = ::fork();
    if (child == 0) {
        // No assertions here: the exit code tells.
        int bad = 0;
        std::error_code error;
        other.lock(error);
        if (error != errc::forked) bad |= 1;
        held.unlock(error);
        if (error != errc::forked) bad |= 2;
        if (held.held() || s.state() != session_state::lost || s.why() != errc::forked) bad |= 4;
        try {
            static_cast<void>(other.try_lock());
            bad |= 8;
        } catch (const lock_error& e) {
            if (e.code() != errc::forked) bad |= 8;
        }
        { const auto taken = std::move(held); }
        { const auto taken = std::move(s); }
        ::_exit(bad);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "the child did not end by itself";
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(held.held()) << "the child's copy released the parent's lock";
    other.lock();
    EXPECT_TRUE(other.held());
}

}  // namespace
