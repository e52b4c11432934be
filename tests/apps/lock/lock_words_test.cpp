// What a waiter is told of its place, and when a lease is said to be overdue.
#include "apps/trinco/lock/lock_words.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/trinco/lock/opening_time.hpp"
#include "apps/trinco/lock/renewal_notice.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::entry;

entry by(std::string handle, bool holds = false) {
    entry e;
    e.name = "job";
    e.handle = std::move(handle);
    e.holds = holds;
    return e;
}

std::string place(const std::vector<entry>& queue) {
    return place_of(queue, [](const entry& e) { return e.handle.starts_with("me/"); });
}

TEST(LockWords, ANewHolderIsNewsAlsoWhereTheStoreKeepsNoOrder) {
    const auto first = place({by("a/1", true)});
    EXPECT_EQ(first, place({by("a/1", true)}));
    EXPECT_NE(first, place({by("b/1", true)}));
    EXPECT_NE(first, place({})) << "nobody has it just now";
    EXPECT_NE("", place({})) << "it has been told";
}

TEST(LockWords, HowManyAreAheadIsNewsAndHowManyAreBehindIsNot) {
    const auto second = place({by("a/1", true), by("b/1"), by("me/1")});
    EXPECT_EQ(second, place({by("a/1", true), by("b/1"), by("me/1"), by("c/1")}));
    EXPECT_NE(second, place({by("a/1", true), by("me/1")}));
    EXPECT_NE(second, place({by("b/1", true), by("a/1"), by("me/1")}));
}

lock_look look(std::chrono::nanoseconds valid_for, bool is_uncertain) {
    lock_look at{};
    at.valid_for = valid_for;
    at.is_uncertain = is_uncertain;
    at.held = true;
    at.ttl = 15s;
    return at;
}

TEST(RenewalNotice, TellsOnceThatItIsOverdueAndOnceThatItIsWellAgain) {
    renewal_notice notice;
    const auto why = [] { return std::string("10.0.0.1:2379: connection refused"); };
    EXPECT_EQ("", notice.look(look(12s, false), why));
    // Believed are 15 s less a twentieth.
    EXPECT_EQ(
        "it has not been renewed for 8.3 s (10.0.0.1:2379: connection refused); it is lost in 6 s "
        "unless that succeeds",
        notice.look(look(6s, true), why));
    EXPECT_EQ("", notice.look(look(5s, true), why));
    EXPECT_EQ("it is renewed again", notice.look(look(14s, false), why));
    EXPECT_EQ("", notice.look(look(13s, false), why));
    EXPECT_NE("", notice.look(look(6s, true), why)) << "a second time";
}

TEST(RenewalNotice, SaysNothingOfWhatIsSaidOtherwise) {
    renewal_notice notice;
    const auto nothing = [] { return std::string(); };
    auto gone = look(0s, true);
    gone.held = false;
    EXPECT_EQ("", notice.look(gone, nothing));
    auto wanted = look(6s, true);
    wanted.asked_back = true;
    EXPECT_EQ("", notice.look(wanted, nothing));
}

TEST(RenewalNotice, ClocksThatDisagreeAreNoRenewalThatFailed) {
    renewal_notice notice;
    const auto said = notice.look(look(0s, true), [] { return std::string(); });
    EXPECT_NE(std::string::npos, said.find("clocks")) << said;
}

TEST(OpeningTime, IsThatOfSessionsAndNotBeyondTheWait) {
    const auto in = [](auto d) { return detail::boot_clock::now() + d; };
    EXPECT_EQ(5s, opening_time(std::nullopt, true));
    EXPECT_EQ(5s, opening_time(in(1h), true));
    EXPECT_LE(opening_time(in(3s), true), 3s);
    EXPECT_GT(opening_time(in(3s), true), 1s);
    EXPECT_EQ(1s, opening_time(in(-1s), true)) << "a short wait is not one for the store";
    EXPECT_EQ(1s, opening_time(in(10ms), true));
    EXPECT_EQ(0s, opening_time(in(-1s), false));
}

}  // namespace
}  // namespace trinco::program
