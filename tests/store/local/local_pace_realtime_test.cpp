// What makes calls quick and waiting cheap costs nothing of what is promised: a thread that stays
// awake for a moment misses nobody when it falls asleep, and what is read ahead or is put off is
// still true.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "store/local/local_locks.hpp"
#include "tests/store/local/lock_client.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using claims = std::vector<claim_id>;

class LocalPace : public ::testing::Test {
protected:
    static claims owned(lock_client& c, const std::string& on) {
        claims all;
        bool over = false;
        const op asking = c.store().owned(on, c.on().now() + 20s, [&](std::error_code e, claims l) {
            EXPECT_FALSE(e);
            all = std::move(l);
            over = true;
        });
        EXPECT_TRUE(c.on().run_until([&] { return over; }, 30s));
        return all;
    }
    // As a session does: asked in the completion of the renewal of `on`.
    static claims owned_after_renewal(lock_client& c, const std::string& on,
                                      const std::string& of) {
        claims all;
        bool over = false;
        op asking;
        const op renewing =
            c.store().renew(on, c.on().now() + 20s, [&](std::error_code error, auto) {
                EXPECT_FALSE(error);
                asking = c.store().owned(of, c.on().now() + 20s, [&](std::error_code e, claims l) {
                    EXPECT_FALSE(e);
                    all = std::move(l);
                    over = true;
                });
            });
        EXPECT_TRUE(c.on().run_until([&] { return over; }, 30s));
        return all;
    }
    // Whether the end of a claim that is no more is told in much less than a reading again takes.
    static bool is_told_of_its_end(lock_client& c, const std::string& on, std::uint64_t id) {
        std::error_code told;
        const op watching = c.store().on_gone(on, {id}, [&](std::error_code e) { told = e; });
        c.on().run_until([&] { return static_cast<bool>(told); }, 900ms);
        return told == errc::lost;
    }

    scratch_folder folder_;
    local_settings settings_ = local_settings_for(folder_.file());
};

// Without sessions nothing else would wake the worker's thread.
TEST_F(LocalPace, WhoeverCallsAfterAnyPauseIsAnswered) {
    lock_client one(settings_);
    std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same pauses each time
    std::uniform_int_distribution<int> pauses(0, 250);
    for (int i = 0; i < 3'000; ++i) {
        const auto until = boot_clock::now() + std::chrono::microseconds(pauses(random));
        while (boot_clock::now() < until) {
        }
        const auto before = boot_clock::now();
        EXPECT_FALSE(one.read("nothing").has_value());
        ASSERT_LT(boot_clock::now() - before, 10s) << "call " << i;
    }
}

TEST_F(LocalPace, AClaimThatEndedBeforeItsHolderAskedIsToldSoon) {
    lock_client one(settings_);
    const auto on = one.open();
    for (std::uint64_t id = 1; id <= 20; ++id) {
        ASSERT_FALSE(one.enter(on, id, "n"));
        one.leave(on, id);
        // Before the look that a grant puts off, and after it.
        if (id % 2 == 0) one.on().run_for(20ms);
        EXPECT_TRUE(is_told_of_its_end(one, on, id)) << id;
    }
}

TEST_F(LocalPace, WhatARenewalReadsIsTrueWhenItIsAsked) {
    lock_client one(settings_);
    const auto on = one.open();
    const auto other = one.open();
    ASSERT_FALSE(one.enter(on, 1, "a"));
    ASSERT_FALSE(one.enter(other, 7, "b"));
    EXPECT_EQ(owned_after_renewal(one, on, on), (claims{{1}}));
    ASSERT_FALSE(one.enter(on, 2, "c"));
    EXPECT_EQ(owned(one, on), (claims{{1}, {2}})) << "not what an earlier renewal had read";
    EXPECT_EQ(owned_after_renewal(one, on, other), (claims{{7}})) << "of another lease";
    one.leave(on, 1);
    EXPECT_EQ(owned_after_renewal(one, on, on), (claims{{2}}));
}

}  // namespace
}  // namespace trinco::detail::test
