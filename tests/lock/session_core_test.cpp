#include "lock/session_core.hpp"

#include "lock_scene.hpp"

namespace trinco::test {
namespace {

class Session : public LockScene {};

TEST_F(Session, StaysHeldAsLongAsItRenews) {
    const auto s = open(one_, store_one_);
    for (int i = 0; i < 40; ++i) {
        world_.run_for(5s);
        ASSERT_EQ(s->observe(), lease_state::held);
    }
    EXPECT_EQ(locks_->leases().size(), 1U);
    EXPECT_EQ(s->ttl(), ttl);
}

TEST_F(Session, IsLostAtItsDeadlineBeforeTheServerEndsTheLease) {
    const auto s = open(one_, store_one_);
    std::vector<std::error_code> told;
    s->when_lost([&](std::error_code why) {
        told.push_back(why);
        EXPECT_EQ(locks_->leases().size(), 1U) << "the server was quicker than the holder";
    });
    world_.run_for(20s);
    cut(one_);
    world_.run_for(7'600ms);
    EXPECT_EQ(s->observe(), lease_state::uncertain);
    world_.run_for(7s);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0], errc::lost);
    EXPECT_EQ(s->ended(), errc::lost);
    mend(one_);
    world_.run_for(60s);
    EXPECT_EQ(s->observe(), lease_state::lost) << "lost is final";
    EXPECT_EQ(told.size(), 1U);
    EXPECT_TRUE(locks_->leases().empty());
}

TEST_F(Session, SurvivesAnOutageShorterThanItsDeadline) {
    const auto s = open(one_, store_one_);
    cut(one_);
    world_.run_for(13s);
    EXPECT_EQ(s->observe(), lease_state::uncertain);
    mend(one_);
    world_.run_for(1'100ms);
    EXPECT_EQ(s->observe(), lease_state::held);
}

TEST_F(Session, LearnsOfARevokedLeaseAtTheNextRenewal) {
    const auto s = open(one_, store_one_);
    locks_->revoke(s->lease_id());
    world_.run_for(ttl / 3 + 100ms);
    EXPECT_EQ(s->observe(), lease_state::lost);
}

TEST_F(Session, OpeningIsRepeatedWhileTheStoreCannotBeReached) {
    cut(one_);
    const auto s = make_session(one_, store_one_);
    std::optional<std::error_code> opened;
    s->open(world_.now() + 10s, [&](std::error_code error) { opened = error; });
    world_.run_for(3s);
    EXPECT_FALSE(opened.has_value());
    mend(one_);
    world_.run_for(4s);
    ASSERT_TRUE(opened.has_value());
    EXPECT_FALSE(*opened);
}

TEST_F(Session, OpeningEndsAtOnceWhenTheStoreHasNoRoom) {
    const auto full = std::make_shared<memory_lock_server>([this] { return world_.now(); },
                                                           memory_lock_server::limits{.leases = 0});
    memory_locks no_room{one_, full};
    const auto s = make_session(one_, no_room);
    std::optional<std::error_code> opened;
    s->open(world_.now() + 10s, [&](std::error_code error) { opened = error; });
    world_.run_for(10ms);
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(*opened, errc::busy);
}

TEST_F(Session, OpeningGivesUpAtItsDeadline) {
    cut(one_);
    const auto s = make_session(one_, store_one_);
    std::optional<std::error_code> opened;
    s->open(world_.now() + 3s, [&](std::error_code error) { opened = error; });
    world_.run_for(3'010ms);
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(*opened, errc::unknown_outcome);
    EXPECT_EQ(s->observe(), lease_state::lost);
}

TEST_F(Session, CloseEndsTheLeaseAndTellsItsHolders) {
    const auto s = open(one_, store_one_);
    lock_claim c(s);
    told t;
    acquire(c, t, exclusive("n"));
    world_.run_for(50ms);
    ASSERT_TRUE(t.granted());
    std::optional<std::error_code> closed;
    s->close(world_.now() + 1s, [&](std::error_code error, ended_claims) { closed = error; });
    EXPECT_FALSE(c.held()) << "not before the server may give it away";
    world_.run_for(50ms);
    ASSERT_TRUE(closed.has_value());
    EXPECT_FALSE(*closed);
    ASSERT_EQ(t.losses.size(), 1U);
    EXPECT_EQ(t.losses[0], errc::shut_down);
    EXPECT_TRUE(locks_->leases().empty());
    EXPECT_TRUE(locks_->rows().empty());
}

TEST_F(Session, CloseTellsWhetherItsClaimsWereStillThere) {
    for (const bool is_taken_away : {false, true}) {
        const auto s = open(server_, inner_);
        lock_claim c(s);
        told t;
        acquire(c, t, exclusive("n"));
        world_.run_for(50ms);
        ASSERT_TRUE(t.granted());
        detail::entry seen;
        seen.handle = locks_->list("n", "", 1).value.rows.at(0).handle;
        if (is_taken_away) {
            ASSERT_FALSE(locks_->evict(seen, true));
        }
        std::vector<ended_claims> claims;
        const auto note = [&](std::error_code error, ended_claims of) {
            EXPECT_FALSE(error);
            claims.push_back(of);
        };
        s->close(world_.now() + 1s, note);
        world_.run_for(50ms);
        s->close(world_.now() + 1s, note);  // asks nothing
        world_.run_for(50ms);
        EXPECT_EQ(claims, (std::vector<ended_claims>{is_taken_away ? 0U : 1U, std::nullopt}));
    }
}

TEST_F(Session, ClosingTwiceWaitsTwiceForTheOneAnswer) {
    const auto s = open(one_, store_one_);
    std::vector<std::error_code> closed;
    for (int i = 0; i < 2; ++i) {
        s->close(world_.now() + 1s, [&](std::error_code error, ended_claims) {
            closed.push_back(error);
            EXPECT_TRUE(locks_->leases().empty()) << "closed before it was";
        });
    }
    world_.run_for(50ms);
    EXPECT_EQ(closed, std::vector<std::error_code>(2));
    s->close(world_.now() + 1s,
             [&](std::error_code error, ended_claims) { closed.push_back(error); });
    world_.run_for(1ms);
    EXPECT_EQ(closed, std::vector<std::error_code>(3));
}

TEST_F(Session, CloseIsBoundedWhenTheServerIsGone) {
    const auto s = open(one_, store_one_);
    server_.pause_until(world_.now() + 1h);
    std::optional<std::error_code> closed;
    s->close(world_.now() + 1s, [&](std::error_code error, ended_claims) { closed = error; });
    world_.run_for(1'010ms);
    ASSERT_TRUE(closed.has_value());
    EXPECT_EQ(*closed, errc::unknown_outcome);
}

TEST_F(Session, ALeaveWithoutAnswerIsADebtThatIsPaid) {
    const auto s = open(one_, store_one_);
    lock_claim c(s);
    told t;
    acquire(c, t, exclusive("n"));
    world_.run_for(50ms);
    cut(one_);
    std::optional<std::error_code> released;
    c.release([&](std::error_code error) { released = error; });
    EXPECT_FALSE(c.held());
    world_.run_for(2'010ms);
    ASSERT_TRUE(released.has_value()) << "a release is bounded";
    EXPECT_EQ(*released, errc::unknown_outcome);
    EXPECT_EQ(s->debts(), 1U);
    EXPECT_EQ(locks_->rows().size(), 1U);
    mend(one_);
    world_.run_for(5s);
    EXPECT_EQ(s->debts(), 0U);
    EXPECT_TRUE(locks_->rows().empty());
    EXPECT_EQ(s->observe(), lease_state::held);
}

TEST_F(Session, AnEnterThatArrivesAfterItsCallerLeftIsFoundAndRemoved) {
    const auto s = open(one_, store_one_);
    lock_claim c(s);
    told t;
    // The request stalls, its caller gives up, and a leave overtakes it.
    net_.clog(one_, server_, world_.now() + 3s);
    acquire(c, t, exclusive("n"));
    world_.run_for(10ms);
    net_.restore(one_, server_);
    c.abandon();
    world_.run_for(1s);
    EXPECT_TRUE(locks_->rows().empty());
    world_.run_for(2'100ms);
    ASSERT_EQ(locks_->rows().size(), 1U) << "the late request should have arrived by now";
    world_.run_for(ttl / 3 + 100ms);
    EXPECT_TRUE(locks_->rows().empty()) << "the debt was not found";
    EXPECT_EQ(s->debts(), 0U);
    EXPECT_EQ(t.answers, 0) << "a wait that was given up was answered";
}

TEST_F(Session, ItsOwnDebtIsSettledBeforeTheSameNameIsAskedFor) {
    const auto s = open(one_, store_one_);
    lock_claim c(s);
    told first;
    acquire(c, first, exclusive("n"));
    world_.run_for(50ms);
    cut(one_);
    c.abandon();
    world_.run_for(2'500ms);
    mend(one_);
    ASSERT_EQ(s->debts(), 1U);
    told second;
    acquire(c, second, exclusive("n", true));
    world_.run_for(3s);
    EXPECT_TRUE(second.granted()) << "it waited for itself";
    EXPECT_GT(second.token, first.token);
}

// A store whose notices of loss never come.
class deaf_locks final : public memory_locks {
public:
    using memory_locks::memory_locks;
    detail::op on_gone(std::string_view, claim_id,
                       detail::unique_function<void(std::error_code)>) override {
        return {};
    }
};

TEST_F(Session, WhatTheStoreDoesNotListAnyMoreIsLostAtTheNextRenewal) {
    deaf_locks store(one_, locks_);
    const auto s = open(one_, store);
    lock_claim c(s);
    told t;
    acquire(c, t, exclusive("n"));
    world_.run_for(50ms);
    ASSERT_TRUE(t.granted());
    detail::entry seen;
    seen.handle = locks_->list("n", "", 1).value.rows.at(0).handle;
    ASSERT_FALSE(locks_->evict(seen, true));
    world_.run_for(ttl / 3 + 100ms);
    ASSERT_EQ(t.losses.size(), 1U);
    EXPECT_EQ(t.losses[0], errc::lost);
    EXPECT_FALSE(c.held());
    EXPECT_EQ(s->observe(), lease_state::held) << "one claim is not the session";
}

// A store that lists in an order of its own.
class backwards_locks final : public memory_locks {
public:
    using memory_locks::memory_locks;
    detail::op owned(std::string_view lease, detail::deadline by,
                     detail::completion<std::vector<claim_id>> done) override {
        return memory_locks::owned(
            lease, by,
            [done = std::move(done)](std::error_code error, std::vector<claim_id> ids) mutable {
                done(error, {ids.rbegin(), ids.rend()});
            });
    }
};

TEST_F(Session, TheOrderOfTheStoresListDoesNotMatter) {
    backwards_locks store(one_, locks_);
    const auto s = open(one_, store);
    std::vector<std::unique_ptr<lock_claim>> claims;
    std::vector<told> tolds(5);
    for (auto& t : tolds) {
        auto& c = *claims.emplace_back(std::make_unique<lock_claim>(s));
        acquire(c, t, exclusive("n/" + std::to_string(claims.size())));
    }
    world_.run_for(2 * ttl);
    for (const auto& c : claims) EXPECT_TRUE(c->held());
    for (const auto& t : tolds) EXPECT_TRUE(t.losses.empty());
}

TEST_F(Session, WhoOnlyWaitsRenewsLaterUntilItHolds) {
    const auto holder = open(one_, store_one_);
    const auto waiter = open(two_, store_two_);
    lock_claim held(holder);
    lock_claim waits(waiter);
    told first;
    told second;
    acquire(held, first, exclusive("n"));
    world_.run_for(50ms);
    acquire(waits, second, exclusive("n"));
    world_.run_for(ttl / 3 + 50ms);
    // By the time that is left of its lease: the holder's is fresh, the waiter's is not.
    EXPECT_GT(holder->view()->valid_for(holder->now()), ttl * 9 / 10);
    EXPECT_LT(waiter->view()->valid_for(waiter->now()), ttl * 2 / 3);
    held.release([](std::error_code) {});
    world_.run_for(50ms);
    ASSERT_TRUE(second.granted());
    EXPECT_GT(waiter->view()->valid_for(waiter->now()), ttl * 9 / 10) << "due since a third";
}

TEST_F(Session, ManyClaimsCostTheRenewalsOfOne) {
    const auto s = open(one_, store_one_);
    std::vector<std::unique_ptr<lock_claim>> claims;
    std::vector<told> tolds(200);
    for (auto& t : tolds) {
        auto& c = *claims.emplace_back(std::make_unique<lock_claim>(s));
        acquire(c, t, exclusive("n/" + std::to_string(claims.size())));
    }
    world_.run_for(1s);
    for (const auto& t : tolds) ASSERT_TRUE(t.granted());
    EXPECT_EQ(locks_->leases().size(), 1U);
    world_.run_for(30s);
    EXPECT_EQ(s->observe(), lease_state::held);
}

}  // namespace
}  // namespace trinco::test
