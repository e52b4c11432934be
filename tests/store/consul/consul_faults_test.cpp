// Locks on Consul when it fails: lock-delay, destroyed sessions, deleted keys, requests that come
// late, a lost or deposed leader, a restored snapshot.
#include "consul_locks_world.hpp"

namespace trinco::test {
namespace {

class ConsulFaults : public ConsulLocks {
protected:
    struct told {
        std::vector<std::error_code> all;
        op interest;
    };
    std::unique_ptr<told> on_gone(consul_locks& s, const detail::lease& on, std::uint64_t id) {
        auto out = std::make_unique<told>();
        out->interest =
            s.on_gone(on.id, {id}, [p = out.get()](std::error_code why) { p->all.push_back(why); });
        return out;
    }
};

TEST_F(ConsulFaults, TheLockDelayIsWaitedForAndSpokenOf) {
    const auto on = open(*a_);
    const auto heir = open(*b_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"n"})));
    const auto waits = await(*b_, heir, 1);
    const auto gone = on_gone(*a_, on, 1);
    world_.run_for(1s);
    consul_.destroy(on.id);
    world_.run_for(1s);
    ASSERT_EQ(gone->all.size(), 1U) << "within a moment, not when the lease would run out";
    EXPECT_EQ(gone->all[0], errc::lost);
    EXPECT_EQ(enter(*b_, make(heir, 2, {"n"}, true)), errc::conflict);
    const auto third = store(settings());
    const auto late = open(*third);
    EXPECT_EQ(enter(*third, make(late, 1, {"n"}, true)), errc::conflict);
    EXPECT_NE(third->trouble(errc::conflict).find("lock-delay"), std::string::npos);
    world_.run_for(3s);
    EXPECT_FALSE(waits->answer.has_value());
    world_.run_for(2s);
    EXPECT_TRUE(waits->granted());
    ASSERT_FALSE(leave(*b_, heir, 1));
    EXPECT_EQ(enter(*third, make(late, 1, {"n"}, true)), std::error_code());
}

TEST_F(ConsulFaults, WhoWaitsForOneOfItsNamesKeepsNoOtherFromItsNeighbours) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"y"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"x", "y"})));
    const auto both = await(*a_, on, 2);
    ASSERT_FALSE(enter(*a_, make(on, 3, {"x"})));
    const auto free = await(*a_, on, 3);
    world_.run_for(1s);
    EXPECT_TRUE(free->granted());
    ASSERT_FALSE(leave(*a_, on, 3));
    EXPECT_FALSE(enter(*a_, make(on, 4, {"x"}, true)));
    // Nor does it when the one is free and the other is not.
    ASSERT_FALSE(leave(*a_, on, 1));
    ASSERT_FALSE(enter(*a_, make(on, 5, {"y"})));
    const auto other = await(*a_, on, 5);
    world_.run_for(1s);
    EXPECT_TRUE(other->granted());
    EXPECT_FALSE(both->answer.has_value());
    ASSERT_FALSE(leave(*a_, on, 4));
    ASSERT_FALSE(leave(*a_, on, 5));
    world_.run_for(1s);
    EXPECT_TRUE(both->granted());
}

TEST_F(ConsulFaults, AHeldKeyThatWasWrittenOverIsWaitedForAndListed) {
    const auto on = open(*a_);
    const auto heir = open(*b_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_TRUE(hand(verb_t::set, "n/.lock", "", 0, "put").applied) << "as consul kv put does";
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"n"})));
    const auto waits = await(*b_, heir, 1);
    EXPECT_EQ(list(*b_, "n").size(), 1U);
    ASSERT_FALSE(publish(*a_, on, 1, "mine"));
    EXPECT_EQ(list(*b_, "n").at(0).info, "mine");
    world_.run_for(1s);
    EXPECT_FALSE(waits->answer.has_value());
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(ConsulFaults, WhatIsGivenBackIsFreeAtOnce) {
    const auto on = open(*a_);
    const auto heir = open(*b_);
    std::vector<std::string> names;
    for (char c = 'a'; c <= 'z'; ++c) names.emplace_back(1, c);
    ASSERT_FALSE(enter(*a_, make(on, 1, names)));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"other"})));
    ASSERT_FALSE(evict(*b_, list(*b_, "other").at(0), false)) << "its index is another now";
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"k", "other"})));
    const auto waits = await(*b_, heir, 1);
    revoke(*a_, on);
    world_.run_for(200ms);
    EXPECT_TRUE(waits->granted());
    EXPECT_FALSE(consul_.facts(on.id));
}

TEST_F(ConsulFaults, ADeadHolderIsSucceededAfterTwiceItsLifeAtMost) {
    const auto on = open(*a_, 10s);
    const auto heir = open(*b_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"n"})));
    const auto waits = await(*b_, heir, 1);
    world_.run_for(9s);
    EXPECT_FALSE(waits->answer.has_value());
    world_.run_for(11s + 6s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(ConsulFaults, AKeyThatWasDeletedIsLost) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto gone = on_gone(*a_, on, 1);
    world_.run_for(1s);
    ASSERT_TRUE(hand(verb_t::erase, "n/.lock").applied);
    world_.run_for(1s);
    ASSERT_EQ(gone->all.size(), 1U);
    EXPECT_EQ(gone->all[0], errc::lost);
    EXPECT_TRUE(owned(*a_, on).value.empty());
    EXPECT_EQ(write(*a_, {{"d:1", "x"}}, 0s, on.id, claim_id{1}).error, errc::lost);
}

TEST_F(ConsulFaults, AKeyThatWasDeletedAndTakenByTheSameSessionIsLostAllTheSame) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_TRUE(hand(verb_t::erase, "n/.lock").applied);
    ASSERT_TRUE(hand(verb_t::lock, "n/.lock", on.id).applied);
    EXPECT_EQ(write(*a_, {{"d:1", "x"}}, 0s, on.id, claim_id{1}).error, errc::lost);
    EXPECT_EQ(verify(*a_, on, 1).error, errc::lost);
}

TEST_F(ConsulFaults, WhoLosesOneOfSeveralNamesGivesTheOthersBack) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"m", "n"})));
    const auto gone = on_gone(*a_, on, 1);
    world_.run_for(1s);
    ASSERT_TRUE(hand(verb_t::erase, "n/.lock").applied);
    world_.run_for(1s);
    ASSERT_EQ(gone->all.size(), 1U);
    EXPECT_NE(at("m/.lock"), nullptr);
    EXPECT_EQ(owned(*a_, on).value, (std::vector<claim_id>{{1}})) << "for the session to leave";
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(consul_.all().empty());
}

TEST_F(ConsulFaults, AValueThatSomebodyPutIntoTheKeyTakesNothingAway) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto token = grant_of(*a_, on, 1);
    const auto gone = on_gone(*a_, on, 1);
    ASSERT_TRUE(hand(verb_t::set, "n/.lock", "", consul::lock_flags, "put").applied);
    EXPECT_EQ(at("n/.lock")->lock_index, 0U);
    world_.run_for(1s);
    EXPECT_TRUE(gone->all.empty());
    EXPECT_EQ(grant_of(*a_, on, 1), token);
    EXPECT_EQ(owned(*a_, on).value, (std::vector<claim_id>{{1}}));
    ASSERT_FALSE(publish(*a_, on, 1, "again"));
    EXPECT_EQ(list(*b_, "n").at(0).info, "again");
    EXPECT_EQ(list(*b_, "n").at(0).token, token);
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(consul_.all().empty());
}

TEST_F(ConsulFaults, AChangeThatNoWatchTellsOnlyDelays) {
    const auto on = open(*a_);
    const auto heir = open(*b_, 15s);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"n"})));
    const auto waits = await(*b_, heir, 1);
    world_.run_for(1s);
    consul_.lose_news(1);
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(6s);
    EXPECT_TRUE(waits->granted()) << "the look that is due at a third of the lease's life";
}

TEST_F(ConsulFaults, ALateLeaveDoesNotTakeALaterEntryOfTheSameKey) {
    a_ = hooked_store();
    const auto on = open(*a_);
    const auto heir = open(*b_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    hook_->lose = [](const consul::txn_request& what) { return what.reads_only() ? 0ms : 3'000ms; };
    EXPECT_EQ(leave(*a_, on, 1, 1s), errc::unknown_outcome);
    hook_->lose = nullptr;
    ASSERT_FALSE(leave(*a_, on, 1));
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"n"})));
    world_.run_for(5s);
    EXPECT_FALSE(verify(*b_, heir, 1).error) << "the late one took it away";
}

TEST_F(ConsulFaults, ARequestThatLandsAfterItsClaimHasLeftIsFoundAndRemoved) {
    a_ = hooked_store();
    const auto on = open(*a_);
    hook_->lose = [](const consul::txn_request& what) { return takes(what) ? 3'000ms : 0ms; };
    EXPECT_EQ(enter(*a_, make(on, 1, {"m", "n"}), 1s), errc::unknown_outcome);
    hook_->lose = nullptr;
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(owned(*a_, on).value.empty());
    world_.run_for(4s);
    ASSERT_NE(at("n/.lock"), nullptr);
    EXPECT_EQ(owned(*a_, on).value, (std::vector<claim_id>{{1}}));
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(consul_.all().empty());
    EXPECT_TRUE(owned(*a_, on).value.empty());
}

TEST_F(ConsulFaults, ARequestThatLandsLateTakesNothingFromAnotherClaimOfTheLease) {
    a_ = hooked_store();
    const auto on = open(*a_);
    hook_->lose = [](const consul::txn_request& what) { return takes(what) ? 3'000ms : 0ms; };
    EXPECT_EQ(enter(*a_, make(on, 1, {"n"}), 1s), errc::unknown_outcome);
    hook_->lose = nullptr;
    ASSERT_FALSE(leave(*a_, on, 1));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    const auto token = grant_of(*a_, on, 2);
    world_.run_for(4s);
    EXPECT_EQ(consul::note_of(at("n/.lock")->value)->id, claim_id{2});
    EXPECT_EQ(grant_of(*a_, on, 2), token);
    EXPECT_EQ(owned(*a_, on).value, (std::vector<claim_id>{{2}}));
}

TEST_F(ConsulFaults, WhatLandedLateIsOutOfTheWayOfTheNextClaim) {
    a_ = hooked_store();
    const auto on = open(*a_);
    for (const bool bare : {false, true}) {
        hook_->lose = [](const consul::txn_request& what) { return takes(what) ? 3'000ms : 0ms; };
        auto c = make(on, bare ? 3 : 1, {"n"});
        c.bare = bare;
        EXPECT_EQ(enter(*a_, c, 1s), errc::unknown_outcome);
        hook_->lose = nullptr;
        ASSERT_FALSE(leave(*a_, on, c.id.n));
        world_.run_for(4s);
        ASSERT_NE(at("n/.lock"), nullptr);
        const auto before = at("n/.lock")->modify_index;
        c.id.n += 1;
        c.info = "next";
        ASSERT_FALSE(enter(*a_, c));
        EXPECT_GT(grant_of(*a_, on, c.id.n), before);
        ASSERT_FALSE(leave(*a_, on, c.id.n));
    }
}

TEST_F(ConsulFaults, AnErasureThatMayStillLandTakesNothingOfWhatIsEnteredAnew) {
    a_ = hooked_store();
    const auto on = open(*a_);
    for (const bool refused : {false, true}) {
        const std::uint64_t id = refused ? 2 : 1;
        hook_->lose = [](const consul::txn_request& what) { return takes(what) ? 2'000ms : 0ms; };
        EXPECT_EQ(enter(*a_, make(on, id, {"n"}), 1s), errc::unknown_outcome);
        hook_->lose = nullptr;
        ASSERT_FALSE(leave(*a_, on, id));
        world_.run_for(2s);
        ASSERT_NE(at("n/.lock"), nullptr) << "it came late";
        hook_->lose = [](const consul::txn_request& what) {
            return what.reads_only() ? 0ms : 3'000ms;
        };
        EXPECT_EQ(leave(*a_, on, id, 1s), errc::unknown_outcome);
        hook_->lose = nullptr;
        if (refused) {
            consul_.forbid({.write = "n/"});
            EXPECT_EQ(leave(*a_, on, id), errc::denied) << "which tells nothing of the first one";
            consul_.forbid({});
        }
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"})));
        EXPECT_FALSE(verify(*a_, on, id).error);
        world_.run_for(4s);
        EXPECT_FALSE(verify(*a_, on, id).error) << "the late one took it away";
        ASSERT_FALSE(leave(*a_, on, id));
    }
}

TEST_F(ConsulFaults, WhatCanHardlyLandAnyMoreIsNotLookedForAndNeverVeryMuch) {
    a_ = hooked_store();
    const auto on = open(*a_, 3'600s);
    hook_->lose = [](const consul::txn_request& what) { return takes(what) ? -1ms : 0ms; };
    constexpr std::uint64_t many = 1'300;
    for (std::uint64_t id = 1; id <= many; ++id) {
        const auto c = make(on, id, {"n" + std::to_string(id)});
        EXPECT_EQ(enter(*a_, c, 10ms), errc::unknown_outcome);
        ASSERT_FALSE(leave(*a_, on, id));
    }
    const auto looks = [&] {
        const auto before = consul_.reads();
        EXPECT_TRUE(owned(*a_, on).value.empty());
        return consul_.reads() - before;
    };
    const auto now = looks();
    EXPECT_GE(now, 1'000 / 64);
    EXPECT_LE(now, 1'000 / 64 + 1) << "not for all " << many;
    world_.run_for(9min);
    EXPECT_EQ(looks(), now);
    world_.run_for(2min);
    EXPECT_EQ(looks(), 0U);
}

TEST_F(ConsulFaults, WhoeverWaitsOrHoldsLooksByItselfWhereWatchesAreDeaf) {
    const auto on = open(*a_);
    const auto heir = open(*b_, 15s);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"n"})));
    const auto waits = await(*b_, heir, 1);
    std::vector<bool> seen;
    const auto observing =
        a_->observe("n", [&](const std::optional<entry>& e) { seen.push_back(e.has_value()); });
    world_.run_for(1s);
    consul_.deafen(60s);
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(6s);
    EXPECT_TRUE(waits->granted()) << "the look that is due at a third of the lease's life";
    const auto gone = on_gone(*b_, heir, 1);
    world_.run_for(1s);
    consul_.deafen(60s);
    ASSERT_TRUE(hand(verb_t::erase, "n/.lock").applied);
    world_.run_for(6s);
    ASSERT_EQ(gone->all.size(), 1U);
    EXPECT_EQ(gone->all[0], errc::lost);
    ASSERT_FALSE(seen.empty());
    EXPECT_FALSE(seen.back());
}

TEST_F(ConsulFaults, ADeafSemaphoreIsLookedAtToo) {
    const auto permit = [](const detail::lease& on) {
        return claim{{1}, on.id, {{"n", claim_kind::permit, 1}}, "info", false};
    };
    const auto on = open(*a_);
    const auto heir = open(*b_, 15s);
    ASSERT_FALSE(enter(*a_, permit(on)));
    ASSERT_FALSE(enter(*b_, permit(heir)));
    const auto waits = await(*b_, heir, 1);
    world_.run_for(1s);
    consul_.deafen(60s);
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(6s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(ConsulFaults, AServerThatBeginsAgainBeginsLockDelaysAnew) {
    const auto on = open(*a_);
    const auto heir = open(*b_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    consul_.destroy(on.id);
    world_.run_for(6s);
    ASSERT_FALSE(enter(*b_, make(heir, 1, {"n"}, true))) << "it is over";
    consul_.restart_leader();
    EXPECT_FALSE(verify(*b_, heir, 1).error);
    EXPECT_EQ(publish(*b_, heir, 1, "x"), errc::unavailable);
    EXPECT_NE(b_->trouble(errc::unavailable).find("begun anew"), std::string::npos);
    ASSERT_FALSE(leave(*b_, heir, 1));
    EXPECT_EQ(enter(*b_, make(heir, 2, {"n"}, true)), errc::conflict);
    ASSERT_FALSE(enter(*b_, make(heir, 3, {"n"})));
    const auto waits = await(*b_, heir, 3);
    world_.run_for(3s);
    EXPECT_FALSE(waits->answer.has_value());
    world_.run_for(3s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(ConsulFaults, AnEnterThatIsRepeatedFindsItself) {
    a_ = hooked_store();
    const auto on = open(*a_);
    for (const bool bare : {false, true}) {
        hook_->lose = [](const consul::txn_request& what) { return takes(what) ? 1ms : 0ms; };
        auto c = make(on, bare ? 2 : 1, {"m", "n"});
        c.bare = bare;
        EXPECT_EQ(enter(*a_, c, 1s), errc::unknown_outcome);
        const auto taken = at("n/.lock")->modify_index;
        ASSERT_FALSE(enter(*a_, c)) << "nothing more is taken, so nothing is lost";
        hook_->lose = nullptr;
        EXPECT_EQ(grant_of(*a_, on, c.id.n), taken);
        ASSERT_FALSE(leave(*a_, on, c.id.n));
        EXPECT_TRUE(consul_.all().empty());
    }
}

TEST_F(ConsulFaults, AnEnterThatWasLostIsMadeGoodOrLeft) {
    a_ = hooked_store();
    const auto on = open(*a_);
    hook_->lose = [](const consul::txn_request& what) { return takes(what) ? -1ms : 0ms; };
    EXPECT_EQ(enter(*a_, make(on, 1, {"n"}), 1s), errc::unknown_outcome);
    EXPECT_EQ(verify(*a_, on, 1).error, errc::conflict);
    hook_->lose = nullptr;
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    EXPECT_FALSE(verify(*a_, on, 1).error);
}

TEST_F(ConsulFaults, AProofOfTakingIsNotUsedLate) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    node_.pause_until(world_.now() + 10s);
    ASSERT_TRUE(hand(verb_t::erase, "n/.lock").applied);
    world_.run_for(10s);
    const auto waits = await(*a_, on, 1);
    world_.run_for(1s);
    EXPECT_TRUE(waits->lost());
}

TEST_F(ConsulFaults, ALostLeaderChangesNoHolder) {
    const auto on = open(*a_, 10s);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto gone = on_gone(*a_, on, 1);
    const auto token = grant_of(*a_, on, 1);
    consul_.lose_leader(8s);
    world_.run_for(9s);
    EXPECT_TRUE(gone->all.empty());
    EXPECT_EQ(grant_of(*a_, on, 1), token);
    const auto renewed =
        ask<std::chrono::seconds>([&](deadline by, completion<std::chrono::seconds> f) {
            return a_->renew(on.id, by, std::move(f));
        });
    EXPECT_FALSE(renewed.error);
}

TEST_F(ConsulFaults, WhatADeposedLeaderDoesNotKnowIsNotTakenForGone) {
    consul_.depose_leader(20s);
    const auto on = open(*a_, 60s);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    const auto gone = on_gone(*a_, on, 1);
    world_.run_for(5s);
    EXPECT_TRUE(gone->all.empty());
    EXPECT_EQ(owned(*a_, on).value, (std::vector<claim_id>{{1}}));
    const auto renewed =
        ask<std::chrono::seconds>([&](deadline by, completion<std::chrono::seconds> f) {
            return a_->renew(on.id, by, std::move(f));
        });
    EXPECT_EQ(renewed.error, errc::unavailable) << "it does not know the session, others do";
}

TEST_F(ConsulFaults, ARestoredSnapshotIsMadeGoodByTheTokenEpoch) {
    consul_.take_snapshot();
    const auto on = open(*a_);
    for (std::uint64_t id = 1; id <= 5; ++id) {
        ASSERT_FALSE(enter(*a_, make(on, id, {"n"})));
        ASSERT_FALSE(leave(*a_, on, id));
    }
    ASSERT_FALSE(enter(*a_, make(on, 6, {"n"})));
    const auto before = grant_of(*a_, on, 6);
    const auto gone = on_gone(*a_, on, 6);
    world_.run_for(1s);
    consul_.restore_snapshot();
    world_.run_for(11s);  // its watch may be deaf; it looks every ten seconds
    ASSERT_EQ(gone->all.size(), 1U);
    EXPECT_EQ(gone->all[0], errc::lost);
    EXPECT_EQ(owned(*a_, on).error, errc::lost);
    const auto again = open(*a_);
    ASSERT_FALSE(enter(*a_, make(again, 1, {"n"})));
    EXPECT_LT(grant_of(*a_, again, 1), before);
    ASSERT_FALSE(leave(*a_, again, 1));
    auto with = settings();
    with.token_epoch = 1;
    const auto raised = store(with);
    const auto last = open(*raised);
    ASSERT_FALSE(enter(*raised, make(last, 1, {"n"})));
    EXPECT_GT(grant_of(*raised, last, 1), before);
}

}  // namespace
}  // namespace trinco::test
