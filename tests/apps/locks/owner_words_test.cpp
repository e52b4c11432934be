#include "apps/trinco/locks/owner_words.hpp"

#include <gtest/gtest.h>

#include "apps/trinco/locks/lock_show.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

detail::entry entry_of(std::string info) {
    detail::entry e;
    e.name = "job";
    e.handle = "13b0/7 job/13b0";
    e.info = std::move(info);
    e.left = 9s;
    return e;
}

TEST(OwnerWords, WhoSaysWhoItIsIsCalledSo) {
    const auto e = entry_of("vm:12 sh");
    EXPECT_EQ(owner_name(e), "vm:12 sh");
    EXPECT_EQ(owner_words(e, 100), "\"vm:12 sh\"");
}

TEST(OwnerWords, WhoDoesNotIsFoundByItsLease) {
    const auto e = entry_of("");
    EXPECT_EQ(owner_name(e), "lease 13b0");
    EXPECT_EQ(owner_words(e, 100), "a program that does not say who it is (lease 13b0)");
}

TEST(OwnerWords, WhatIsNotKnownIsNoTime) {
    auto e = entry_of("a");
    EXPECT_EQ(age_words(e), "") << "since when it waits";
    e.since = 3s;
    EXPECT_EQ(age_words(e), " for 3 s");
    e.holds = true;
    EXPECT_EQ(age_words(e), "") << "since when it holds";
    e.held = 2s;
    EXPECT_EQ(age_words(e), " for 2 s");
}

TEST(OwnerWords, TablesAndJsonLeaveOutWhatIsNotKnown) {
    auto e = entry_of("");
    e.holds = true;
    EXPECT_EQ(locks_table({{"job", {e}, {e}}}),
              "NAME  HOLDER      HELD  TTL  WAITERS  WAIT  TOKEN\n"
              "job   lease 13b0  -     9 s  1        -     -\n");
    EXPECT_EQ(entry_json(e).text(), R"({"owner":"","kind":"exclusive","ttl_left_ms":9000})");
}

}  // namespace
}  // namespace trinco::program
