// The simulated Consul does as docs/consul-facts.md says, and what the store makes of it: rights,
// the size of requests, paths.
#include "consul_locks_world.hpp"

namespace trinco::test {
namespace {

class ConsulTwin : public ConsulLocks {
protected:
    consul::operation doing(verb_t verb, const std::string& key) {
        consul::operation one;
        one.verb = verb;
        one.key = key;
        return one;
    }
};

TEST_F(ConsulTwin, WhoMayNotWriteIsToldSoAndLeavesNothingBehind) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    consul_.forbid({.write = "n"});
    EXPECT_EQ(enter(*a_, make(on, 2, {"n2"})), errc::denied);
    EXPECT_EQ(enter(*a_, claim{{3}, on.id, {{"n3", claim_kind::permit, 2}}, "info"}), errc::denied);
    EXPECT_EQ(publish(*a_, on, 1, "x"), errc::denied);
    EXPECT_EQ(evict(*b_, list(*b_, "n").at(0), true), errc::denied);
    EXPECT_EQ(leave(*a_, on, 1), errc::denied);
    EXPECT_EQ(consul_.all().size(), 1U);
    consul_.forbid({.write = "trinco:records/"});
    EXPECT_EQ(write(*a_, {{"once/a", "x"}}).error, errc::denied);
    consul_.forbid({});
    ASSERT_FALSE(leave(*a_, on, 1));
    EXPECT_TRUE(consul_.all().empty());
    world_.run_for(1s);
    EXPECT_EQ(consul_.sessions().size(), 1U);
}

TEST_F(ConsulTwin, WhatIsSeenToStandIsNotForgottenHoweverLongItMayNotBeErased) {
    const auto on = open(*a_, 600s);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"m", "n"})));
    ASSERT_TRUE(hand(verb_t::erase, "m/.lock").applied);
    ASSERT_FALSE(owned(*a_, on).error);
    ASSERT_NE(at("n/.lock"), nullptr) << "the claim is lost, and this part of it still stands";
    consul_.forbid({.write = "n"});
    for (int minute = 0; minute < 20; ++minute) {
        EXPECT_EQ(leave(*a_, on, 1), errc::denied) << minute;
        world_.run_for(60s);
        ASSERT_FALSE(renew(*a_, on).error);
        ASSERT_FALSE(owned(*a_, on).error);
    }
    consul_.forbid({});
    EXPECT_FALSE(leave(*a_, on, 1));
    EXPECT_EQ(at("n/.lock"), nullptr);
}

TEST_F(ConsulTwin, OneRecordThatMayNotBeErasedKeepsNoOtherThere) {
    for (const auto* key : {"once/a", "once/b", "once/c"}) {
        ASSERT_FALSE(write(*a_, {{key, "x"}}, 5s).error);
    }
    world_.run_for(24h + 12s);
    consul_.forbid({.write = "trinco:records/once/b"});
    EXPECT_TRUE(scan(*a_, "once/").empty());
    world_.run_for(1s);
    EXPECT_EQ(consul_.all().size(), 1U);
    EXPECT_NE(at("trinco:records/once/b"), nullptr);
}

TEST_F(ConsulTwin, WhatMayNotBeReadIsLeftOutOrDenied) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"m"})));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    consul_.forbid({.read = "n/"});
    EXPECT_EQ(list(*b_, "").size(), 1U);
    ASSERT_FALSE(enter(*a_, make(on, 3, {"n-old"})));
    const auto is_hidden = [&](const std::string& name) {
        const auto all = ask<entries>([&](deadline by, completion<entries> f) {
            return b_->list(name, "", 100, by, std::move(f));
        });
        EXPECT_FALSE(all.error) << "of many nobody knows what is left out";
        return all.value.name_is_hidden;
    };
    EXPECT_TRUE(is_hidden("n")) << "who asks for it by its name is not told that it is free";
    EXPECT_FALSE(is_hidden("n/"));
    EXPECT_FALSE(is_hidden("n-old"));
    EXPECT_FALSE(is_hidden("free"));
    ASSERT_FALSE(leave(*a_, on, 3));
    EXPECT_EQ(verify(*a_, on, 2).error, errc::denied);
    EXPECT_FALSE(verify(*a_, on, 1).error);
    EXPECT_EQ(owned(*a_, on).error, errc::denied) << "it is not taken for gone";
    EXPECT_EQ(consul_.read({"n/", true, true}).value.rows.size(), 0U);
    EXPECT_EQ(consul_.read({"n/.lock", false, true}).error, errc::denied);
    EXPECT_TRUE(consul_.txn({{doing(verb_t::get, "n/.lock")}}).value.rows.empty());
    const auto index = doing(verb_t::check_index, "n/.lock");
    EXPECT_EQ(consul_.txn({{index}}).value.refusals.at(0).why, consul::refusal_t::denied);
}

TEST_F(ConsulTwin, SessionsNeedARightToo) {
    const auto on = open(*a_);
    consul_.forbid({.sessions = true});
    EXPECT_EQ(ask<detail::lease>([&](deadline by, completion<detail::lease> f) {
                  return a_->open(60s, "test", by, std::move(f));
              }).error,
              errc::denied);
    EXPECT_EQ(renew(*a_, on).error, errc::denied);
}

TEST_F(ConsulTwin, WhatMayBeWrittenAtOnceFitsIntoARequest) {
    auto big = doing(verb_t::set, "k");
    big.value = std::string(400'000, 'x');
    EXPECT_EQ(consul_.txn({{big}}).error, errc::busy) << "413";
    EXPECT_EQ(consul_.txn({{129, doing(verb_t::get, "k")}}).error, errc::busy);
    std::vector<change> all;
    for (int i = 0; i < 2; ++i) {
        all.push_back(
            {"once/" + std::to_string(i) + std::string(500, 'k'), std::string(126'000, 'x')});
    }
    EXPECT_FALSE(write(*a_, all).error);
    all.push_back({"once/2", std::string(16'000, 'x')});
    EXPECT_EQ(write(*a_, all).error, errc::invalid) << "the store says so before the server does";
}

TEST_F(ConsulTwin, APathThatIsCleanedNamesNoKey) {
    ASSERT_TRUE(hand(verb_t::set, "a//b", "", 0, "x").applied) << "a transaction has no path";
    for (const auto* key : {"a//b", "/a", "a/./b", "a/..", "."}) {
        EXPECT_EQ(consul_.read({key, false, true}).error, errc::invalid) << key;
    }
    for (const auto* key : {"a/b", "a/", "", ".lock", "a/.lock"}) {
        EXPECT_FALSE(consul_.read({key, true, true}).error) << key;
    }
}

}  // namespace
}  // namespace trinco::test
