// The contract of lock_store beside queues: records, listing, and the hands of operators.
#pragma once

#include "lock_store_world.hpp"

namespace trinco::test {

using namespace std::chrono_literals;

TEST_P(LockStore, WriteAppliesAllChangesOrNone) {
    ASSERT_FALSE(write(a(), {{"r/1", "one"}, {"r/2", "two"}}).error);
    EXPECT_EQ(read(b(), "r/1").value->value, "one");
    const auto one = read(b(), "r/1").value->revision;
    EXPECT_EQ(write(a(), {{"r/1", "changed"}, {"r/2", "x", one + 1'000'000}}).error,
              errc::conflict);
    EXPECT_EQ(read(b(), "r/1").value->value, "one") << "half of a write was applied";
    ASSERT_FALSE(write(a(), {{"r/1", std::nullopt}}).error);
    EXPECT_FALSE(read(b(), "r/1").value.has_value());
    EXPECT_EQ(read(b(), "r/2").value->value, "two");
}

TEST_P(LockStore, WriteComparesRevisions) {
    if (!world_->applies_once()) GTEST_SKIP() << "a repeated compare is a conflict";
    const auto made = write(a(), {{"r", "1", detail::must_be_absent}});
    ASSERT_FALSE(made.error);
    EXPECT_EQ(read(a(), "r").value->revision, made.value) << "the answer is the new revision";
    EXPECT_EQ(write(a(), {{"r", "2", detail::must_be_absent}}).error, errc::conflict);
    const auto next = write(a(), {{"r", "2", made.value}});
    ASSERT_FALSE(next.error);
    EXPECT_GT(next.value, made.value);
    EXPECT_EQ(write(a(), {{"r", "3", made.value}}).error, errc::conflict);
    EXPECT_EQ(read(a(), "r").value->value, "2");
}

TEST_P(LockStore, WriteExpiresAfterKeep) {
    ASSERT_FALSE(write(a(), {{"short", "x"}}, 5s).error);
    ASSERT_FALSE(write(a(), {{"long", "x"}}).error);
    EXPECT_TRUE(read(a(), "short").value.has_value());
    world_->run_for(6s + world_->expiry_slack());
    EXPECT_FALSE(read(a(), "short").value.has_value());
    EXPECT_TRUE(read(a(), "long").value.has_value());
}

TEST_P(LockStore, ScanShowsRecordsByKeyAndInPages) {
    for (const auto* key : {"s/b", "s/a", "t", "s/c", "s"}) {
        ASSERT_FALSE(write(a(), {{key, std::string("of ") + key}}).error);
    }
    std::vector<std::string> keys;
    std::string from;
    for (int pages = 0; pages < 5; ++pages) {
        const auto page = scan(b(), "s/", from, 2);
        ASSERT_FALSE(page.error);
        EXPECT_LE(page.value.rows.size(), 2U);
        for (const auto& row : page.value.rows) {
            keys.push_back(row.key);
            EXPECT_EQ(row.value, "of " + row.key);
            EXPECT_EQ(row.revision, read(a(), row.key).value->revision);
        }
        from = page.value.next;
        if (from.empty()) break;
    }
    EXPECT_EQ(keys, (std::vector<std::string>{"s/a", "s/b", "s/c"}));
    EXPECT_TRUE(scan(a(), "u").value.rows.empty());
}

TEST_P(LockStore, TurnsTellsWhichPartsAClaimHeads) {
    if (!a().traits().fifo) GTEST_SKIP() << "keeps no order";
    const auto on = open(a());
    const auto another = open(b());
    ASSERT_FALSE(enter(b(), claim(another, 1, {exclusive("m")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("l"), exclusive("m"), exclusive("n")})).error);
    EXPECT_EQ(turns(a(), on, 1).value, (std::vector<bool>{true, false, true}));
    EXPECT_EQ(turns(a(), on, 9).error, errc::lost);
    leave(b(), another, 1);
    EXPECT_EQ(turns(a(), on, 1).value, (std::vector<bool>{true, true, true}));
}

TEST_P(LockStore, AGuardedWriteNeedsTheClaim) {
    if (!a().traits().guarded_writes) GTEST_SKIP() << "not offered";
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 2, {exclusive("n")})).error);
    EXPECT_FALSE(write(a(), {{"r", "mine"}}, 0s, on.id, claim_id{1}).error);
    EXPECT_EQ(write(a(), {{"r", "early"}}, 0s, on.id, claim_id{2}).error, errc::lost);
    leave(a(), on, 1);
    EXPECT_EQ(write(a(), {{"r", "late"}}, 0s, on.id, claim_id{1}).error, errc::lost);
    EXPECT_EQ(read(a(), "r").value->value, "mine");
}

TEST_P(LockStore, AGuardedWriteComparesRevisionsAndAppliesAllOrNothing) {
    if (!a().traits().guarded_writes) GTEST_SKIP() << "not offered";
    if (!world_->applies_once()) GTEST_SKIP() << "a repeated compare is a conflict";
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    const auto made =
        write(a(), {{"d:1", "x", detail::must_be_absent}, {"d:2", "y"}}, 0s, on.id, claim_id{1});
    ASSERT_FALSE(made.error);
    EXPECT_EQ(read(b(), "d:2").value->revision, made.value);
    EXPECT_EQ(
        write(a(), {{"d:1", std::nullopt, made.value + 1}, {"d:2", "z"}}, 0s, on.id, claim_id{1})
            .error,
        errc::conflict);
    EXPECT_EQ(read(b(), "d:2").value->value, "y") << "half of a write was applied";
    EXPECT_FALSE(write(a(), {{"d:1", std::nullopt, made.value}}, 0s, on.id, claim_id{1}).error);
    EXPECT_FALSE(read(b(), "d:1").value.has_value());
    // Who holds nothing is told that, whatever the revisions are.
    leave(a(), on, 1);
    EXPECT_EQ(write(a(), {{"d:2", "late", made.value + 1}}, 0s, on.id, claim_id{1}).error,
              errc::lost);
}

TEST_P(LockStore, AGuardedWriteOfALeaseThatHasEndedIsRefused) {
    if (!a().traits().guarded_writes) GTEST_SKIP() << "not offered";
    const auto revoked = open(a());
    const auto heir = open(b());
    ASSERT_FALSE(enter(a(), claim(revoked, 1, {exclusive("n")})).error);
    ASSERT_FALSE(write(a(), {{"d:1", "mine"}}, 0s, revoked.id, claim_id{1}).error);
    // By another client: the one that holds has not heard of it.
    revoke(b(), revoked);
    EXPECT_EQ(write(a(), {{"d:1", "stale"}}, 0s, revoked.id, claim_id{1}).error, errc::lost);
    world_->run_for(world_->hold_back());
    ASSERT_FALSE(enter(b(), claim(heir, 1, {exclusive("n")})).error);
    ASSERT_FALSE(write(b(), {{"d:1", "heir"}}, 0s, heir.id, claim_id{1}).error);
    EXPECT_EQ(write(a(), {{"d:1", "stale"}}, 0s, revoked.id, claim_id{1}).error, errc::lost);
    EXPECT_EQ(read(a(), "d:1").value->value, "heir");
}

TEST_P(LockStore, AGuardOfSeveralNamesNeedsAllOfThem) {
    if (!a().traits().guarded_writes) GTEST_SKIP() << "not offered";
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("m"), exclusive("n")})).error);
    ASSERT_FALSE(write(a(), {{"d:1", "mine"}}, 0s, on.id, claim_id{1}).error);
    const auto seen = list(b(), "n").value.rows.at(0);
    ASSERT_FALSE(ask_int([&](deadline by, completion<int> f) {
                     return b().evict(seen, true, "operator", "", by, std::move(f));
                 }).error);
    EXPECT_EQ(write(a(), {{"d:1", "late"}}, 0s, on.id, claim_id{1}).error, errc::lost);
    EXPECT_EQ(read(b(), "d:1").value->value, "mine");
}

TEST_P(LockStore, DataAndRecordsAreApart) {
    // Those that look alike: were one written where the other lies, it would be overwritten.
    const std::vector<std::string> keys{"trinco:records/once/a", "once/a", "a:b", "a/b:c", "ab"};
    for (const auto& key : keys) ASSERT_FALSE(write(a(), {{key, "of " + key}}).error);
    for (const auto& key : keys) EXPECT_EQ(read(b(), key).value->value, "of " + key);
    // No queue has data in it.
    const auto on = open(a());
    ASSERT_FALSE(write(a(), {{"n:x/1", "data"}}).error);
    EXPECT_FALSE(enter(a(), claim(on, 1, {exclusive("n")}, true)).error);
    EXPECT_EQ(list(b(), "").value.rows.size(), 1U);
}

TEST_P(LockStore, BadWritesAreRefused) {
    EXPECT_EQ(write(a(), {}).error, errc::invalid);
    EXPECT_EQ(write(a(), {{"", "x"}}).error, errc::invalid);
    EXPECT_EQ(write(a(), {{"r", "x"}}, -1s).error, errc::invalid);
    EXPECT_EQ(write(a(), {{"r", std::string(200'000, 'x')}}).error, errc::invalid);
    EXPECT_FALSE(read(a(), "r").value.has_value());
}

TEST_P(LockStore, OwnedListsWhatHangsOnTheLeaseAlone) {
    const auto on = open(a());
    const auto another = open(b());
    ASSERT_FALSE(enter(a(), claim(on, 5, {exclusive("n")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 3, {exclusive("m"), exclusive("o")})).error);
    ASSERT_FALSE(enter(b(), claim(another, 1, {exclusive("n")})).error);
    EXPECT_EQ(owned(a(), on).value, (std::vector<claim_id>{{3}, {5}}));
}

TEST_P(LockStore, ListShowsQueuesInOrderAndInPages) {
    const auto on = open(a());
    std::uint64_t id = 0;
    for (const auto* name : {"x/a", "x/b", "y"}) {
        for (int i = 0; i < 2; ++i) {
            ASSERT_FALSE(enter(a(), claim(on, ++id, {exclusive(name)})).error);
        }
    }
    const auto all = list(b(), "x/").value;
    const std::size_t of_a_name = world_->lists_who_waits() ? 2 : 1;
    ASSERT_EQ(all.rows.size(), 2 * of_a_name);
    EXPECT_TRUE(all.next.empty());
    EXPECT_EQ(all.rows[0].name, "x/a");
    EXPECT_TRUE(all.rows[0].holds);
    const auto token = verify(a(), on, 1).value.tokens.at(0);
    const bool untold = !world_->tells_held_at_once() && all.rows[0].token == 0;
    EXPECT_TRUE(untold || all.rows[0].token == token) << all.rows[0].token << " is not " << token;
    EXPECT_EQ(all.rows[of_a_name].name, "x/b");
    if (world_->lists_who_waits()) {
        EXPECT_FALSE(all.rows[1].holds);
        EXPECT_FALSE(all.rows[1].held.has_value()) << "it waits";
    }
    if (world_->tells_held_at_once()) {
        ASSERT_TRUE(all.rows[0].held.has_value());
        EXPECT_LE(*all.rows[0].held, all.rows[0].since);
    }
    EXPECT_FALSE(all.rows[0].evicted.has_value());
    EXPECT_GT(all.rows[0].left, 0ms);
    EXPECT_LE(all.rows[0].left, on.ttl);
    EXPECT_TRUE(all.rows[0].handle.starts_with(on.id + "/"))
        << "whose it is: " << all.rows[0].handle;
    std::vector<std::string> handles;
    std::string from;
    do {
        const auto page = list(b(), "", from, 2 * of_a_name).value;
        ASSERT_LE(page.rows.size(), 2 * of_a_name);
        for (const auto& r : page.rows) handles.push_back(r.handle);
        from = page.next;
    } while (!from.empty());
    EXPECT_EQ(handles.size(), 3 * of_a_name) << "a page lost or repeated rows";
}

TEST_P(LockStore, PublishRewritesTheInfo) {
    if (!a().traits().values) GTEST_SKIP() << "not offered";
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    const auto publish = [&](std::uint64_t id, std::string text) {
        return ask_int([&](deadline by, completion<int> f) {
                   return a().publish(on.id, {id}, text, by, std::move(f));
               })
            .error;
    };
    EXPECT_FALSE(publish(1, "new"));
    EXPECT_EQ(list(b(), "n").value.rows.at(0).info, "new");
    EXPECT_EQ(publish(2, "new"), errc::lost);
    EXPECT_EQ(publish(1, std::string(4'097, 'x')), errc::invalid);
}

TEST_P(LockStore, EvictAsksTheHolderOrDeletesExactlyTheEntryThatWasSeen) {
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    std::vector<std::error_code> told;
    const auto watch = a().on_gone(on.id, {1}, [&](std::error_code e) { told.push_back(e); });
    settle();
    const auto seen = list(b(), "n").value.rows.at(0);
    const auto evict = [&](const detail::entry& e, bool now, const char* why = "maintenance") {
        return ask_int([&](deadline by, completion<int> f) {
                   return b().evict(e, now, "operator", why, by, std::move(f));
               })
            .error;
    };
    EXPECT_EQ(evict(seen, false, "two\nlines"), errc::invalid);
    EXPECT_EQ(evict(seen, false, std::string(201, 'x').c_str()), errc::invalid);
    EXPECT_FALSE(list(b(), "n").value.rows.at(0).evicted.has_value());
    EXPECT_FALSE(evict(seen, false));
    const auto marked = list(a(), "n").value.rows.at(0).evicted;
    ASSERT_TRUE(marked.has_value());
    EXPECT_EQ(marked->who, "operator");
    EXPECT_EQ(marked->why, "maintenance");
    settle_until([&] { return told.size() == 1; });
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0], errc::evicted);
    EXPECT_FALSE(verify(a(), on, 1).error) << "asking alone must not take it away";
    // Who asks later is told as well.
    const auto late = a().on_gone(on.id, {1}, [&](std::error_code e) { told.push_back(e); });
    settle_until([&] { return told.size() == 2; });
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told[1], errc::evicted);
    EXPECT_FALSE(evict(seen, true));
    EXPECT_EQ(verify(a(), on, 1).error, errc::lost);
    EXPECT_EQ(evict(seen, true), errc::lost);
    // The same claim entered again is another entry.
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    EXPECT_EQ(evict(seen, true), errc::conflict);
    EXPECT_FALSE(verify(a(), on, 1).error);
}

TEST_P(LockStore, ObserveTellsTheHolderNowAndAtEachChange) {
    const auto on = open(a());
    std::vector<std::optional<std::string>> seen;
    const auto observer = b().observe("n", [&](std::optional<detail::entry> e) {
        seen.push_back(e ? std::optional(e->info) : std::nullopt);
    });
    settle_until([&] { return !seen.empty(); });
    ASSERT_FALSE(seen.empty()) << "nothing told at the beginning";
    EXPECT_EQ(seen.back(), std::nullopt);
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    settle_until([&] { return seen.back() == "info 1"; });
    EXPECT_EQ(seen.back(), "info 1");
    ASSERT_FALSE(enter(a(), claim(on, 2, {exclusive("n")})).error);
    settle();
    EXPECT_EQ(seen.back(), "info 1");
    leave(a(), on, 1);
    settle_until([&] { return seen.back() == "info 2"; });
    EXPECT_EQ(seen.back(), "info 2");
    revoke(a(), on);
    settle_until([&] { return !seen.back(); });
    EXPECT_EQ(seen.back(), std::nullopt);
}

}  // namespace trinco::test
