// What `trinco locks watch` tells of two looks, and how the rows of a listing come about.
#include "apps/trinco/locks/lock_changes.hpp"

#include <gtest/gtest.h>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/locks_scene.hpp"

namespace trinco::program {
namespace {

using detail::entry;
using namespace std::chrono_literals;

entry an_entry(const std::string& name, const std::string& handle, bool holds) {
    entry e;
    e.name = name;
    e.handle = handle;
    e.info = "owner of " + handle;
    e.holds = holds;
    e.token = holds ? 7 : 0;
    return e;
}

std::vector<lock_row> rows_of(const std::vector<entry>& entries) {
    std::vector<lock_row> rows;
    add_entries(rows, entries, {});
    return rows;
}

std::vector<std::string> told(lock_changes& changes, const std::vector<entry>& now) {
    std::vector<std::string> all;
    for (const auto& c : changes.look(rows_of(now))) {
        all.push_back(std::string(event_word(c.kind)) + " " + c.name + " " + c.what.handle);
    }
    return all;
}

using words = std::vector<std::string>;

TEST(LockChanges, TheFirstLookFindsEverythingNew) {
    lock_changes changes;
    EXPECT_EQ(told(changes, {an_entry("a", "1", true), an_entry("a", "2", false)}),
              (words{"granted a 1", "waits a 2"}));
    EXPECT_EQ(told(changes, {an_entry("a", "1", true), an_entry("a", "2", false)}), words{});
}

TEST(LockChanges, WhatWentComesBeforeWhatCame) {
    lock_changes changes;
    told(changes, {an_entry("a", "1", true), an_entry("a", "2", false), an_entry("a", "3", false)});
    EXPECT_EQ(told(changes, {an_entry("a", "3", true), an_entry("b", "3", true)}),
              (words{"released a 1", "left a 2", "granted a 3", "granted b 3"}));
    EXPECT_EQ(told(changes, {}), (words{"released a 3", "released b 3"}));
}

TEST(LockChanges, ANewHolderOfTheSameNameIsAnother) {
    lock_changes changes;
    told(changes, {an_entry("a", "1", true)});
    EXPECT_EQ(told(changes, {an_entry("a", "2", true)}), (words{"released a 1", "granted a 2"}));
}

TEST(LockChanges, ThatItIsAskedBackIsToldOnceWithWhoAndWhy) {
    lock_changes changes;
    auto e = an_entry("a", "1", true);
    told(changes, {e});
    e.evicted = detail::eviction{"ann@host", "moving \x1b house"};
    const auto seen = changes.look(rows_of({e}));
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(change_words(seen[0]),
              "a asked back from \"owner of 1\" by \"ann@host\": moving \\x1b house");
    EXPECT_TRUE(changes.look(rows_of({e})).empty());
}

TEST(LockRows, PagesAreJoinedAndPrefixesTakenOff) {
    std::vector<lock_row> rows;
    const lock_scope scope{.prefix = "team/"};
    add_entries(rows, {an_entry("team/a", "1", true)}, scope);
    add_entries(
        rows,
        {an_entry("team/a", "2", false), an_entry("team/ab", "3", true), an_entry("x", "4", true)},
        scope);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].name, "a");
    EXPECT_EQ(rows[0].holders.size(), 1U);
    EXPECT_EQ(rows[0].waiters.size(), 1U);
    EXPECT_EQ(rows[1].name, "ab");
    rows.clear();
    add_entries(rows, {an_entry("team/a", "1", true), an_entry("team/ab", "3", true)},
                {.prefix = "team/", .beginning = "a", .whole_name = true});
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].name, "a");
}

TEST(LockScope, ANameIsThatLockAndAStarOrASlashMakesABeginning) {
    const auto reads = [](const char* word, const char* beginning, bool whole) {
        const auto scope = scope_of(word);
        return scope.beginning == beginning && scope.whole_name == whole;
    };
    EXPECT_TRUE(reads("", "", false));
    EXPECT_TRUE(reads("*", "", false));
    EXPECT_TRUE(reads("a", "a", true));
    EXPECT_TRUE(reads("a*", "a", false));
    EXPECT_TRUE(reads("a/", "a/", false));
    EXPECT_TRUE(reads("a/*", "a/", false));
}

TEST(LockScope, WhatNoNameCanBeginWithIsAMistake) {
    for (const char* word : {"", "a", "a/", "/a", "a/b*", "/"}) {
        EXPECT_FALSE(check_scope(scope_of(word)).has_value()) << word;
    }
    for (const char* word : {"a b", "a//", "../x*", "a b*", "\x1b*"}) {
        const auto bad = check_scope(scope_of(word));
        ASSERT_TRUE(bad.has_value()) << word;
        EXPECT_EQ(bad->code, exit_usage);
    }
}

}  // namespace
}  // namespace trinco::program
