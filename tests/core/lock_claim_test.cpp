#include "core/lock/claim.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using trinco::detail::claim_event;
using trinco::detail::claim_kind;
using trinco::detail::claim_life;
using trinco::detail::claim_state;
using trinco::detail::conflicts;
using trinco::detail::limits_differ;
using trinco::detail::seat;
using trinco::detail::turn_rule;

constexpr seat exclusive{claim_kind::exclusive, 0};
constexpr seat shared{claim_kind::shared, 0};
constexpr seat permit2{claim_kind::permit, 2};
constexpr seat permit3{claim_kind::permit, 3};

TEST(LockClaim, ConflictTable) {
    static_assert(conflicts(exclusive, exclusive));
    static_assert(conflicts(exclusive, shared) && conflicts(shared, exclusive));
    static_assert(conflicts(exclusive, permit2) && conflicts(permit2, exclusive));
    static_assert(conflicts(shared, permit2) && conflicts(permit2, shared));
    static_assert(!conflicts(shared, shared));
    static_assert(!conflicts(permit2, permit2));
    static_assert(conflicts(permit2, permit3));
    static_assert(limits_differ(permit2, permit3) && !limits_differ(permit2, permit2) &&
                  !limits_differ(exclusive, permit2));
    SUCCEED();
}

std::vector<bool> turns(const std::vector<seat>& queue) {
    turn_rule rule;
    std::vector<bool> out;
    for (const auto s : queue) {
        out.push_back(rule.has_turn(s));
        rule.pass(s);
    }
    return out;
}

TEST(LockClaim, OneExclusiveAtATime) {
    EXPECT_EQ(turns({exclusive, exclusive, shared}), (std::vector<bool>{true, false, false}));
}

TEST(LockClaim, SharedTogetherUntilTheFirstExclusive) {
    EXPECT_EQ(turns({shared, shared, exclusive, shared}),
              (std::vector<bool>{true, true, false, false}));
}

TEST(LockClaim, PermitsUpToTheirNumber) {
    EXPECT_EQ(turns({permit2, permit2, permit2}), (std::vector<bool>{true, true, false}));
    EXPECT_EQ(turns({shared, permit2}), (std::vector<bool>{true, false}));
}

// The rule in its own words, at quadratic cost.
bool has_turn(const std::vector<seat>& queue, std::size_t i) {
    std::size_t permits = 0;
    for (std::size_t j = 0; j < i; ++j) {
        if (conflicts(queue[j], queue[i])) return false;
        if (queue[j].kind == claim_kind::permit) ++permits;
    }
    return queue[i].kind != claim_kind::permit || permits < queue[i].n;
}

seat any_seat() {
    const auto kind = static_cast<claim_kind>(*rc::gen::inRange(0, 3));
    return {kind, kind == claim_kind::permit ? *rc::gen::inRange<std::uint32_t>(1, 4) : 0U};
}

RC_GTEST_PROP(LockClaim, TheWalkAgreesWithTheRule, ()) {
    std::vector<seat> queue;
    for (int i = *rc::gen::inRange(0, 8); i > 0; --i) queue.push_back(any_seat());
    const auto walked = turns(queue);
    turn_rule rule;
    for (std::size_t i = 0; i < queue.size(); ++i) {
        RC_ASSERT(walked[i] == has_turn(queue, i));
        if (rule.closed()) RC_ASSERT(!walked[i]);
        rule.pass(queue[i]);
    }
}

RC_GTEST_PROP(LockClaim, NobodyWhoHasTheTurnLosesItWhenOthersLeaveOrCome, ()) {
    std::vector<seat> queue;
    for (int i = *rc::gen::inRange(1, 8); i > 0; --i) queue.push_back(any_seat());
    const auto who = *rc::gen::inRange<std::size_t>(0, queue.size());
    const bool before = has_turn(queue, who);
    auto fewer = queue;
    const auto leaver = *rc::gen::inRange<std::size_t>(0, queue.size());
    if (leaver == who) return;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(leaver));
    const bool after = has_turn(fewer, leaver < who ? who - 1 : who);
    RC_ASSERT(!before || after);
}

claim_life after(std::initializer_list<claim_event> events) {
    claim_life life;
    for (const auto e : events) life.on(e);
    return life;
}

using e = claim_event;

TEST(LockClaim, TheOrdinaryLife) {
    claim_life life;
    EXPECT_EQ(life.state(), claim_state::entering);
    EXPECT_EQ(life.on(e::entered), claim_state::waiting);
    EXPECT_EQ(life.on(e::granted), claim_state::granted);
    EXPECT_EQ(life.on(e::abandoned), claim_state::leaving);
    EXPECT_EQ(life.on(e::left), claim_state::gone);
}

TEST(LockClaim, AnUnknownLeaveIsADebtUntilItIsSettled) {
    auto life = after({e::entered, e::abandoned, e::unsettled});
    EXPECT_EQ(life.state(), claim_state::debt);
    EXPECT_EQ(life.on(e::listed), claim_state::leaving);
    EXPECT_EQ(life.on(e::unsettled), claim_state::debt);
    EXPECT_EQ(life.on(e::left), claim_state::gone);
}

TEST(LockClaim, AnEnterThatMayStillArriveOutlivesItsLeave) {
    auto life = after({e::unsettled, e::abandoned, e::left});
    EXPECT_EQ(life.state(), claim_state::debt) << "the first copy may come after the leave";
    EXPECT_EQ(life.on(e::left), claim_state::debt);
    EXPECT_EQ(life.on(e::unlisted), claim_state::gone);
}

TEST(LockClaim, ARefusalAfterAnUnknownEnterIsADebt) {
    EXPECT_EQ(after({e::refused}).state(), claim_state::gone);
    EXPECT_EQ(after({e::unsettled, e::refused}).state(), claim_state::debt);
}

TEST(LockClaim, GoneIsFinal) {
    for (const auto last :
         {e::entered, e::granted, e::abandoned, e::left, e::unsettled, e::listed}) {
        auto life = after({e::entered, e::lost});
        EXPECT_EQ(life.on(last), claim_state::gone);
    }
}

RC_GTEST_PROP(LockClaim, ALeavingClaimIsNeverGrantedAgainAndGoneNeverEnds, ()) {
    claim_life life;
    bool abandoned = false;
    for (int i = 0; i < 20; ++i) {
        const auto event = static_cast<claim_event>(*rc::gen::inRange(0, 9));
        const auto before = life.state();
        const auto now = life.on(event);
        if (event == claim_event::abandoned && before != claim_state::debt) abandoned = true;
        if (abandoned) {
            RC_ASSERT(now != claim_state::granted && now != claim_state::waiting &&
                      now != claim_state::entering);
        }
        if (before == claim_state::gone) RC_ASSERT(now == claim_state::gone);
    }
}

}  // namespace
