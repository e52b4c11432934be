// Locks on etcd among strangers: entries of Go and etcdctl, stray keys, nested names, prefixes; and
// how many waiters a release wakes.
#include <algorithm>

#include "etcd_locks_world.hpp"

namespace trinco::test {
namespace {

TEST_F(EtcdLocks, AnEntryOfGoExcludesUsAndWeWaitBehindIt) {
    const auto go = strange_lease();
    put("n/" + etcd::lease_text(go), "", go);
    const auto on = open(*a_);
    EXPECT_EQ(enter(*a_, make(on, 1, {"n"}, claim_kind::exclusive, 0, true)), errc::conflict);
    EXPECT_EQ(enter(*a_, make(on, 2, {"n"}, claim_kind::shared, 0, true)), errc::conflict)
        << "an entry without our note is exclusive";
    ASSERT_FALSE(enter(*a_, make(on, 3, {"n"}, claim_kind::shared)));
    const auto waits = await(*a_, on, 3);
    world_.run_for(30s);
    EXPECT_FALSE(waits->answer.has_value());
    etcd_.revoke(go);
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted());
    EXPECT_EQ(etcd_.keys().begin()->first, key_of("n", on, 1)) << "refused claims left their key";
}

TEST_F(EtcdLocks, ABareEntryHoldsWhatItsOwnerSaysAndNothingElse) {
    const auto on = open(*a_);
    auto leads = make(on, 1, {"n"});
    leads.info = "worker-7:8080";
    leads.bare = true;
    ASSERT_FALSE(enter(*a_, leads));
    const auto waits = await(*a_, on, 1);
    const auto value = [&] { return etcd_.keys().begin()->second.value; };
    world_.run_for(30s);
    ASSERT_TRUE(waits->granted());
    EXPECT_EQ(value(), "worker-7:8080") << "what other programs read is only this";
    const auto said = ask<int>([&](deadline by, completion<int> f) {
        return a_->publish(on.id, {1}, "worker-7:9090", by, std::move(f));
    });
    EXPECT_FALSE(said.error);
    EXPECT_EQ(value(), "worker-7:9090");
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(etcd_.keys().empty());
}

TEST_F(EtcdLocks, AContenderOfGoThatCameLaterDoesNotDelayUs) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    const auto go = strange_lease();
    put("n/" + etcd::lease_text(go), "", go);
    const auto waits = await(*a_, on, 2);
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(EtcdLocks, StrayKeysAndNestedNamesDoNotBlock) {
    put("n/stray", "left by hand", 0);
    put("n/1f", "no lease", 0);
    const auto nested = open(*b_);
    std::vector<std::string> many;
    for (int i = 0; i < 30; ++i) many.push_back("n/child" + std::to_string(10 + i));
    ASSERT_FALSE(enter(*b_, make(nested, 1, many)));
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"}, claim_kind::exclusive, 0, true)));
    EXPECT_FALSE(verify(*a_, on, 1).error);
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    const auto waits = await(*a_, on, 2);
    world_.run_for(1s);
    EXPECT_FALSE(waits->granted());
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(EtcdLocks, EachReleaseWakesOneOfManyWaiters) {
    constexpr std::uint64_t many = 100;
    // No message overtakes another, which the watch of a client would notice half a second later.
    net_.set_faults({.delay_min = 1ms, .delay_max = 1ms});
    const auto on = open(*a_, 3'600s);
    std::vector<std::unique_ptr<waiting>> waits;
    for (std::uint64_t id = 1; id <= many; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"})));
        waits.push_back(await(*a_, on, id));
    }
    world_.run_for(100ms);
    for (std::uint64_t id = 1; id < many; ++id) {
        ASSERT_TRUE(waits[id - 1]->granted());
        ASSERT_FALSE(waits[id]->granted());
        const auto before = etcd_.reads();
        ASSERT_FALSE(leave(*a_, on, id));
        world_.run_for(50ms);
        ASSERT_TRUE(waits[id]->granted()) << "after release " << id;
        ASSERT_EQ(etcd_.reads() - before, 2U) << "one look: its own entry and its queue";
        ASSERT_GT(waits[id]->token(), waits[id - 1]->token());
    }
}

TEST_F(EtcdLocks, AReleasedPermitWakesTheFirstInLineAndItsFollower) {
    constexpr std::uint64_t many = 30;
    const auto on = open(*a_, 3'600s);
    std::vector<std::unique_ptr<waiting>> waits;
    for (std::uint64_t id = 1; id <= many; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"}, claim_kind::permit, 3)));
        waits.push_back(await(*a_, on, id));
    }
    world_.run_for(200ms);
    const auto granted = [&] {
        return std::count_if(waits.begin(), waits.end(),
                             [](const auto& w) { return w->granted(); });
    };
    ASSERT_EQ(granted(), 3);
    // The middle one of the holders first: whichever leaves frees a place.
    std::vector<std::uint64_t> leavers{2, 1, 3};
    for (std::uint64_t id = 4; id < many - 3; ++id) leavers.push_back(id);
    std::ptrdiff_t expected = 3;
    for (const auto id : leavers) {
        const auto before = etcd_.reads();
        ASSERT_FALSE(leave(*a_, on, id));
        world_.run_for(100ms);
        ASSERT_EQ(granted(), ++expected) << "after " << id << " left";
        ASSERT_LE(etcd_.reads() - before, 9U) << "three looks of two reads and its own entry";
    }
}

TEST_F(EtcdLocks, APermitBehindManyNestedNamesIsWokenByWhicheverHolderLeaves) {
    const auto on = open(*a_);
    const auto nested = open(*b_);
    for (std::uint64_t id = 1; id <= 2; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"}, claim_kind::permit, 2)));
    }
    std::vector<std::string> many;
    for (int i = 0; i < 30; ++i) many.push_back("n/child" + std::to_string(10 + i));
    ASSERT_FALSE(enter(*b_, make(nested, 1, many)));
    ASSERT_FALSE(enter(*a_, make(on, 3, {"n"}, claim_kind::permit, 2)));
    const auto waits = await(*a_, on, 3);
    world_.run_for(100ms);
    ASSERT_FALSE(waits->granted());
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(200ms);
    EXPECT_TRUE(waits->granted());
}

TEST_F(EtcdLocks, APermitIsGrantedAlsoWhileWhoeverIsBeforeItSleeps) {
    const auto on = open(*a_, 3'600s);
    for (std::uint64_t id = 1; id <= 4; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"}, claim_kind::permit, 2)));
    }
    const auto last = await(*a_, on, 4);
    world_.run_for(1s);
    ASSERT_FALSE(last->granted());
    // The third has its turn now, and does not take it: nothing of what the last one watches moves.
    ASSERT_FALSE(leave(*a_, on, 1));
    ASSERT_FALSE(leave(*a_, on, 2));
    world_.run_for(11s);
    EXPECT_TRUE(last->granted());
}

TEST_F(EtcdLocks, NamesThatBeginBelowTheSlashAreListed) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"-a", ".b", "c"})));
    const auto all = list(*a_, "");
    std::vector<std::string> names;
    for (const auto& row : all.value.rows) names.push_back(row.name);
    EXPECT_EQ(names, (std::vector<std::string>{"-a", ".b", "c"}));
}

TEST_F(EtcdLocks, AWaiterBehindManyReadersWaitsForTheWriterAmongThem) {
    const auto on = open(*a_, 3'600s);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    for (std::uint64_t id = 2; id <= 100; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"}, claim_kind::shared)));
    }
    const auto last = await(*a_, on, 100);
    world_.run_for(100ms);
    EXPECT_FALSE(last->granted()) << "the writer is behind what one read shows";
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(100ms);
    EXPECT_TRUE(last->granted());
}

TEST_F(EtcdLocks, ATokenIsAboveWhateverWasGrantedBefore) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    const auto waits = await(*a_, on, 2);
    put("other", "", 0);
    ASSERT_FALSE(leave(*a_, on, 1));
    const auto released = etcd_.revision();
    world_.run_for(1s);
    ASSERT_TRUE(waits->granted());
    EXPECT_GE(waits->token(), static_cast<std::uint64_t>(released));
    put("other", "again", 0);
    EXPECT_EQ(verify(*a_, on, 2).value.tokens.at(0), waits->token()) << "it stays what it is";
}

TEST_F(EtcdLocks, AFreeLockTellsAtOnceSinceWhenItIsHeldAndItsToken) {
    const auto on = open(*a_);
    put("other", "", 0);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on, 3, {"m"}, claim_kind::exclusive, 0, true)));
    const auto waits = await(*a_, on, 1);
    const auto tried = await(*a_, on, 3);
    world_.run_for(100ms);
    ASSERT_TRUE(waits->granted() && tried->granted());
    const auto rows = list(*b_, "n").value.rows;
    EXPECT_EQ(rows.at(0).held, rows.at(0).since);
    EXPECT_EQ(rows.at(0).token, waits->token());
    EXPECT_EQ(rows.at(1).token, 0U);
    EXPECT_FALSE(rows.at(1).held.has_value());
    EXPECT_EQ(list(*b_, "m").value.rows.at(0).token, tried->token());
}

TEST_F(EtcdLocks, ALockHeldForASecondTellsSinceWhenAndItsToken) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    auto waits = await(*a_, on, 2);
    world_.run_for(10s);
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(1s);
    ASSERT_TRUE(waits->granted());
    const auto gone = a_->on_gone(on.id, {2}, [](std::error_code) { FAIL(); });
    const auto early = list(*b_, "n").value.rows.at(0);
    EXPECT_FALSE(early.held.has_value());
    EXPECT_EQ(early.token, 0U) << "not that of the entering, which is less";
    world_.run_for(5s);
    const auto row = list(*b_, "n").value.rows.at(0);
    ASSERT_TRUE(row.held.has_value());
    EXPECT_GT(*row.held, 4s);
    EXPECT_LT(*row.held, 7s);
    EXPECT_GT(row.since, 15s);
    EXPECT_EQ(row.token, waits->token());
}

TEST_F(EtcdLocks, ListingGoesThroughNestedAndForeignNamesPageByPage) {
    const auto on = open(*a_);
    const auto go = strange_lease();
    std::uint64_t id = 0;
    for (const auto* name : {"l", "l", "l/a", "l/a", "l/a/b", "l/c", "l-1", "m"}) {
        ASSERT_FALSE(enter(*a_, make(on, ++id, {name})));
    }
    put("l/" + etcd::lease_text(go), "of go", go);
    put("l/stray", "", 0);
    ASSERT_FALSE(write(*a_, {{"l/record", "x"}}).error);
    std::vector<std::string> seen;
    std::string from;
    do {
        const auto page = list(*b_, "l", from, 3);
        ASSERT_FALSE(page.error);
        ASSERT_LE(page.value.rows.size(), 3U);
        for (const auto& row : page.value.rows) {
            seen.push_back(row.name + (row.holds ? " holds" : " waits"));
            if (row.info == "of go") seen.back() += " go";
        }
        from = page.value.next;
    } while (!from.empty());
    EXPECT_EQ(seen,
              (std::vector<std::string>{"l-1 holds", "l holds", "l waits", "l waits go",
                                        "l/a holds", "l/a waits", "l/a/b holds", "l/c holds"}));
}

TEST_F(EtcdLocks, ManyNamesAreListedWithoutWalkingAllForEachPage) {
    const auto on = open(*a_, 3'600s);
    for (std::uint64_t i = 0; i < 200; ++i) {
        std::vector<std::string> names;
        for (std::uint64_t k = 0; k < 30; ++k) {
            names.push_back("q/" + std::to_string(100'000 + i * 30 + k));
        }
        ASSERT_FALSE(enter(*a_, make(on, i + 1, names)));
    }
    std::size_t rows = 0;
    std::string from;
    do {
        const auto page = list(*b_, "q/", from, 1'000);
        ASSERT_FALSE(page.error);
        rows += page.value.rows.size();
        from = page.value.next;
    } while (!from.empty());
    EXPECT_EQ(rows, 6'000U);
}

TEST_F(EtcdLocks, AnEntryOfOthersCannotBeAskedToStopButDeleted) {
    const auto go = strange_lease();
    put("n/" + etcd::lease_text(go), "leader-1", go);
    const auto seen = list(*a_, "n").value.rows.at(0);
    EXPECT_EQ(seen.info, "leader-1");
    const auto evict = [&](bool now) {
        return ask<int>([&](deadline by, completion<int> f) {
                   return a_->evict(seen, now, "op", "", by, std::move(f));
               })
            .error;
    };
    EXPECT_EQ(evict(false), errc::not_supported);
    EXPECT_EQ(etcd_.keys().begin()->second.value, "leader-1") << "an election's value was lost";
    EXPECT_FALSE(evict(true));
    EXPECT_TRUE(etcd_.keys().empty());
    EXPECT_EQ(evict(true), errc::lost);
}

TEST_F(EtcdLocks, APrefixIsBeforeEveryKeyAndInNoAnswer) {
    const auto c = store("team/");
    const auto on = open(*c);
    ASSERT_FALSE(enter(*c, make(on, 1, {"n"})));
    ASSERT_FALSE(write(*c, {{"r", "x"}}).error);
    for (const auto& one : etcd_.keys()) EXPECT_TRUE(one.first.starts_with("team/")) << one.first;
    EXPECT_EQ(list(*c, "").value.rows.at(0).name, "n");
    EXPECT_EQ(list(*a_, "team").value.rows.at(0).name, "team/n");
    const auto records = ask<detail::records>([&](deadline by, completion<detail::records> f) {
        return c->scan("", "", 10, by, std::move(f));
    });
    ASSERT_EQ(records.value.rows.size(), 1U);
    EXPECT_EQ(records.value.rows[0].key, "r");
}

TEST_F(EtcdLocks, DataLiesUnderItsOwnNameAndRecordsApart) {
    ASSERT_FALSE(write(*a_, {{"stock:blue/left", "7"}, {"once/k", "r"}}).error);
    EXPECT_EQ(etcd_.keys().at("stock:blue/left").value, "7");
    EXPECT_EQ(etcd_.keys().at("trinco:records/once/k").value, "r");
    const auto prefixed = store("team/");
    ASSERT_FALSE(write(*prefixed, {{"stock:blue/left", "8"}}).error);
    EXPECT_EQ(etcd_.keys().at("team/stock:blue/left").value, "8");
    EXPECT_EQ(etcd_.keys().size(), 3U);
}

TEST_F(EtcdLocks, RecordsOfOneDayShareAFewLeases) {
    for (int i = 0; i < 50; ++i) {
        ASSERT_FALSE(write(*a_, {{"r/" + std::to_string(i), "x"}}, 24h).error);
    }
    EXPECT_EQ(etcd_.leases().size(), 1U);
    world_.run_for(2h);
    ASSERT_FALSE(write(*a_, {{"late", "x"}}, 24h).error);
    EXPECT_EQ(etcd_.leases().size(), 2U);
    world_.run_for(21h);
    EXPECT_EQ(etcd_.keys().size(), 51U) << "a record expired before its time";
    world_.run_for(3h);
    EXPECT_EQ(etcd_.keys().size(), 1U);
    // The lease that young records would share has ended otherwise: a new one is made.
    ASSERT_FALSE(write(*a_, {{"x", "1"}}, 24h).error);
    for (const auto lease : etcd_.leases()) etcd_.revoke(lease);
    ASSERT_FALSE(write(*a_, {{"x", "2"}}, 24h).error);
    EXPECT_EQ(etcd_.keys().size(), 1U);
}

TEST_F(EtcdLocks, AClaimThatAnotherStoreEnteredIsFoundOnItsLease) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 3, {"m", "n"}, claim_kind::shared)));
    const auto r = verify(*b_, on, 3);
    ASSERT_FALSE(r.error);
    EXPECT_EQ(r.value.tokens, (std::vector<std::uint64_t>{0, 0})) << "shared, so no fence";
    EXPECT_FALSE(leave(*b_, on, 3));
    EXPECT_TRUE(etcd_.keys().empty());
}

// Its leases are granted a second late.
class slow_grants : public sim::simulated_etcd_client {
public:
    slow_grants(sim::node& from, sim::simulated_etcd& to)
        : sim::simulated_etcd_client(from, to), loop_(from) {}
    [[nodiscard]] op grant(std::chrono::seconds ttl, deadline by,
                           completion<etcd::lease_reply> done) override {
        return loop_.after(1s, [this, ttl, by, done = std::move(done)]() mutable {
            under_way_ = sim::simulated_etcd_client::grant(ttl, by, std::move(done));
        });
    }

private:
    loop& loop_;
    op under_way_;
};

TEST_F(EtcdLocks, AGuardedWriteIsOfItsGrantAlsoWhenTheNextClaimHasItsNumber) {
    etcd_locks_settings settings;
    settings.wall_clock = [] { return 0ms; };
    // Of another name, and of the same, which has the same key.
    for (const auto* next : {"other", "mine"}) {
        etcd_locks slow(node_, std::make_unique<slow_grants>(node_, etcd_), settings);
        const auto on = open(slow);
        ASSERT_FALSE(enter(slow, make(on, 1, {"mine"})));
        ASSERT_FALSE(verify(slow, on, 1).error);
        std::optional<std::error_code> written;
        const std::vector<change> changes{{"accounts:7", "late"}};
        const auto interest =
            slow.write(on.id, claim_id{1}, changes, 60s, world_.now() + 5s,
                       [&](std::error_code error, std::uint64_t) { written = error; });
        ASSERT_FALSE(leave(slow, on, 1));
        ASSERT_FALSE(enter(slow, make(on, 2, {next})));
        ASSERT_TRUE(etcd_.keys().contains(key_of(next, on, 1))) << "the same number";
        ASSERT_FALSE(written.has_value()) << "it still waits for the lease of the record";
        world_.run_for(2s);
        ASSERT_TRUE(written.has_value());
        EXPECT_EQ(*written, errc::lost) << next;
        EXPECT_FALSE(etcd_.keys().contains("accounts:7"));
        ASSERT_FALSE(leave(slow, on, 2));
    }
}

TEST_F(EtcdLocks, WhatIsPublishedIsOfItsClaimAlsoWhenTheNextOneHasItsNumber) {
    const auto c = hooked_store();
    const auto on = open(*c);
    ASSERT_FALSE(enter(*c, make(on, 1, {"n"})));
    ASSERT_FALSE(verify(*c, on, 1).error);
    // What puts it back is under way for a second.
    bool held_up = false;
    hook_->delay = [&](const etcd::txn_request& what) {
        return puts(what, key_of("n", on)) && !std::exchange(held_up, true) ? 1'000ms : 0ms;
    };
    std::optional<std::error_code> published;
    const auto interest = c->publish(on.id, {1}, "of the first", world_.now() + 5s,
                                     [&](std::error_code error, int) { published = error; });
    world_.run_for(100ms);
    ASSERT_TRUE(held_up);
    ASSERT_FALSE(leave(*c, on, 1));
    ASSERT_FALSE(enter(*c, make(on, 2, {"n"})));
    ASSERT_TRUE(etcd_.keys().contains(key_of("n", on, 1))) << "the same number";
    world_.run_for(3s);
    ASSERT_TRUE(published.has_value());
    EXPECT_EQ(*published, errc::lost);
    EXPECT_EQ(list(*c, "n").value.rows.at(0).info, "info");
}

TEST_F(EtcdLocks, WhatAnEarlierAttemptEnteredIsFoundAndNotEnteredAnew) {
    const auto on = open(*a_);
    const auto other = open(*b_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"m", "n"})));
    ASSERT_FALSE(enter(*b_, make(other, 1, {"n"})));
    const auto before = etcd_.keys();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(ahead(*a_, make(on, 1, {"m", "n"})), 0U);
        EXPECT_EQ(ahead(*b_, make(other, 1, {"n"})), 1U);
    }
    EXPECT_EQ(etcd_.keys(), before);
    erase(key_of("m", on));
    EXPECT_EQ(enter(*a_, make(on, 1, {"m", "n"})), errc::lost) << "a part of it is gone";
    EXPECT_FALSE(leave(*a_, on, 1));
    EXPECT_EQ(etcd_.keys().size(), 1U);
}

// What lies under the prefix of one store is in nobody's way in another.
TEST_F(EtcdLocks, ALockNamedAsAPrefixIsFree) {
    const auto c = store("team/");
    ASSERT_FALSE(write(*c, {{"stock:7", "x"}, {"once/k", "x"}}).error);
    const auto on = open(*a_);
    for (const auto kind : {claim_kind::exclusive, claim_kind::shared}) {
        ASSERT_FALSE(enter(*a_, make(on, 1, {"team"}, kind, 0, true)));
        EXPECT_FALSE(verify(*a_, on, 1).error);
        ASSERT_FALSE(leave(*a_, on, 1));
    }
    ASSERT_FALSE(enter(*a_, make(on, 2, {"team"})));
    const auto waits = await(*a_, on, 2);
    world_.run_for(100ms);
    EXPECT_TRUE(waits->granted());
}

TEST_F(EtcdLocks, WhatHappensBeforeAHolderIsWatchedIsTold) {
    net_.set_faults({.delay_min = 100us, .delay_max = 200us});
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    std::vector<std::error_code> told;
    const auto tell = [&](std::error_code why) { told.push_back(why); };
    const auto first = a_->on_gone(on.id, {1}, tell);
    const auto begin = world_.now();
    ASSERT_FALSE(leave(*a_, on, 1));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"}))) << "under the same key";
    ASSERT_LT(world_.now() - begin, 5ms);
    const auto seen = list(*b_, "n").value.rows.at(0);
    world_.run_for(1s);
    EXPECT_EQ(told, (std::vector<std::error_code>{make_error_code(errc::lost)}));
    const auto second = a_->on_gone(on.id, {2}, tell);
    ASSERT_FALSE(ask<int>([&](deadline by, completion<int> f) {
                     return b_->evict(seen, false, "me", "", by, std::move(f));
                 }).error);
    world_.run_for(1s);
    ASSERT_EQ(told.size(), 2U);
    EXPECT_EQ(told.back(), errc::evicted);
}

TEST_F(EtcdLocks, NothingOfADestroyedStoreIsHeard) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    const auto waits = await(*a_, on, 2);
    const auto gone = a_->on_gone(on.id, {1}, [](std::error_code) { FAIL(); });
    const auto seen = a_->observe("n", [](std::optional<entry>) {});
    world_.run_for(100ms);
    a_.reset();
    etcd_.revoke(number(on));
    world_.run_for(30s);
    EXPECT_FALSE(waits->answer.has_value());
}

}  // namespace
}  // namespace trinco::test
