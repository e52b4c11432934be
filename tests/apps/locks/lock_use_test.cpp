// What several looks tell about the use of a lock, and what `trinco doctor` makes of it.
#include "apps/trinco/locks/lock_use.hpp"

#include <gtest/gtest.h>

#include "apps/trinco/doctor/examine_use.hpp"
#include "apps/trinco/locks/lock_show.hpp"

namespace trinco::program {
namespace {

using detail::entry;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

entry holding(const std::string& handle, milliseconds since,
              std::optional<milliseconds> held = std::nullopt) {
    entry e;
    e.name = "a";
    e.handle = handle;
    e.holds = true;
    e.since = since;
    e.held = held;
    return e;
}

entry waiting(const std::string& handle, milliseconds since) {
    entry e = holding(handle, since);
    e.holds = false;
    return e;
}

std::vector<lock_row> rows_of(const std::vector<entry>& entries) {
    std::vector<lock_row> rows;
    add_entries(rows, entries, {});
    return rows;
}

used_lock only(const lock_use& use) {
    const auto all = use.locks();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? used_lock{} : all.front();
}

std::vector<milliseconds> percentiles(const used_lock& one) {
    const auto ms = [](auto d) { return std::chrono::duration_cast<milliseconds>(d); };
    return {ms(one.waits.p50()), ms(one.waits.p99())};
}

TEST(LockUse, TheShareIsThatOfTheLooksInWhichItWasHeld) {
    lock_use use;
    use.look(rows_of({holding("1", 10ms)}), 0ms);
    use.look({}, 50ms);
    use.look(rows_of({holding("2", 5ms)}), 100ms);
    use.look(rows_of({holding("2", 55ms), waiting("3", 1ms)}), 150ms);
    const auto one = only(use);
    EXPECT_DOUBLE_EQ(one.share(use.looks()), 0.75);
    EXPECT_EQ(one.waited, 1U);
    EXPECT_EQ(one.grants, 1U);  // the first holder was granted before
    EXPECT_EQ(whole_percent(one.share(use.looks())), "75 %");
}

TEST(LockUse, OfASemaphoreItIsThatOfItsPermits) {
    lock_use use;
    auto one = holding("1", 10ms);
    one.kind = detail::claim_kind::permit;
    one.n = 4;
    use.look(rows_of({one}), 0ms);
    auto two = one;
    two.handle = "2";
    use.look(rows_of({one, two, two}), 50ms);
    EXPECT_DOUBLE_EQ(only(use).share(use.looks()), 0.5);
    EXPECT_EQ(only(use).kind, detail::claim_kind::permit);
}

TEST(LockUse, AWaitEndsAtTheGrantAndThatIsKnownToOneLook) {
    lock_use use;
    use.look(rows_of({holding("1", 900ms), waiting("2", 200ms)}), 0ms);
    use.look(rows_of({holding("1", 950ms), waiting("2", 250ms)}), 50ms);
    use.look(rows_of({holding("2", 300ms)}), 100ms);
    use.look(rows_of({holding("2", 800ms)}), 600ms);  // holding is no waiting
    const auto one = only(use);
    EXPECT_EQ(one.waits.count(), 1U);  // how long "1" waited nobody knows
    EXPECT_EQ(percentiles(one), (std::vector<milliseconds>{300ms, 300ms}));
    EXPECT_EQ(one.grants, 1U);
}

TEST(LockUse, AnEntryThatTellsSinceWhenItIsHeldTellsItsWait) {
    lock_use use;
    use.look(rows_of({holding("1", 900ms, 500ms)}), 0ms);
    use.look(rows_of({holding("2", 90ms, 20ms)}), 50ms);
    EXPECT_EQ(percentiles(only(use)), (std::vector<milliseconds>{70ms, 400ms}));
}

TEST(LockUse, WhoWaitsStillCountsSoFarAndWhoSaysNothingOfTimeFromTheFirstLookOn) {
    lock_use use;
    use.look(rows_of({holding("1", 0ms), waiting("go", 0ms)}), 1'000ms);
    use.look(rows_of({holding("1", 0ms), waiting("go", 0ms)}), 1'400ms);
    EXPECT_EQ(percentiles(only(use)), (std::vector<milliseconds>{400ms, 400ms}));
}

TEST(LockUse, TheLongestWaitOfOneLookIsThatOfWaitersAlone) {
    const auto rows = rows_of({holding("1", 5s), waiting("2", 2s), waiting("3", 1s)});
    EXPECT_EQ(longest_wait(rows.front()), 2s);
    EXPECT_EQ(longest_wait(rows_of({holding("1", 5s)}).front()), 0s);
}

TEST(LockUse, WhatIsFreeByTheLastLookIsShownAllTheSame) {
    looked_often seen;
    seen.use.look(rows_of({holding("1", 1ms)}), 0ms);
    seen.use.look({}, 50ms);
    const auto table = locks_table(seen);
    EXPECT_NE(table.find("USED  P99-WAIT"), std::string::npos) << table;
    EXPECT_NE(table.find(" 50 %"), std::string::npos) << table;
    EXPECT_NE(locks_json(seen).find(R"("kind":"exclusive","holders":[],"waiters":0)"),
              std::string::npos)
        << locks_json(seen);
}

// ---- doctor -------------------------------------------------------------------------------------

used_lock used(const std::string& name, double held, std::size_t grants, std::size_t waited) {
    used_lock one;
    one.name = name;
    one.held = held;
    one.grants = grants;
    one.waited = waited;
    one.waits.add(40ms);
    return one;
}

TEST(JudgeUse, MoreThanSeventyPercentOfALockThatIsHandedOnIsAWarning) {
    const auto found = doctor::judge_use({used("stock", 31, 12, 20), used("idle", 2, 1, 0)}, 40);
    EXPECT_EQ(found.how, doctor::level::warn);
    EXPECT_EQ(
        found.sentence,
        R"(the lock "stock" was held 78 % of the time, handed on 12 times, p99 of waits 40 ms)");
    EXPECT_FALSE(found.advice.empty());
    EXPECT_EQ(doctor::judge_use({used("stock", 28, 12, 20)}, 40).how, doctor::level::good);
}

TEST(JudgeUse, ALockThatStaysWithOneHolderOrThatNobodyWaitsForIsNone) {
    EXPECT_EQ(doctor::judge_use({used("leader", 40, 0, 40)}, 40).how, doctor::level::good);
    EXPECT_EQ(doctor::judge_use({used("lonely", 40, 9, 0)}, 40).how, doctor::level::good);
    EXPECT_EQ(doctor::judge_use({}, 3).sentence, "no lock is held");
}

TEST(JudgeUse, AListingThatIsTooLongIsAHintAndAStoreThatIsAwayIsBad) {
    const auto judged = [](errc why, const char* url) {
        return doctor::judge_unlooked({69, "the store could not", make_error_code(why)}, url);
    };
    EXPECT_EQ(judged(errc::busy, "etcd://h").how, doctor::level::warn);
    EXPECT_NE(judged(errc::busy, "etcd://h").sentence.find("other keys"), std::string::npos);
    EXPECT_NE(judged(errc::busy, "etcd://h").advice.find("?prefix="), std::string::npos);
    EXPECT_EQ(judged(errc::busy, "local:/x.db").how, doctor::level::bad);
    EXPECT_EQ(judged(errc::unavailable, "etcd://h").how, doctor::level::bad);
    EXPECT_EQ(judged(errc::unavailable, "etcd://h").sentence, "the store could not");
}

TEST(JudgeUse, ManyAreNotAllNamed) {
    std::vector<used_lock> many;
    for (const char* name : {"a", "b", "c", "d", "e"}) many.push_back(used(name, 39, 2, 2));
    const auto said = doctor::judge_use(many, 40).sentence;
    EXPECT_NE(said.find("; and 2 more"), std::string::npos) << said;
    EXPECT_EQ(said.find("\"d\""), std::string::npos) << said;
}

}  // namespace
}  // namespace trinco::program
