// What locks on Consul are beside the contract: whose locks they share, how they lie, what others
// see of them.
#include "consul_locks_world.hpp"

namespace trinco::test {
namespace {

TEST_F(ConsulLocks, ALockOfGoExcludesUsAndIsTakenOnceItIsReleased) {
    const auto go = strange_session();
    ASSERT_TRUE(hand(verb_t::lock, "n/.lock", go).applied);
    const auto on = open(*a_);
    EXPECT_EQ(enter(*a_, make(on, 1, {"n"}, true)), errc::conflict);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto waits = await(*a_, on, 1);
    world_.run_for(2s);
    EXPECT_FALSE(waits->answer.has_value());
    const auto before = at("n/.lock")->modify_index;
    ASSERT_TRUE(hand(verb_t::unlock, "n/.lock", go).applied) << "as api.Lock does: the key stays";
    world_.run_for(1s);
    ASSERT_TRUE(waits->granted());
    EXPECT_GT(waits->token(), before);
    EXPECT_EQ(at("n/.lock")->session, on.id);
    EXPECT_EQ(at("n/.lock")->lock_index, 2U);
    EXPECT_FALSE(hand(verb_t::lock, "n/.lock", go).applied) << "ours excludes it";
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_EQ(at("n/.lock"), nullptr);
}

TEST_F(ConsulLocks, AnEntryTellsWhoseItIs) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 3, {"n"})));
    const auto* kv = at("n/.lock");
    ASSERT_NE(kv, nullptr);
    EXPECT_EQ(kv->flags, 0x2ddccbc058a50c18U);
    EXPECT_EQ(kv->session, on.id);
    const auto note = consul::note_of(kv->value);
    ASSERT_TRUE(note);
    EXPECT_EQ(note->id, claim_id{3});
    EXPECT_EQ(note->info, "info");
    EXPECT_EQ(grant_of(*a_, on, 3), kv->modify_index);
    auto session = consul_.facts(on.id);
    ASSERT_TRUE(session);
    EXPECT_TRUE(session->erases);
    EXPECT_EQ(session->lock_delay, 5s);
    EXPECT_EQ(session->name, "test");
}

TEST_F(ConsulLocks, ABareEntryHoldsWhatItsOwnerSaysAndNothingElse) {
    const auto on = open(*a_);
    auto c = make(on, 1, {"n"});
    c.bare = true;
    ASSERT_FALSE(enter(*a_, c));
    EXPECT_EQ(at("n/.lock")->value, "info");
    const auto token = grant_of(*a_, on, 1);
    ASSERT_FALSE(publish(*a_, on, 1, "other"));
    EXPECT_EQ(at("n/.lock")->value, "other");
    EXPECT_EQ(grant_of(*a_, on, 1), token);
    EXPECT_EQ(evict(*b_, list(*b_, "n").at(0), false), errc::not_supported);
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(consul_.all().empty());
    c.info = "trinco/1 1 0 0 0 0\n\n\n";
    EXPECT_EQ(enter(*a_, c), errc::invalid) << "it would be taken for one of our notes";
}

TEST_F(ConsulLocks, AKeyOfAnotherKindIsLeftAsItIs) {
    constexpr std::uint64_t semaphore = 0xe0f69a2baa414de0;
    ASSERT_TRUE(hand(verb_t::set, "s/.lock", "", semaphore, "{}").applied);
    ASSERT_TRUE(hand(verb_t::set, "d/.lock", "", 7, "data").applied);
    const auto on = open(*a_);
    EXPECT_EQ(enter(*a_, make(on, 1, {"s"})), errc::limit_mismatch);
    EXPECT_NE(a_->trouble(errc::limit_mismatch).find("semaphore"), std::string::npos);
    EXPECT_EQ(enter(*a_, make(on, 2, {"d"})), errc::invalid);
    EXPECT_NE(a_->trouble(errc::invalid).find("d/.lock"), std::string::npos);
    EXPECT_EQ(at("s/.lock")->value, "{}");
    EXPECT_EQ(at("d/.lock")->value, "data");
    EXPECT_TRUE(owned(*a_, on).value.empty());
}

TEST_F(ConsulLocks, NamesThatConsulCannotHaveAreRefused) {
    const auto on = open(*a_);
    for (const auto* name : {"/n", "n/.lock"}) {
        EXPECT_EQ(enter(*a_, make(on, 1, {name})), errc::invalid);
        EXPECT_NE(a_->trouble(errc::invalid).find(name), std::string::npos);
    }
}

TEST_F(ConsulLocks, WhatOthersDoNotOfferIsNotSupported) {
    const auto on = open(*a_);
    auto c = make(on, 1, {"n"});
    c.parts[0].kind = claim_kind::shared;
    EXPECT_EQ(enter(*a_, c), errc::not_supported);
}

TEST_F(ConsulLocks, ATokenGrowsThoughTheKeyBeginsAnew) {
    const auto on = open(*a_);
    std::uint64_t before = 0;
    for (std::uint64_t id = 1; id <= 5; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"})));
        EXPECT_EQ(at("n/.lock")->lock_index, 1U);
        const auto token = grant_of(*a_, on, id);
        EXPECT_GT(token, before);
        before = token;
        ASSERT_FALSE(leave(*a_, on, id));
    }
}

TEST_F(ConsulLocks, AValueThatIsRewrittenChangesNeitherTokenNorGrant) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto token = grant_of(*a_, on, 1);
    ASSERT_FALSE(publish(*a_, on, 1, "new"));
    ASSERT_FALSE(evict(*b_, list(*b_, "n").at(0), false));
    EXPECT_GT(at("n/.lock")->modify_index, token);
    EXPECT_EQ(at("n/.lock")->lock_index, 1U);
    EXPECT_EQ(grant_of(*a_, on, 1), token);
    EXPECT_EQ(list(*b_, "n").at(0).token, token);
    EXPECT_FALSE(write(*a_, {{"d:1", "x"}}, 0s, on.id, claim_id{1}).error)
        << "its index is not the one that it was granted with";
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_EQ(at("n/.lock"), nullptr);
}

TEST_F(ConsulLocks, ClaimsOfOneLeaseStandBehindEachOtherAndAskNothing) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto writes = consul_.writes();
    const auto reads = consul_.reads();
    std::vector<std::unique_ptr<waiting>> waits;
    for (std::uint64_t id = 2; id <= 20; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"})));
        waits.push_back(await(*a_, on, id));
    }
    world_.run_for(30s);
    EXPECT_EQ(consul_.writes(), writes);
    EXPECT_EQ(consul_.reads(), reads);
    for (std::uint64_t id = 1; id <= 19; ++id) {
        ASSERT_FALSE(leave(*a_, on, id));
        world_.run_for(100ms);
        ASSERT_TRUE(waits[id - 1]->granted()) << "in the order of coming";
    }
}

TEST_F(ConsulLocks, WhoWaitsForOneNameLeavesTheOthersToOthers) {
    const auto on = open(*a_);
    const auto other = open(*b_);
    ASSERT_FALSE(enter(*b_, make(other, 1, {"m"})));
    ASSERT_FALSE(enter(*a_, make(on, 1, {"l", "m"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"l"})));
    const auto second = await(*a_, on, 2);
    world_.run_for(1s);
    EXPECT_TRUE(second->granted());
    const auto first = await(*a_, on, 1);
    ASSERT_FALSE(leave(*b_, other, 1));
    world_.run_for(1s);
    EXPECT_FALSE(first->answer.has_value());
    ASSERT_FALSE(leave(*a_, on, 2));
    world_.run_for(1s);
    EXPECT_TRUE(first->granted());
}

TEST_F(ConsulLocks, ManyProcessesTakeTurns) {
    std::vector<std::unique_ptr<consul_locks>> stores;
    std::vector<detail::lease> on;
    std::vector<std::unique_ptr<waiting>> waits;
    for (std::size_t i = 0; i < 20; ++i) {
        stores.push_back(store(settings()));
        on.push_back(open(*stores[i]));
        ASSERT_FALSE(enter(*stores[i], make(on[i], 1, {"n"})));
        waits.push_back(await(*stores[i], on[i], 1));
    }
    std::vector<bool> had(20);
    for (int turn = 0; turn < 20; ++turn) {
        world_.run_for(500ms);
        std::size_t holders = 0;
        for (std::size_t i = 0; i < 20; ++i) {
            if (had[i] || !waits[i]->granted()) continue;
            ++holders;
            had[i] = true;
            ASSERT_FALSE(leave(*stores[i], on[i], 1));
            break;
        }
        ASSERT_EQ(holders, 1U);
    }
}

TEST_F(ConsulLocks, WhoSawTheHolderEndTellsHowLongConsulKeepsTheLockBack) {
    const auto go = strange_session(15s);
    ASSERT_TRUE(hand(verb_t::lock, "n/.lock", go, consul::lock_flags, "who").applied);
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto waits = await(*a_, on, 1);
    world_.run_for(2s);
    consul_.destroy(go);
    world_.run_for(2s);
    const auto words = [&] { return a_->trouble(errc::conflict); };
    EXPECT_NE(words().find("keeps it back for 14 s more at most"), std::string::npos) << words();
    world_.run_for(10s);
    EXPECT_NE(words().find("keeps it back for 4 s more at most"), std::string::npos) << words();
    world_.run_for(5s);
    EXPECT_TRUE(waits->granted());
    // Who comes when it has ended already has seen nothing of it.
    ASSERT_FALSE(leave(*a_, on, 1));
    const auto late = strange_session(15s);
    ASSERT_TRUE(hand(verb_t::lock, "m/.lock", late, consul::lock_flags, "who").applied);
    consul_.destroy(late);
    EXPECT_EQ(enter(*a_, make(on, 2, {"m"}, true)), errc::conflict);
    EXPECT_NE(words().find("does not tell how long"), std::string::npos) << words();
}

TEST_F(ConsulLocks, WhoSaysNothingOfHimselfIsKnownByHisSession) {
    ASSERT_TRUE(hand(verb_t::lock, "n/.lock", strange_session(), consul::lock_flags).applied);
    EXPECT_EQ(list(*a_, "").at(0).lease_label, "Go on node agent");
}

TEST_F(ConsulLocks, AnEntryOfOthersCannotBeAskedToStopButDeleted) {
    const auto go = strange_session();
    ASSERT_TRUE(hand(verb_t::lock, "n/.lock", go, consul::lock_flags, "who").applied);
    const auto rows = list(*a_, "");
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].info, "who");
    EXPECT_EQ(rows[0].left, 600s);
    EXPECT_TRUE(rows[0].left_is_whole) << "Consul does not tell how much of it is over";
    EXPECT_FALSE(rows[0].held.has_value());
    EXPECT_EQ(evict(*a_, rows[0], false), errc::not_supported);
    ASSERT_FALSE(evict(*a_, rows[0], true));
    EXPECT_EQ(at("n/.lock"), nullptr);
    auto wrong = rows[0];
    wrong.handle = go + "/1.1 some/data";
    EXPECT_EQ(evict(*a_, wrong, true), errc::invalid) << "no lock lies there";
}

TEST_F(ConsulLocks, APrefixIsBeforeEveryKeyAndInNoAnswer) {
    auto with = settings();
    with.prefix = "team/";
    const auto s = store(with);
    const auto on = open(*s);
    ASSERT_FALSE(enter(*s, make(on, 1, {"n"})));
    ASSERT_FALSE(write(*s, {{"once/r", "x"}, {"d:1", "y"}}).error);
    for (const auto* key : {"team/n/.lock", "team/trinco:records/once/r", "team/d:1"}) {
        EXPECT_NE(at(key), nullptr) << key;
    }
    EXPECT_EQ(list(*s, "").at(0).name, "n");
}

TEST_F(ConsulLocks, KeysThatCouldNotBeReadAreNotWritten) {
    for (const auto* key : {"once/../r", "once/./r", "once//r", "d:1/..", "d:1/."}) {
        const auto bad = write(*a_, {{"once/good", "x"}, {key, "x"}}).error;
        EXPECT_EQ(bad, errc::invalid) << key;
        EXPECT_NE(a_->trouble(bad).find("segment"), std::string::npos) << a_->trouble(bad);
        EXPECT_EQ(ask<std::optional<record>>([&](deadline by, completion<std::optional<record>> f) {
                      return b_->read(key, by, std::move(f));
                  }).error,
                  errc::invalid);
        EXPECT_FALSE(b_->trouble(errc::invalid).empty());
    }
    EXPECT_TRUE(consul_.all().empty());
    const auto on = open(*a_);
    EXPECT_EQ(enter(*a_, make(on, 1, {"a/./b"})), errc::invalid);
}

TEST_F(ConsulLocks, APlainKeyIsTheLockItself) {
    auto with = settings();
    with.plain_keys = true;
    const auto s = store(with);
    const auto on = open(*s);
    ASSERT_FALSE(enter(*s, make(on, 1, {"jobs/n"})));
    ASSERT_NE(at("jobs/n"), nullptr);
    EXPECT_EQ(at("jobs/n")->session, on.id);
    ASSERT_TRUE(hand(verb_t::set, "jobs/other", "", 0, "data").applied);
    const auto rows = list(*s, "jobs/");
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].name, "jobs/n");
}

TEST_F(ConsulLocks, WhatHasExpiredIsOverwrittenAndSwept) {
    ASSERT_FALSE(write(*a_, {{"once/a", "x"}, {"once/b", "x"}}, 5s).error);
    const auto before = read(*a_, "once/a");
    ASSERT_TRUE(before);
    EXPECT_EQ(write(*a_, {{"once/a", "y", must_be_absent}}).error, errc::conflict);
    world_.run_for(9s);
    EXPECT_TRUE(read(*a_, "once/a")) << "for as long again, by which clocks may differ";
    world_.run_for(3s);
    EXPECT_FALSE(read(*a_, "once/a"));
    EXPECT_NE(at("trinco:records/once/a"), nullptr) << "Consul has no such thing as expiry";
    ASSERT_FALSE(write(*a_, {{"once/a", "y", must_be_absent}}).error);
    EXPECT_EQ(read(*a_, "once/a")->value, "y");
    const auto all = scan(*a_, "once/");
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].key, "once/a");
    world_.run_for(1s);
    EXPECT_NE(at("trinco:records/once/b"), nullptr) << "a clock may be wrong by a day";
    world_.run_for(24h);
    EXPECT_EQ(scan(*a_, "once/").size(), 1U);
    world_.run_for(1s);
    EXPECT_EQ(at("trinco:records/once/b"), nullptr);
    EXPECT_NE(at("trinco:records/once/a"), nullptr);
}

TEST_F(ConsulLocks, WhoseClockIsWrongTakesNoRecordFromOthers) {
    ASSERT_FALSE(write(*a_, {{"once/short", "x"}}, 10min).error);
    ASSERT_FALSE(write(*a_, {{"once/long", "x"}}, 24h).error);
    const auto ahead = [&](std::chrono::milliseconds by) {
        auto with = settings();
        with.wall_clock = [now = with.wall_clock, by] { return now() + by; };
        return store(with);
    };
    const auto minutes = ahead(19min);
    EXPECT_TRUE(read(*minutes, "once/short"));
    EXPECT_EQ(write(*minutes, {{"once/short", "y", must_be_absent}}).error, errc::conflict);
    EXPECT_TRUE(read(*ahead(24h + 59min), "once/long"));
    const auto hours = ahead(20h);
    EXPECT_FALSE(read(*hours, "once/short"));
    EXPECT_EQ(scan(*hours, "once/").size(), 1U);
    world_.run_for(1s);
    EXPECT_TRUE(read(*a_, "once/short")) << "it is hidden from who looked, and not deleted";
}

TEST_F(ConsulLocks, LargeValuesBesideTheLocksAreNoTrouble) {
    auto with = settings();
    with.plain_keys = true;
    const auto s = store(with);
    const auto on = open(*s);
    ASSERT_FALSE(enter(*s, make(on, 1, {"jobs/n"})));
    for (int i = 0; i < 30; ++i) {
        const auto key = "jobs/d" + std::to_string(i);
        ASSERT_TRUE(hand(verb_t::set, key, "", 0, std::string(350'000, 'x')).applied);
    }
    const auto rows = ask<entries>([&](deadline by, completion<entries> f) {
        return s->list("jobs/", "", 100, by, std::move(f));
    });
    EXPECT_FALSE(rows.error) << rows.error.message();
    ASSERT_EQ(rows.value.rows.size(), 1U);
    EXPECT_EQ(rows.value.rows[0].name, "jobs/n");
}

TEST_F(ConsulLocks, WhatHasExpiredIsSweptManyAtATime) {
    for (int i = 0; i < 200; i += 50) {
        std::vector<change> some;
        for (int j = i; j < i + 50; ++j) some.push_back({"once/" + std::to_string(j), "x"});
        ASSERT_FALSE(write(*a_, some, 5s).error);
    }
    world_.run_for(24h + 12s);
    const auto before = consul_.writes();
    EXPECT_TRUE(scan(*a_, "once/").empty());
    world_.run_for(1s);
    EXPECT_TRUE(consul_.all().empty());
    EXPECT_EQ(consul_.writes() - before, 2U);
}

TEST_F(ConsulLocks, NothingOfADestroyedStoreIsHeard) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    const auto waits = await(*a_, on, 2);
    bool told = false;
    const auto gone = a_->on_gone(on.id, {1}, [&](std::error_code) { told = true; });
    const auto left =
        a_->leave(on.id, {1}, world_.now() + 5s, [&](std::error_code, int) { told = true; });
    a_.reset();
    world_.run_for(10s);
    EXPECT_FALSE(told);
    EXPECT_FALSE(waits->answer.has_value());
}

}  // namespace
}  // namespace trinco::test
