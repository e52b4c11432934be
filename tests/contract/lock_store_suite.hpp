// The contract of lock_store, rule by rule, for any store. A test file includes this once and
// instantiates the suite LockStore with its worlds:
//
//     INSTANTIATE_TEST_SUITE_P(Memory, LockStore, ::testing::Values(...), lock_case_name);
//
// Records, listing and operators are in lock_store_records.hpp, expected claims in
// lock_store_expected.hpp; both are included here.
#pragma once

#include <algorithm>

#include "lock_store_expected.hpp"
#include "lock_store_records.hpp"
#include "lock_store_world.hpp"

namespace trinco::test {

using namespace std::chrono_literals;

inline std::string lock_case_name(const ::testing::TestParamInfo<lock_store_case>& info) {
    return info.param.name;
}

TEST_P(LockStore, OpenGrantsWhatWasAskedOrMoreAndNeverClamps) {
    EXPECT_GE(open(a()).ttl, ttl);
    const auto& t = a().traits();
    for (const auto bad : {t.ttl_min - 1s, t.ttl_max + 1s}) {
        const auto r = ask<detail::lease>([&](deadline by, completion<detail::lease> f) {
            return a().open(bad, "suite", by, std::move(f));
        });
        EXPECT_EQ(r.error, errc::invalid) << bad.count();
    }
}

TEST_P(LockStore, RenewKeepsALeaseAndItsClaimsAlive) {
    const auto on = open(a(), world_->short_ttl());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    for (int i = 0; i < 4; ++i) {
        world_->run_for(on.ttl * 6 / 10);
        EXPECT_FALSE(renew(a(), on).error);
    }
    EXPECT_FALSE(verify(a(), on, 1).error);
}

TEST_P(LockStore, ALeaseThatIsNotRenewedEndsAndItsClaimsWithIt) {
    const auto dying = open(a(), world_->short_ttl());
    const auto heir = open(b());
    ASSERT_FALSE(enter(a(), claim(dying, 1, {exclusive("n")})).error);
    const auto before = verify(a(), dying, 1).value.tokens.at(0);
    ASSERT_FALSE(enter(b(), claim(heir, 1, {exclusive("n")})).error);
    auto next = await(b(), heir, 1);
    world_->run_for(dying.ttl / 2);
    EXPECT_FALSE(next->granted()) << "a lease ended before its TTL";
    world_->run_for(dying.ttl + world_->expiry_slack());
    ASSERT_TRUE(next->granted());
    EXPECT_GT(next->token(), before);
    EXPECT_EQ(renew(a(), dying).error, errc::lost);
    EXPECT_EQ(verify(a(), dying, 1).error, errc::lost);
    EXPECT_EQ(enter(a(), claim(dying, 2, {exclusive("m")})).error, errc::lost);
    EXPECT_EQ(owned(a(), dying).error, errc::lost);
}

TEST_P(LockStore, RevokeEndsEverythingAndIsRepeatable) {
    const auto on = open(a());
    const auto heir = open(b());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    ASSERT_FALSE(enter(b(), claim(heir, 1, {exclusive("n")})).error);
    auto next = await(b(), heir, 1);
    revoke(a(), on);
    revoke(a(), on);
    settle_until([&] { return next->granted(); });
    EXPECT_TRUE(next->granted());
    EXPECT_EQ(renew(a(), on).error, errc::lost);
}

TEST_P(LockStore, RevokeTellsWhatWasStillThere) {
    const auto tells = [this](std::size_t n) {
        return world_->tells_ended_claims() ? detail::ended_claims(n) : std::nullopt;
    };
    const auto on = open(a());
    const auto other = open(b());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("left"), exclusive("m")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 2, {exclusive("taken")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 3, {exclusive("held"), exclusive("n")})).error);
    ASSERT_FALSE(enter(b(), claim(other, 1, {exclusive("theirs")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 4, {exclusive("theirs")})).error);
    leave(a(), on, 1);
    // Where a reply was lost, the repetition finds another entry, or none.
    for (auto seen = list(b(), "taken"); !seen.value.rows.empty(); seen = list(b(), "taken")) {
        const auto error =
            ask_int([&](deadline by, completion<int> f) {
                return b().evict(seen.value.rows[0], true, "operator", "", by, std::move(f));
            }).error;
        ASSERT_TRUE(!error || error == errc::conflict || error == errc::lost) << error.message();
    }
    EXPECT_EQ(revoke(a(), on), tells(2)) << "one that is held, and one that waits";
    EXPECT_EQ(revoke(a(), on), tells(0));
    EXPECT_EQ(revoke(a(), open(a())), tells(0));
    const auto dying = open(a(), world_->short_ttl());
    ASSERT_FALSE(enter(a(), claim(dying, 1, {exclusive("held")})).error);
    world_->run_for(dying.ttl + world_->expiry_slack());
    EXPECT_EQ(revoke(a(), dying), tells(0));
}

TEST_P(LockStore, NothingIsGrantedToALeaseThatHasEnded) {
    const auto on = open(a());
    const auto heir = open(b());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 2, {exclusive("n")})).error);
    ASSERT_FALSE(enter(b(), claim(heir, 1, {exclusive("n")})).error);
    auto second = await(a(), on, 2);
    auto next = await(b(), heir, 1);
    revoke(a(), on);
    settle_until([&] { return second->answer && next->granted(); });
    ASSERT_TRUE(second->answer.has_value());
    EXPECT_EQ(second->answer->error, errc::lost);
    EXPECT_TRUE(next->granted());
}

TEST_P(LockStore, EnterIsIdempotentInItsId) {
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    const auto first = verify(a(), on, 1).value.tokens;
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    EXPECT_EQ(verify(a(), on, 1).value.tokens, first);
    EXPECT_EQ(owned(a(), on).value.size(), 1U);
    leave(a(), on, 1);
    EXPECT_TRUE(owned(a(), on).value.empty());
}

TEST_P(LockStore, ExclusiveClaimsAreGrantedOneAfterAnotherInOrder) {
    const auto first = open(a());
    const auto second = open(b());
    std::vector<std::pair<lock_store*, const detail::lease*>> who{
        {&a(), &first}, {&b(), &second}, {&a(), &first}, {&b(), &second}};
    std::vector<std::unique_ptr<waiting>> waits;
    for (std::uint64_t i = 0; i < who.size(); ++i) {
        const auto p = enter(*who[i].first, claim(*who[i].second, i + 1, {exclusive("n")}));
        ASSERT_FALSE(p.error);
        EXPECT_EQ(p.value.ahead.value_or(i), i);
        EXPECT_TRUE(i == 0 || !p.value.granted) << "somebody holds it";
        waits.push_back(await(*who[i].first, *who[i].second, i + 1));
    }
    std::uint64_t before = 0;
    for (std::uint64_t i = 0; i < who.size(); ++i) {
        const auto granted = [&] {
            return static_cast<std::uint64_t>(std::count_if(
                waits.begin(), waits.end(), [](const auto& w) { return w->granted(); }));
        };
        settle_until([&] { return granted() > i; });
        ASSERT_EQ(granted(), i + 1);
        const auto now =
            a().traits().fifo
                ? i
                : static_cast<std::uint64_t>(std::distance(
                      waits.begin(), std::max_element(waits.begin(), waits.end(),
                                                      [](const auto& x, const auto& y) {
                                                          return (x->granted() ? x->token() : 0) <
                                                                 (y->granted() ? y->token() : 0);
                                                      })));
        ASSERT_TRUE(waits[now]->granted());
        EXPECT_GT(waits[now]->token(), before) << "tokens must grow";
        EXPECT_LT(waits[now]->token(), std::uint64_t{1} << 53);
        before = waits[now]->token();
        leave(*who[now].first, *who[now].second, now + 1);
    }
    for (const auto& w : waits) EXPECT_EQ(w->times, 1) << "await completes once";
}

TEST_P(LockStore, WhatEnterGrantsIsWhatAwaitGrants) {
    const auto on = open(a());
    for (std::uint64_t id = 1; id <= 3; ++id) {
        const auto p = enter(a(), claim(on, id, {exclusive("n"), exclusive("o")}, id == 2));
        ASSERT_FALSE(p.error);
        const auto w = await(a(), on, id);
        settle_until([&] { return w->granted(); });
        ASSERT_TRUE(w->granted());
        EXPECT_TRUE(p.value.granted || !world_->grants_with_the_place());
        if (p.value.granted) {
            EXPECT_EQ(p.value.granted->tokens, w->answer->value.tokens);
        }
        leave(a(), on, id);
    }
}

TEST_P(LockStore, OnlyIfFreeIsGrantedAtOnceOrLeavesNothing) {
    const auto on = open(a());
    const auto late = open(b());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")}, true)).error);
    ASSERT_FALSE(verify(a(), on, 1).error);
    EXPECT_EQ(enter(b(), claim(late, 1, {exclusive("n")}, true)).error, errc::conflict);
    EXPECT_TRUE(owned(b(), late).value.empty());
    // One name of several that is taken: nothing of the others either.
    EXPECT_EQ(enter(b(), claim(late, 2, {exclusive("m"), exclusive("n")}, true)).error,
              errc::conflict);
    EXPECT_TRUE(list(b(), "m").value.rows.empty());
    leave(a(), on, 1);
    EXPECT_FALSE(enter(b(), claim(late, 3, {exclusive("m"), exclusive("n")}, true)).error);
    EXPECT_FALSE(verify(b(), late, 3).error);
}

TEST_P(LockStore, SharedClaimsHoldTogetherAndDoNotStarveAnExclusiveOne) {
    if (!a().traits().shared) GTEST_SKIP() << "not offered";
    const auto on = open(a());
    for (const std::uint64_t id : {1U, 2U}) {
        ASSERT_FALSE(enter(a(), claim(on, id, {shared("n")})).error);
        const auto r = verify(a(), on, id);
        ASSERT_FALSE(r.error);
        EXPECT_EQ(r.value.tokens.at(0), 0U) << "a shared grant is no fence";
    }
    ASSERT_FALSE(enter(a(), claim(on, 3, {exclusive("n")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 4, {shared("n")})).error);
    auto writer = await(a(), on, 3);
    auto reader = await(a(), on, 4);
    leave(a(), on, 1);
    settle();
    EXPECT_FALSE(writer->granted());
    EXPECT_FALSE(reader->granted()) << "a later reader overtook a waiting writer";
    leave(a(), on, 2);
    settle_until([&] { return writer->granted(); });
    EXPECT_TRUE(writer->granted());
    EXPECT_FALSE(reader->granted());
    leave(a(), on, 3);
    settle_until([&] { return reader->granted(); });
    EXPECT_TRUE(reader->granted());
}

TEST_P(LockStore, PermitsAreGrantedUpToTheirNumber) {
    if (!a().traits().permits) GTEST_SKIP() << "not offered";
    const auto on = open(a());
    std::vector<std::unique_ptr<waiting>> waits;
    for (std::uint64_t id = 1; id <= 4; ++id) {
        ASSERT_FALSE(enter(a(), claim(on, id, {permit("n", 2)})).error);
        waits.push_back(await(a(), on, id));
    }
    settle_until([&] { return waits[0]->granted() && waits[1]->granted(); });
    EXPECT_TRUE(waits[0]->granted() && waits[1]->granted());
    EXPECT_FALSE(waits[2]->granted() || waits[3]->granted());
    for (const auto& row : list(b(), "n").value.rows) {
        EXPECT_TRUE(row.handle.starts_with(on.id + "/")) << "whose it is: " << row.handle;
    }
    EXPECT_EQ(enter(b(), claim(open(b()), 1, {permit("n", 3)})).error, errc::limit_mismatch);
    leave(a(), on, 1);
    settle_until([&] { return waits[2]->granted(); });
    EXPECT_TRUE(waits[2]->granted());
    EXPECT_FALSE(waits[3]->granted());
}

TEST_P(LockStore, AClaimOfSeveralNamesIsGrantedWhenEachHasItsTurn) {
    const auto on = open(a());
    const auto late = open(b());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("a")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 2, {exclusive("c")})).error);
    ASSERT_FALSE(
        enter(b(), claim(late, 1, {exclusive("a"), exclusive("b"), exclusive("c")})).error);
    auto all = await(b(), late, 1);
    leave(a(), on, 1);
    settle();
    EXPECT_FALSE(all->granted());
    leave(a(), on, 2);
    settle_until([&] { return all->granted(); });
    ASSERT_TRUE(all->granted());
    EXPECT_EQ(all->answer->value.tokens.size(), 3U);
    leave(b(), late, 1);
    EXPECT_TRUE(list(a(), "").value.rows.empty());
}

TEST_P(LockStore, BadClaimsAreRefused) {
    const auto on = open(a());
    const auto refused = [&](std::vector<detail::part> parts) {
        return enter(a(), claim(on, 1, std::move(parts))).error == errc::invalid;
    };
    EXPECT_TRUE(refused({})) << "no part";
    EXPECT_TRUE(refused({exclusive("b"), exclusive("a")})) << "not sorted";
    EXPECT_TRUE(refused({exclusive("a"), exclusive("a")})) << "not distinct";
    EXPECT_TRUE(refused({exclusive("")}));
    EXPECT_TRUE(refused({exclusive("a//b")}));
    EXPECT_TRUE(refused({exclusive("a b")}));
    EXPECT_TRUE(refused({exclusive(std::string(201, 'x'))}));
    EXPECT_TRUE(refused({{"a", claim_kind::permit, 0}})) << "a semaphore without permits";
    EXPECT_TRUE(refused({{"a", claim_kind::exclusive, 1}})) << "a mutex with permits";
    std::vector<detail::part> many;
    for (char c = 0; c < 33; ++c)
        many.push_back(exclusive(std::string(1, static_cast<char>('0' + c / 10)) +
                                 static_cast<char>('0' + c % 10)));
    EXPECT_TRUE(refused(many)) << "more parts than parts_max";
    auto big = claim(on, 1, {exclusive("a")});
    big.info.assign(4'097, 'x');
    EXPECT_EQ(enter(a(), big).error, errc::invalid);
    EXPECT_TRUE(owned(a(), on).value.empty());
}

TEST_P(LockStore, DroppingAWaitKeepsThePlace) {
    const auto on = open(a());
    const auto late = open(b());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    ASSERT_FALSE(enter(b(), claim(late, 1, {exclusive("n")})).error);
    auto dropped = await(b(), late, 1);
    settle();
    dropped->interest.cancel();
    leave(a(), on, 1);
    settle();
    EXPECT_EQ(dropped->times, 0) << "a dropped op completed";
    auto again = await(b(), late, 1);
    settle_until([&] { return again->granted(); });
    EXPECT_TRUE(again->granted());
}

TEST_P(LockStore, AwaitOfWhatIsNotThereIsLost) {
    const auto on = open(a());
    auto nothing = await(a(), on, 7);
    settle_until([&] { return nothing->answer.has_value(); });
    ASSERT_TRUE(nothing->answer.has_value());
    EXPECT_EQ(nothing->answer->error, errc::lost);
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 2, {exclusive("n")})).error);
    auto waits = await(a(), on, 2);
    settle();
    leave(a(), on, 2);
    settle_until([&] { return waits->answer.has_value(); });
    ASSERT_TRUE(waits->answer.has_value());
    EXPECT_EQ(waits->answer->error, errc::lost);
}

TEST_P(LockStore, MovedTellsANewPlace) {
    const auto on = open(a());
    for (std::uint64_t id = 1; id <= 3; ++id) {
        ASSERT_FALSE(enter(a(), claim(on, id, {exclusive("n")})).error);
    }
    auto last = await(a(), on, 3);
    settle();
    leave(a(), on, 2);
    settle_until([&] { return !last->places.empty() && last->places.back() == 1U; });
    EXPECT_FALSE(last->granted());
    if (a().traits().fifo) {
        ASSERT_FALSE(last->places.empty());
        EXPECT_EQ(last->places.back(), std::optional<std::uint32_t>(1));
    }
}

TEST_P(LockStore, VerifyTellsTurnWaitingAndLoss) {
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    ASSERT_FALSE(enter(a(), claim(on, 2, {exclusive("n")})).error);
    const auto held = verify(a(), on, 1);
    ASSERT_FALSE(held.error);
    EXPECT_GT(held.value.tokens.at(0), 0U);
    EXPECT_EQ(verify(a(), on, 2).error, errc::conflict);
    EXPECT_EQ(verify(a(), on, 3).error, errc::lost);
}

TEST_P(LockStore, LeaveRemovesExactlyThisClaimAndIsRepeatable) {
    const auto on = open(a());
    for (std::uint64_t id = 1; id <= 3; ++id) {
        ASSERT_FALSE(enter(a(), claim(on, id, {exclusive("n")})).error);
    }
    leave(a(), on, 2);
    leave(a(), on, 2);
    leave(a(), on, 99);
    EXPECT_EQ(owned(a(), on).value, (std::vector<claim_id>{{1}, {3}}));
    EXPECT_FALSE(verify(a(), on, 1).error) << "another's claim was removed";
    leave(a(), on, 1);
    // Without an order it is not granted by the leaving itself.
    if (!a().traits().fifo) settle_until([&] { return !verify(a(), on, 3).error; });
    EXPECT_FALSE(verify(a(), on, 3).error);
}

TEST_P(LockStore, OnGoneTellsOnceThatTheLeaseEnded) {
    const auto on = open(a());
    ASSERT_FALSE(enter(a(), claim(on, 1, {exclusive("n")})).error);
    std::vector<std::error_code> told;
    const auto watch = a().on_gone(on.id, {1}, [&](std::error_code e) { told.push_back(e); });
    bool dropped_told = false;
    {
        const auto dropped = a().on_gone(on.id, {1}, [&](std::error_code) { dropped_told = true; });
    }
    settle();
    EXPECT_TRUE(told.empty());
    revoke(a(), on);
    settle_until([&] { return told.size() == 1; });
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0], errc::lost);
    EXPECT_FALSE(dropped_told);
}

TEST_P(LockStore, ADestroyedOpNeverCompletes) {
    const auto on = open(a());
    bool completed = false;
    {
        const auto dropped =
            a().renew(on.id, world_->on().now() + request_timeout,
                      [&](std::error_code, std::chrono::seconds) { completed = true; });
    }
    world_->run_for(request_timeout);
    EXPECT_FALSE(completed);
}

TEST_P(LockStore, AnOpMayGoInsideItsOwnCompletion) {
    const auto on = open(a());
    op self;
    bool done = false;
    self = a().renew(on.id, world_->on().now() + request_timeout,
                     [&](std::error_code, std::chrono::seconds) {
                         self = op();
                         done = true;
                     });
    world_->run_for(request_timeout + 50ms);
    EXPECT_TRUE(done);
}

TEST_P(LockStore, StopCompletesInBoundedTime) {
    const auto by = world_->on().now() + request_timeout;
    bool stopped = false;
    const auto stop = b().stop(by, [&](std::error_code, int) { stopped = true; });
    world_->run_for(request_timeout + 50ms);
    EXPECT_TRUE(stopped);
}

}  // namespace trinco::test
