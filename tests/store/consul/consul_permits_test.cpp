// Permits on a simulated Consul: beside Go's api.Semaphore, and when something of them goes.
#include <algorithm>
#include <set>

#include "consul_locks_world.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::test {
namespace {

class ConsulPermits : public ConsulLocks {
protected:
    static claim permit(const detail::lease& on, std::uint64_t id, std::uint32_t n,
                        bool only_if_free = false) {
        return {{id}, on.id, {{"n", claim_kind::permit, n}}, "info", only_if_free};
    }
    // One that holds already when this returns.
    void take(consul_locks& s, const detail::lease& on, std::uint64_t id, std::uint32_t n) {
        ASSERT_FALSE(enter(s, permit(on, id, n)));
        ASSERT_FALSE(verify(s, on, id).error);
    }
    [[nodiscard]] consul::semaphore_holders said() const {
        const auto* kv = at("n/.lock");
        return kv == nullptr ? consul::semaphore_holders() : *consul::holders_of(kv->value);
    }
    // As Go's does it, in one step.
    std::string strange_permit(std::int64_t n) {
        const auto session = strange_session();
        EXPECT_TRUE(hand(verb_t::lock, "n/" + session, session, consul::semaphore_flags).applied);
        auto all = said();
        all.limit = n;
        all.sessions.insert(session);
        hand(verb_t::set, "n/.lock", "", consul::semaphore_flags, consul::text_of(all));
        return session;
    }
    [[nodiscard]] std::size_t sessions() const { return consul_.sessions().size(); }
};

TEST_F(ConsulPermits, LieAsThoseOfGo) {
    const auto on = open(*a_);
    take(*a_, on, 1, 3);
    const auto all = said();
    EXPECT_EQ(all.limit, 3);
    ASSERT_EQ(all.sessions.size(), 1U);
    const auto session = *all.sessions.begin();
    EXPECT_NE(session, on.id) << "it has a session of its own";
    const auto* mine = at("n/" + session);
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(mine->session, session);
    EXPECT_EQ(mine->flags, consul::semaphore_flags);
    EXPECT_EQ(at("n/.lock")->flags, consul::semaphore_flags);
    EXPECT_EQ(at("n/.lock")->session, "");
    EXPECT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(consul_.all().empty()) << "what nobody uses is deleted";
    EXPECT_EQ(sessions(), 1U) << "its session ends with it";
}

TEST_F(ConsulPermits, CountThoseOfGo) {
    const auto theirs = strange_permit(2);
    const auto on = open(*a_);
    take(*a_, on, 1, 2);
    ASSERT_FALSE(enter(*a_, permit(on, 2, 2)));
    const auto waits = await(*a_, on, 2);
    EXPECT_EQ(enter(*a_, permit(on, 3, 2, true)), errc::conflict);
    world_.run_for(1s);
    EXPECT_FALSE(waits->granted());
    consul_.destroy(theirs);
    hand(verb_t::erase, "n/" + theirs);
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted()) << "nobody is alive who has the other one";
    EXPECT_FALSE(said().sessions.contains(theirs));
}

TEST_F(ConsulPermits, AnotherNumberOrAMutexIsRefusedWithASentence) {
    strange_permit(2);
    const auto on = open(*a_);
    EXPECT_EQ(enter(*a_, permit(on, 1, 3)), errc::limit_mismatch);
    EXPECT_NE(a_->trouble(errc::limit_mismatch).find("2 permits"), std::string::npos);
    EXPECT_EQ(enter(*a_, make(on, 2, {"n"})), errc::limit_mismatch);
    hand(verb_t::set, "n/.lock", "", consul::lock_flags);
    EXPECT_EQ(enter(*a_, permit(on, 3, 2)), errc::limit_mismatch);
    EXPECT_NE(a_->trouble(errc::limit_mismatch).find("of a lock"), std::string::npos);
    hand(verb_t::set, "n/.lock", "", 7);
    EXPECT_EQ(enter(*a_, permit(on, 4, 2)), errc::invalid);
    hand(verb_t::set, "n/.lock", "", consul::semaphore_flags, "{\"Limit\":2}");
    EXPECT_EQ(enter(*a_, permit(on, 5, 2)), errc::invalid);
    EXPECT_NE(a_->trouble(errc::invalid).find("api.Semaphore"), std::string::npos);
    EXPECT_EQ(at("n/.lock")->value, "{\"Limit\":2}") << "what is not understood is left alone";
    EXPECT_EQ(enter(*a_, permit(on, 6, 501)), errc::invalid);
}

TEST_F(ConsulPermits, AreNoGuardOfAWrite) {
    const auto on = open(*a_);
    take(*a_, on, 1, 3);
    EXPECT_EQ(write(*a_, {{"stock:1", "5"}}, {}, on.id, claim_id{1}).error, errc::not_supported);
    EXPECT_NE(a_->trouble(errc::not_supported).find("a permit is no guard"), std::string::npos);
    EXPECT_EQ(at("stock:1"), nullptr);
}

TEST_F(ConsulPermits, AreLostWithTheirPlace) {
    const auto on = open(*a_);
    for (const bool whole : {false, true}) {
        const std::uint64_t id = whole ? 2 : 1;
        take(*a_, on, id, 2);
        std::error_code why;
        const auto watch = a_->on_gone(on.id, {id}, [&](std::error_code error) { why = error; });
        world_.run_for(1s);
        EXPECT_FALSE(why);
        whole ? hand(verb_t::erase, "n/.lock")
              : hand(verb_t::set, "n/.lock", "", consul::semaphore_flags,
                     consul::text_of(consul::semaphore_holders{2, {}}));
        world_.run_for(1s);
        EXPECT_EQ(why, errc::lost);
        EXPECT_EQ(verify(*a_, on, id).error, errc::lost);
        world_.run_for(1s);
        EXPECT_EQ(sessions(), 1U);
    }
}

TEST_F(ConsulPermits, AreLostWithTheirContender) {
    const auto on = open(*a_);
    take(*a_, on, 1, 2);
    std::error_code why;
    const auto watch = a_->on_gone(on.id, {1}, [&](std::error_code error) { why = error; });
    world_.run_for(1s);
    hand(verb_t::erase, "n/" + *said().sessions.begin());
    world_.run_for(1s);
    EXPECT_EQ(why, errc::lost);
}

TEST_F(ConsulPermits, LiveAsLongAsTheLeaseIsRenewed) {
    const auto on = open(*a_, 10s);
    take(*a_, on, 1, 2);
    for (int i = 0; i < 20; ++i) {
        world_.run_for(4s);
        const auto r =
            ask<std::chrono::seconds>([&](deadline by, completion<std::chrono::seconds> f) {
                return a_->renew(on.id, by, std::move(f));
            });
        EXPECT_FALSE(r.error);
        EXPECT_EQ(r.value, 10s);
    }
    EXPECT_FALSE(verify(*a_, on, 1).error);
    // Nobody renews it any more.
    world_.run_for(25s);
    EXPECT_EQ(verify(*a_, on, 1).error, errc::lost);
}

TEST_F(ConsulPermits, ALeaseIsNotBelievedLongerWhereAPermitWasNotRenewed) {
    const auto on = open(*a_, 10s);
    consul_.depose_leader(8s);
    take(*a_, on, 1, 2);  // by a session that the old leader does not know
    EXPECT_EQ(renew(*a_, on).error, errc::unavailable);
    EXPECT_FALSE(verify(*a_, on, 1).error) << "nothing is gone";
    world_.run_for(8s);
    EXPECT_FALSE(renew(*a_, on).error);
    EXPECT_FALSE(verify(*a_, on, 1).error);
    EXPECT_EQ(sessions(), 2U);
}

TEST_F(ConsulPermits, AreLostWithTheirSessionAtTheNextRenewal) {
    const auto on = open(*a_);
    take(*a_, on, 1, 2);
    const auto session = *said().sessions.begin();
    take(*a_, on, 2, 2);
    std::error_code why;
    const auto watch = a_->on_gone(on.id, {1}, [&](std::error_code error) { why = error; });
    world_.run_for(1s);
    consul_.deafen(60s);
    consul_.destroy(session);
    world_.run_for(1s);
    EXPECT_FALSE(why);
    EXPECT_FALSE(renew(*a_, on).error) << "what is left is renewed";
    world_.run_for(10ms);
    EXPECT_EQ(why, errc::lost);
    EXPECT_FALSE(verify(*a_, on, 2).error);
}

TEST_F(ConsulPermits, WhoseContenderWasDeletedTakesAnotherPlace) {
    a_ = hooked_store();
    const auto on = open(*a_);
    hook_->lose = [](const consul::txn_request& what) { return takes(what) ? 1ms : 0ms; };
    EXPECT_EQ(enter(*a_, permit(on, 1, 2), 1s), errc::unknown_outcome);
    hook_->lose = nullptr;
    ASSERT_EQ(said().sessions.size(), 1U);
    const auto session = *said().sessions.begin();
    const auto index = at("n/.lock")->modify_index;
    ASSERT_TRUE(hand(verb_t::erase, "n/" + session).applied);
    ASSERT_FALSE(enter(*a_, permit(on, 1, 2)));
    EXPECT_FALSE(verify(*a_, on, 1).error);
    EXPECT_GT(at("n/.lock")->modify_index, index) << "who read it before is refused";
    EXPECT_FALSE(said().sessions.contains(session));
    world_.run_for(1s);
    EXPECT_EQ(sessions(), 2U);
}

TEST_F(ConsulPermits, ASessionOfWhichNobodyWantsToHearAnyMoreIsEnded) {
    a_ = hooked_store();
    const auto on = open(*a_);
    hook_->made_is_told_after = 3s;
    EXPECT_EQ(enter(*a_, permit(on, 1, 2), 1s), errc::unknown_outcome);
    EXPECT_EQ(sessions(), 2U) << "it is there";
    world_.run_for(3s);
    EXPECT_EQ(sessions(), 1U);
    std::error_code why;
    const auto entering = a_->enter(permit(on, 2, 2), world_.now() + 5s,
                                    [&](std::error_code error, place) { why = error; });
    world_.run_for(100ms);
    EXPECT_EQ(sessions(), 2U);
    revoke(*a_, on);
    world_.run_for(4s);
    EXPECT_EQ(why, errc::lost);
    EXPECT_EQ(sessions(), 0U);
}

TEST_F(ConsulPermits, ASessionThatNobodyHearsOfEndsByItself) {
    a_ = hooked_store();
    const auto on = open(*a_, 10s);
    hook_->made_is_told_after = 1h;
    EXPECT_EQ(enter(*a_, permit(on, 1, 2), 1s), errc::unknown_outcome);
    EXPECT_EQ(sessions(), 2U);
    for (int i = 0; i < 6; ++i) {
        world_.run_for(4s);
        EXPECT_FALSE(renew(*a_, on).error);
    }
    EXPECT_EQ(sessions(), 1U) << "twice its TTL has passed";
}

TEST_F(ConsulPermits, AnotherNumberIsRefusedAtOnceAlsoBehindClaimsThatWait) {
    const auto on = open(*a_);
    take(*a_, on, 1, 1);
    ASSERT_FALSE(enter(*a_, permit(on, 2, 1)));
    const auto waits = await(*a_, on, 2);
    EXPECT_EQ(enter(*a_, permit(on, 3, 2)), errc::limit_mismatch);
    EXPECT_NE(a_->trouble(errc::limit_mismatch).find("not 2"), std::string::npos);
    EXPECT_EQ(enter(*a_, permit(on, 4, 2, true)), errc::limit_mismatch);
    ASSERT_FALSE(leave(*a_, on, 1));
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted());
}

TEST_F(ConsulPermits, EndWithTheirLease) {
    for (const bool by_hand : {false, true}) {
        const auto on = open(*a_);
        take(*a_, on, 1, 2);
        take(*a_, on, 2, 2);
        if (by_hand) {
            consul_.destroy(on.id);
            EXPECT_EQ(owned(*a_, on).error, errc::lost);
            world_.run_for(1s);
        } else {
            revoke(*a_, on);
        }
        EXPECT_TRUE(consul_.all().empty()) << by_hand;
        EXPECT_EQ(sessions(), 0U) << by_hand;
    }
}

TEST_F(ConsulPermits, NoneIsGrantedToALeaseThatHasEnded) {
    const auto on = open(*a_);
    consul_.destroy(on.id);
    EXPECT_EQ(enter(*a_, permit(on, 1, 2)), errc::lost);
    EXPECT_EQ(sessions(), 0U);
}

TEST_F(ConsulPermits, AreListedWithTheirNumberAndEvicted) {
    const auto theirs = strange_permit(3);
    const auto on = open(*a_);
    take(*a_, on, 1, 3);
    take(*b_, open(*b_), 1, 3);
    const auto waits = strange_session();  // contends, and does not hold
    hand(verb_t::lock, "n/" + waits, waits, consul::semaphore_flags);
    const auto rows = list(*b_, "n");
    ASSERT_EQ(rows.size(), 3U);
    const auto mine = *std::find_if(rows.begin(), rows.end(), [&](const entry& one) {
        return one.info == "info" && one.handle.find(theirs) == std::string::npos;
    });
    EXPECT_EQ(mine.name, "n");
    EXPECT_EQ(mine.kind, claim_kind::permit);
    EXPECT_EQ(mine.n, 3U);
    EXPECT_EQ(mine.token, 0U);
    EXPECT_TRUE(mine.holds);
    EXPECT_GT(mine.left, 0s);
    const auto before = said().sessions.size();
    EXPECT_FALSE(evict(*b_, mine, false));
    EXPECT_EQ(said().sessions.size(), before) << "it is only asked";
    const auto asked = list(*b_, "n");
    const auto same = std::find_if(asked.begin(), asked.end(),
                                   [&](const entry& one) { return one.handle == mine.handle; });
    ASSERT_NE(same, asked.end());
    EXPECT_TRUE(same->evicted);
    EXPECT_FALSE(evict(*b_, *same, true));
    EXPECT_EQ(said().sessions.size(), before - 1);
    EXPECT_EQ(list(*b_, "n").size(), 2U);
}

TEST_F(ConsulPermits, AHandleSaysWhoseItIsWhateverWasWrittenIntoTheRow) {
    const auto on = open(*a_);
    take(*a_, on, 1, 3);
    const auto first = list(*b_, "n").at(0);
    EXPECT_TRUE(first.handle.starts_with(on.id + "/")) << first.handle;
    ASSERT_FALSE(publish(*a_, on, 1, "other"));
    EXPECT_EQ(list(*b_, "n").at(0).handle, first.handle);
    ASSERT_FALSE(evict(*b_, first, false));
    EXPECT_EQ(list(*b_, "n").at(0).handle, first.handle);
    EXPECT_TRUE(list(*b_, "n").at(0).evicted);
    ASSERT_FALSE(evict(*b_, first, true));
    EXPECT_TRUE(list(*b_, "n").empty());
}

TEST_F(ConsulPermits, PagesOfHoldersMissNoneAndRepeatNone) {
    const auto on = open(*a_);
    for (std::uint64_t id = 1; id <= 5; ++id) take(*a_, on, id, 5);
    ASSERT_FALSE(enter(*a_, make(on, 6, {"n/m"})));
    ASSERT_FALSE(enter(*a_, make(on, 7, {"a"})));
    for (std::size_t size = 1; size <= 8; ++size) {
        std::set<std::string> seen;
        std::string from;
        int pages = 0;
        do {
            const auto page = ask<entries>([&](deadline by, completion<entries> f) {
                return b_->list("", from, size, by, std::move(f));
            });
            EXPECT_LE(page.value.rows.size(), size);
            for (const auto& one : page.value.rows) EXPECT_TRUE(seen.insert(one.handle).second);
            from = page.value.next;
        } while (!from.empty() && ++pages < 20);
        EXPECT_EQ(seen.size(), 7U) << "pages of " << size;
    }
}

}  // namespace
}  // namespace trinco::test
