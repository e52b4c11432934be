// Locks on etcd when it fails: compaction, deleted keys, revoked leases, orphans, a lost leader,
// lost events, a restored snapshot.
#include "etcd_locks_world.hpp"

namespace trinco::test {
namespace {

class EtcdFaults : public EtcdLocks {
protected:
    // Claim 1 holds, claim 2 waits, both on `on_`.
    std::unique_ptr<waiting> hold_and_wait(std::chrono::seconds ttl = 60s) {
        on_ = open(*a_, ttl);
        EXPECT_FALSE(enter(*a_, make(on_, 1, {"n"})));
        EXPECT_FALSE(enter(*a_, make(on_, 2, {"n"})));
        auto w = await(*a_, on_, 2);
        world_.run_for(1s);
        EXPECT_FALSE(w->answer.has_value());
        return w;
    }
    // Every five seconds, for as long as the result lives.
    std::shared_ptr<op> renewing(etcd_locks& s, const detail::lease& on) {
        const auto timer = std::make_shared<op>();
        renew_later(s, on, timer);
        return timer;
    }
    void renew_later(etcd_locks& s, const detail::lease& on, const std::weak_ptr<op>& timer) {
        const auto alive = timer.lock();
        if (!alive) return;
        *alive = node_.after(5s, [this, &s, on, timer] {
            renewal_ = s.renew(on.id, world_.now() + 4s,
                               [](std::error_code error, auto) { EXPECT_FALSE(error); });
            renew_later(s, on, timer);
        });
    }
    detail::lease on_;
    op renewal_;
};

TEST_F(EtcdFaults, CompactionDuringAWait) {
    const auto waits = hold_and_wait();
    put("other", "", 0);
    for (auto* m : etcd_.members()) m->pause_until(world_.now() + 2s);
    etcd_.compact();
    world_.run_for(3s);
    EXPECT_FALSE(waits->answer.has_value());
    ASSERT_FALSE(leave(*a_, on_, 1));
    etcd_.compact();  // before the watch can have told of it
    world_.run_for(2s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(EtcdFaults, AnEventThatNoWatchTellsOnlyDelays) {
    const auto waits = hold_and_wait(15s);
    etcd_.lose_events(1);
    ASSERT_FALSE(leave(*a_, on_, 1));
    world_.run_for(6s);
    EXPECT_TRUE(waits->granted()) << "the look that is due at a third of the lease's life";
}

TEST_F(EtcdFaults, AHolderWhoseEventIsLostIsToldAtTheNextLook) {
    on_ = open(*a_, 15s);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    std::optional<std::error_code> told;
    const auto gone = a_->on_gone(on_.id, {1}, [&](std::error_code why) { told = why; });
    world_.run_for(2s);
    etcd_.lose_events(1);
    erase(key_of("n", on_));
    world_.run_for(6s);
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(*told, errc::lost);
}

TEST_F(EtcdFaults, AWaiterWhoseLeaseDiedIsNeverGranted) {
    const auto holder = open(*b_);
    ASSERT_FALSE(enter(*b_, make(holder, 1, {"n"})));
    on_ = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    const auto waits = await(*a_, on_, 1);
    world_.run_for(100ms);
    // As was measured with etcdctl 3.4: its lease ends, then the holder goes.
    etcd_.revoke(number(on_));
    ASSERT_FALSE(leave(*b_, holder, 1));
    const auto next = open(*b_);
    ASSERT_FALSE(enter(*b_, make(next, 1, {"n"})));
    world_.run_for(5s);
    ASSERT_TRUE(waits->answer.has_value());
    EXPECT_EQ(waits->answer->error, errc::lost);
    EXPECT_FALSE(verify(*b_, next, 1).error);
}

TEST_F(EtcdFaults, ADeletedQueueKeyIsLostAtTheNextLook) {
    const auto waits = hold_and_wait(15s);
    erase(key_of("n", on_, 2));
    world_.run_for(6s);
    EXPECT_TRUE(waits->lost());
}

TEST_F(EtcdFaults, ALateLeaveDoesNotTakeALaterEntryOfTheSameKey) {
    on_ = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    erase(key_of("n", on_));
    ASSERT_FALSE(enter(*b_, make(on_, 1, {"n"})));
    EXPECT_FALSE(leave(*a_, on_, 1)) << "what was entered is gone, which is what was asked";
    EXPECT_TRUE(etcd_.keys().contains(key_of("n", on_)));
}

TEST_F(EtcdFaults, AnOrphanThatLandsLaterIsFoundAndRemoved) {
    on_ = open(*a_);
    for (auto* m : etcd_.members()) m->pause_until(world_.now() + 8s);
    EXPECT_EQ(enter(*a_, make(on_, 1, {"n"}), 2s), errc::unknown_outcome);
    EXPECT_TRUE(etcd_.keys().empty());
    world_.run_for(7s);
    EXPECT_TRUE(etcd_.keys().contains(key_of("n", on_))) << "it landed";
    EXPECT_EQ(owned(*a_, on_), (std::vector<claim_id>{{1}}));
    EXPECT_FALSE(leave(*a_, on_, 1));
    EXPECT_TRUE(etcd_.keys().empty());
}

// One request waits at a member that sleeps. The next is refused, and that is certain; the first
// one lands all the same, where a deposed leader does not list it.
TEST_F(EtcdFaults, AnOrphanThatLandsAfterARefusalIsFoundToo) {
    on_ = open(*a_);
    const auto other = open(*b_);
    ASSERT_FALSE(enter(*b_, make(other, 1, {"n"})));
    etcd_.depose_leader(1h);
    etcd_.members().at(0)->pause_until(world_.now() + 8s);
    const auto tries = make(on_, 1, {"n"}, claim_kind::exclusive, 0, true);
    ASSERT_EQ(enter(*a_, tries, 2s), errc::unknown_outcome);
    ASSERT_EQ(enter(*a_, tries, 2s), errc::conflict);
    EXPECT_TRUE(owned(*a_, on_).empty());
    erase(key_of("n", other));
    world_.run_for(8s);
    ASSERT_TRUE(etcd_.keys().contains(key_of("n", on_))) << "it landed";
    EXPECT_EQ(owned(*a_, on_), (std::vector<claim_id>{{1}}));
    EXPECT_FALSE(leave(*a_, on_, 1));
    EXPECT_TRUE(etcd_.keys().empty());
}

TEST_F(EtcdFaults, AnOrphanThatLandsAfterItsClaimHasLeftIsFoundToo) {
    on_ = open(*a_);
    etcd_.depose_leader(1h);
    etcd_.members().at(0)->pause_until(world_.now() + 8s);
    ASSERT_EQ(enter(*a_, make(on_, 1, {"n"}), 2s), errc::unknown_outcome);
    ASSERT_FALSE(leave(*a_, on_, 1)) << "there was nothing";
    world_.run_for(8s);
    ASSERT_TRUE(etcd_.keys().contains(key_of("n", on_))) << "it landed";
    EXPECT_EQ(owned(*a_, on_), (std::vector<claim_id>{{1}}));
    EXPECT_FALSE(leave(*a_, on_, 1));
    EXPECT_TRUE(etcd_.keys().empty());
}

TEST_F(EtcdFaults, ARepeatedEnterCountsThoseAheadAndNoneOfThoseWhoCameLater) {
    on_ = open(*a_);
    const auto other = open(*b_, 3'600s);
    std::uint64_t id = 0;
    const auto crowd = [&](int many) {
        for (int i = 0; i < many; ++i) ASSERT_FALSE(enter(*b_, make(other, ++id, {"n"})));
    };
    const auto enter_unheard = [&](std::uint64_t mine) {
        for (auto* m : etcd_.members()) net_.cut(*m, node_);
        EXPECT_EQ(enter(*a_, make(on_, mine, {"n"}), 2s), errc::unknown_outcome);
        net_.heal();
    };
    crowd(3);
    // Who has found nobody yet hopes so, and a first attempt that is wrong enters nothing.
    ASSERT_FALSE(enter(*a_, make(on_, 9, {"n"})));
    ASSERT_FALSE(leave(*a_, on_, 9));
    enter_unheard(1);
    crowd(4);
    EXPECT_EQ(ahead(*a_, make(on_, 1, {"n"})), 3U);
    crowd(20);
    enter_unheard(2);
    crowd(5);
    EXPECT_EQ(ahead(*a_, make(on_, 2, {"n"})), 28U) << "more than one page shows";
    enter_unheard(3);
    crowd(40);
    EXPECT_EQ(ahead(*a_, make(on_, 3, {"n"})), std::nullopt) << "rather nothing than too many";
}

// The one that reaches the quota is told that there is no space, and is carried out.
TEST_F(EtcdFaults, AnEnterThatFillsTheDatabaseIsThere) {
    on_ = open(*a_);
    etcd_.fill_up();
    EXPECT_FALSE(enter(*a_, make(on_, 1, {"n"}, claim_kind::exclusive, 0, true)));
    EXPECT_FALSE(verify(*a_, on_, 1).error);
    EXPECT_EQ(enter(*a_, make(on_, 2, {"m"})), errc::busy) << "and this one is certainly not";
    EXPECT_EQ(etcd_.keys().size(), 1U);
    EXPECT_EQ(owned(*a_, on_), (std::vector<claim_id>{{1}}));
    EXPECT_FALSE(leave(*a_, on_, 1));
    EXPECT_TRUE(etcd_.keys().empty());
}

TEST_F(EtcdFaults, AWriteThatMayHaveFilledTheDatabaseHasNoKnownOutcome) {
    etcd_.fill_up();
    EXPECT_EQ(write(*a_, {{"a:1", "x"}}).error, errc::unknown_outcome);
    EXPECT_TRUE(etcd_.keys().contains("a:1"));
    EXPECT_EQ(write(*a_, {{"a:2", "x"}}).error, errc::unknown_outcome);
    EXPECT_FALSE(etcd_.keys().contains("a:2"));
}

TEST_F(EtcdFaults, AnEnterThatIsRepeatedFindsItself) {
    on_ = open(*a_);
    for (auto* m : etcd_.members()) net_.cut(*m, node_);
    EXPECT_EQ(enter(*a_, make(on_, 1, {"n"}), 2s), errc::unknown_outcome);
    ASSERT_TRUE(etcd_.keys().contains(key_of("n", on_)));
    const auto created = etcd_.keys().begin()->second.create_revision;
    net_.heal();
    EXPECT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    EXPECT_EQ(etcd_.keys().begin()->second.version, 1) << "it was put anew";
    EXPECT_EQ(etcd_.keys().begin()->second.create_revision, created);
    EXPECT_FALSE(verify(*a_, on_, 1).error);
}

TEST_F(EtcdFaults, ABareEntryThatWasEnteredTwiceStaysBare) {
    on_ = open(*a_);
    auto leads = make(on_, 1, {"n"});
    leads.bare = true;
    leads.info = "one line\nand another";
    for (auto* m : etcd_.members()) net_.cut(*m, node_);
    EXPECT_EQ(enter(*a_, leads, 2s), errc::unknown_outcome);
    net_.heal();
    ASSERT_FALSE(enter(*a_, leads));
    const auto said = ask<int>([&](deadline by, completion<int> f) {
        return a_->publish(on_.id, {1}, "worker-7", by, std::move(f));
    });
    EXPECT_FALSE(said.error) << "it is taken for an entry that is not ours";
    EXPECT_EQ(etcd_.keys().begin()->second.value, "worker-7");
    leads.info = "trinco/1 exclusive 0 0 0 0 1\nx\ny\n";
    leads.id = {2};
    EXPECT_EQ(enter(*a_, leads), errc::invalid) << "others would take it for a note of ours";
}

TEST_F(EtcdFaults, APermitOfAnotherNumberIsRefusedThoughItWasEnteredBefore) {
    on_ = open(*a_);
    const auto other = open(*b_);
    ASSERT_FALSE(enter(*b_, make(other, 1, {"n"}, claim_kind::permit, 2)));
    const auto differs = make(on_, 1, {"n"}, claim_kind::permit, 3);
    for (auto* m : etcd_.members()) net_.cut(*m, node_);
    EXPECT_EQ(enter(*a_, differs, 2s), errc::unknown_outcome);
    net_.heal();
    EXPECT_EQ(enter(*a_, differs), errc::limit_mismatch);
    world_.run_for(1s);
    EXPECT_EQ(etcd_.keys().size(), 1U);
}

TEST_F(EtcdFaults, ALostLeaderChangesNeitherHolderNorOrder) {
    on_ = open(*a_, 5s);
    const auto other = open(*b_, 5s);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    ASSERT_FALSE(enter(*b_, make(other, 1, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on_, 2, {"n"})));
    const auto second = await(*b_, other, 1);
    const auto third = await(*a_, on_, 2);
    const auto held = verify(*a_, on_, 1).value.tokens;
    etcd_.lose_leader(8s);
    world_.run_for(6s);
    EXPECT_EQ(
        ask<grant>([&](deadline by,
                       completion<grant> f) { return a_->verify(on_.id, {1}, by, std::move(f)); },
                   500ms)
            .error,
        errc::unavailable);
    world_.run_for(2s);
    // The new leader began every lease anew.
    ASSERT_FALSE(verify(*a_, on_, 1).error);
    EXPECT_EQ(verify(*a_, on_, 1).value.tokens, held);
    ASSERT_FALSE(leave(*a_, on_, 1));
    world_.run_for(1s);
    EXPECT_TRUE(second->granted());
    EXPECT_FALSE(third->granted());
    ASSERT_FALSE(leave(*b_, other, 1));
    world_.run_for(1s);
    EXPECT_TRUE(third->granted());
}

TEST_F(EtcdFaults, ARestoredSnapshotIsMadeGoodByTheTokenEpoch) {
    on_ = open(*a_);
    etcd_.take_snapshot();
    for (int i = 0; i < 20; ++i) put("other", "", 0);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    const auto before = verify(*a_, on_, 1).value.tokens.at(0);
    std::optional<std::error_code> told;
    const auto gone = a_->on_gone(on_.id, {1}, [&](std::error_code why) { told = why; });
    world_.run_for(1s);
    etcd_.restore_snapshot();
    world_.run_for(30s);
    ASSERT_TRUE(told.has_value()) << "a watch of revisions to come is silent: a look tells";
    EXPECT_EQ(*told, errc::lost);
    const auto on = open(*b_);
    ASSERT_FALSE(enter(*b_, make(on, 1, {"n"})));
    EXPECT_LT(verify(*b_, on, 1).value.tokens.at(0), before) << "what the epoch is for";
    ASSERT_FALSE(leave(*b_, on, 1));
    const auto c = store({}, 1);
    const auto cured = open(*c);
    ASSERT_FALSE(enter(*c, make(cured, 1, {"n"})));
    const auto after = verify(*c, cured, 1).value.tokens.at(0);
    EXPECT_GT(after, before);
    EXPECT_LT(after, std::uint64_t{1} << 53);
    const auto last = store({}, 255);
    const auto final_lease = open(*last);
    ASSERT_FALSE(enter(*last, make(final_lease, 1, {"m"})));
    EXPECT_LT(verify(*last, final_lease, 1).value.tokens.at(0), std::uint64_t{1} << 53);
}

TEST_F(EtcdFaults, AwaitAsksThoughEnteringGranted) {
    on_ = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    etcd_.revoke(number(on_));
    world_.run_for(2s);
    const auto waits = await(*a_, on_, 1);
    world_.run_for(1s);
    EXPECT_TRUE(waits->lost());
}

TEST_F(EtcdFaults, WhatADeposedLeaderDoesNotListIsNotTakenForGone) {
    on_ = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    etcd_.depose_leader(1h);
    ASSERT_FALSE(enter(*a_, make(on_, 2, {"n"})));
    ASSERT_FALSE(enter(*a_, make(on_, 3, {"m", "o"})));
    EXPECT_EQ(owned(*a_, on_), (std::vector<claim_id>{{1}, {2}, {3}}));
    erase(key_of("n", on_, 2));
    EXPECT_EQ(owned(*a_, on_), (std::vector<claim_id>{{1}, {3}})) << "this one is gone";
    // It does not know this lease at all.
    const auto later = open(*b_);
    ASSERT_FALSE(enter(*b_, make(later, 1, {"p"})));
    EXPECT_EQ(owned(*b_, later), (std::vector<claim_id>{{1}}));
    // One whose answer never came is a debt, whoever lists it or not.
    for (auto* m : etcd_.members()) net_.cut(*m, node_);
    EXPECT_EQ(enter(*b_, make(later, 2, {"q"}), 2s), errc::unknown_outcome);
    net_.heal();
    EXPECT_EQ(owned(*b_, later), (std::vector<claim_id>{{1}, {2}}));
}

class EtcdPauses : public EtcdFaults {
protected:
    // How many transactions there are in half a minute.
    int asked() {
        int n = 0;
        const auto before = hook_->before_txn;
        hook_->before_txn = [&](const etcd::txn_request& what) {
            ++n;
            return before ? before(what) : std::error_code();
        };
        world_.run_for(30s);
        hook_->before_txn = before;
        return n;
    }
    std::unique_ptr<etcd_locks> c_ = hooked_store();
};

TEST_F(EtcdPauses, WhoObservesReadsSeldomWhileReadingFails) {
    hook_->before_txn = [](const etcd::txn_request&) { return make_error_code(errc::busy); };
    const auto seen = c_->observe("n", [](std::optional<entry>) {});
    const auto n = asked();
    EXPECT_GE(n, 10);
    EXPECT_LE(n, 60);
}

TEST_F(EtcdPauses, WhoObservesReadsSeldomWhileItsWatchIsCompacted) {
    hook_->watches_are_compacted = true;
    const auto seen = c_->observe("n", [](std::optional<entry>) {});
    const auto n = asked();
    EXPECT_GE(n, 10);
    EXPECT_LE(n, 60);
}

TEST_F(EtcdPauses, WhoWaitsOrHoldsReadsSeldomWhileItsWatchIsCompacted) {
    on_ = open(*c_, 3'600s);
    ASSERT_FALSE(enter(*c_, make(on_, 1, {"n"})));
    ASSERT_FALSE(enter(*c_, make(on_, 2, {"n"})));
    hook_->watches_are_compacted = true;
    const auto waits = await(*c_, on_, 2);
    auto n = asked();
    EXPECT_GE(n, 10);
    EXPECT_LE(n, 60);
    waits->interest.cancel();
    const auto holds = c_->on_gone(on_.id, {1}, [](std::error_code) { FAIL(); });
    n = asked();
    EXPECT_GE(n, 10);
    EXPECT_LE(n, 60);
}

TEST_F(EtcdPauses, WhoWaitsReadsSeldomWhileReadingFails) {
    on_ = open(*c_, 3'600s);
    ASSERT_FALSE(enter(*c_, make(on_, 1, {"n"})));
    ASSERT_FALSE(enter(*c_, make(on_, 2, {"n"})));
    hook_->before_txn = [](const etcd::txn_request&) { return make_error_code(errc::busy); };
    const auto waits = await(*c_, on_, 2);
    const auto n = asked();
    EXPECT_GE(n, 10);
    EXPECT_LE(n, 60);
}

// Who only makes sure that nothing has changed does so together with others.
TEST_F(EtcdPauses, ManyWhoWaitAndHoldAskForAFewThings) {
    const auto held = open(*b_, 3'600s);
    on_ = open(*c_, 15s);
    std::vector<std::unique_ptr<waiting>> waits;
    std::vector<op> holds;
    for (std::uint64_t id = 1; id <= 200; ++id) {
        const auto name = "n" + std::to_string(id);
        ASSERT_FALSE(enter(*b_, make(held, id, {name})));
        ASSERT_FALSE(enter(*c_, make(on_, id, {name})));
        waits.push_back(await(*c_, on_, id));
    }
    for (std::uint64_t id = 201; id <= 300; ++id) {
        ASSERT_FALSE(enter(*c_, make(on_, id, {"m" + std::to_string(id)})));
        holds.push_back(c_->on_gone(on_.id, {id}, [](std::error_code) { FAIL(); }));
    }
    const auto keep = renewing(*c_, on_);
    world_.run_for(10s);
    EXPECT_LE(asked(), 6 * 20) << "500 comparisons every 5 s, 100 at once; with looks it is 1,800";
    etcd_.lose_events(1);
    ASSERT_FALSE(leave(*b_, held, 77));
    world_.run_for(6s);
    EXPECT_TRUE(waits[76]->granted()) << "the event of it never came";
    EXPECT_FALSE(waits[77]->answer.has_value());
}

TEST_F(EtcdFaults, AHolderWhoseEventIsLostIsToldAlsoMuchLater) {
    on_ = open(*a_, 15s);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    std::optional<std::error_code> told;
    const auto gone = a_->on_gone(on_.id, {1}, [&](std::error_code why) { told = why; });
    const auto keep = renewing(*a_, on_);
    world_.run_for(32s);
    EXPECT_FALSE(told.has_value());
    etcd_.lose_events(1);
    erase(key_of("n", on_));
    world_.run_for(6s);
    ASSERT_TRUE(told.has_value());
    EXPECT_EQ(*told, errc::lost);
}

TEST_F(EtcdFaults, ObserversAreToldOfNobodyEvenWhenTheEventIsLost) {
    on_ = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on_, 1, {"n"})));
    std::vector<bool> seen;
    const auto observer =
        b_->observe("n", [&](std::optional<entry> e) { seen.push_back(e.has_value()); });
    world_.run_for(1s);
    etcd_.lose_events(1);
    etcd_.revoke(number(on_));
    world_.run_for(6s);
    EXPECT_EQ(seen, (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace trinco::test
