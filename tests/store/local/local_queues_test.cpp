// Sessions that have run out, and claims that are granted at once, in the file.
#include "store/local/local_queues.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/store/local/scratch_folder.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

class LocalQueues : public testing::Test {
protected:
    // A transaction; what it wants to happen afterwards.
    template <class F>
    local_round within(F f) {
        local_round after;
        in_.begin(false);
        local_queues q(in_, after, lives_, self_);
        f(q);
        in_.commit();
        for (auto& done : after.committed) done();
        after.committed.clear();
        return after;
    }
    [[nodiscard]] static claim on(const std::string& lease, std::vector<part> parts) {
        claim what;
        what.lease = lease;
        what.id = {1};
        what.parts = std::move(parts);
        return what;
    }
    // The lease of a new session that has asked for it in the transaction that opened it.
    std::string open_and_enter(std::vector<part> parts, std::optional<grant>* given = nullptr) {
        std::string lease;
        within([&](local_queues& q) {
            lease = q.open(10s, "test").value.id;
            EXPECT_FALSE(q.enter(on(lease, std::move(parts))).error);
            if (given != nullptr) *given = q.given();
        });
        return lease;
    }
    local_answer<grant> look(const std::string& lease) {
        local_answer<grant> found;
        within([&](local_queues& q) { found = q.verify(lease, {1}); });
        return found;
    }

    scratch_folder folder_;
    local_file in_{local_settings_for(folder_.file()), "local:x"};
    std::shared_ptr<local_lives> lives_ =
        std::make_shared<local_lives>(folder_.file().string() + "-live");
    const local_process self_{"socket", ::getpid(), "pid:[1]"};
};

// Who watches has seen one that has run out; who opened it has not said when to sweep.
TEST_F(LocalQueues, ReapingRemovesWhoHasRunOutThoughItIsNotTimeToSweep) {
    within([](local_queues& q) {
        ASSERT_FALSE(q.open(10s, "over").error);
        ASSERT_FALSE(q.open(10s, "goes on").error);
        ASSERT_FALSE(q.open(10s, "goes on").error);
    });
    query(in_.db().prepared("UPDATE sessions SET ends = 1 WHERE label = 'over'")).run();
    query(in_.db().prepared("UPDATE machine SET sweep_at = ?"), in_.now().count() + 3'600'000'000)
        .run();
    within([](local_queues& q) { q.reap({}); });
    EXPECT_EQ(in_.db().number("SELECT count(*) FROM sessions WHERE label = 'over'"), 0);
    EXPECT_EQ(in_.db().number("SELECT count(*) FROM sessions"), 2);
    EXPECT_EQ(in_.db().number("SELECT sweep_at = min(ends) FROM machine, sessions"), 1);
}

TEST_F(LocalQueues, TheFirstSessionThatEndsIsTheNextTimeToSweep) {
    within([](local_queues& q) { ASSERT_FALSE(q.open(60s, "long").error); });
    within([](local_queues& q) { ASSERT_FALSE(q.open(10s, "short").error); });
    within([](local_queues& q) { ASSERT_FALSE(q.open(60s, "long").error); });
    EXPECT_EQ(in_.db().number("SELECT sweep_at = min(ends) FROM machine, sessions"), 1);
}

TEST_F(LocalQueues, WhatIsGrantedAtOnceIsWhatLookingSays) {
    const part exclusive{"a", claim_kind::exclusive};
    const part shared{"b", claim_kind::shared};
    const part permit{"c", claim_kind::permit, 3};
    std::uint64_t before = 0;
    for (const auto& parts : std::vector<std::vector<part>>{
             {exclusive}, {shared}, {permit}, {exclusive, shared, permit}}) {
        std::optional<grant> given;
        const auto lease = open_and_enter(parts, &given);
        ASSERT_TRUE(given);
        ASSERT_EQ(given->tokens.size(), parts.size());
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const auto token = given->tokens[i];
            EXPECT_EQ(token > before, parts[i].kind == claim_kind::exclusive) << i;
            before = std::max(before, token);
        }
        const auto seen = look(lease);
        ASSERT_FALSE(seen.error);
        EXPECT_EQ(seen.value.tokens, given->tokens);
        within([&](local_queues& q) {
            EXPECT_TRUE(q.holder_of(parts.front().name));
            EXPECT_EQ(q.place_of(q.find(lease, {1})->id).ahead, 0U);
            q.revoke(lease);
        });
        EXPECT_EQ(in_.db().number("SELECT count(*) FROM entries"), 0);
    }
}

TEST_F(LocalQueues, WhoIsNotAloneHasItsTurnLaterAndAHigherToken) {
    const std::vector<part> parts{{"job", claim_kind::exclusive}};
    std::optional<grant> given;
    const auto first = open_and_enter(parts, &given);
    ASSERT_TRUE(given);
    const auto token = given->tokens.front();
    const auto second = open_and_enter(parts, &given);
    EXPECT_FALSE(given);
    EXPECT_EQ(look(second).error, errc::conflict);
    open_and_enter({{"other", claim_kind::exclusive}}, &given);
    ASSERT_TRUE(given);
    EXPECT_GT(given->tokens.front(), token);
    const auto after = within([&](local_queues& q) { q.revoke(first); });
    EXPECT_TRUE(after.look);
    const auto seen = look(second);
    ASSERT_FALSE(seen.error);
    EXPECT_GT(seen.value.tokens.front(), given->tokens.front());
    // One part of two is free.
    const auto both =
        open_and_enter({{"free", claim_kind::exclusive}, {"job", claim_kind::exclusive}}, &given);
    EXPECT_FALSE(given);
    within([&](local_queues& q) { q.revoke(second); });
    EXPECT_FALSE(look(both).error);
}

TEST_F(LocalQueues, WhoAsksAgainIsNotEnteredTwice) {
    const std::vector<part> parts{{"job", claim_kind::exclusive}};
    const auto lease = open_and_enter(parts);
    within([&](local_queues& q) {
        EXPECT_FALSE(q.enter(on(lease, parts)).error);
        EXPECT_FALSE(q.given());
    });
    EXPECT_EQ(in_.db().number("SELECT count(*) FROM entries"), 1);
}

TEST_F(LocalQueues, ADeadHolderIsNoneAndALeaseThatIsDeadGetsNothing) {
    const std::vector<part> parts{{"job", claim_kind::exclusive}};
    open_and_enter(parts);
    lives_->drop_all();
    const auto second = open_and_enter(parts);
    EXPECT_FALSE(look(second).error);
    EXPECT_EQ(in_.db().number("SELECT count(*) FROM sessions"), 1);
    std::string dead;
    within([&](local_queues& q) { dead = q.open(10s, "test").value.id; });
    lives_->drop_all();
    within([&](local_queues& q) {
        EXPECT_EQ(q.enter(on(dead, {{"free", claim_kind::exclusive}})).error, errc::lost);
    });
}

TEST_F(LocalQueues, ObserversHearOfAGrantAtOnceAndOfItsEnd) {
    query(in_.db().prepared("INSERT INTO observers(name, socket) VALUES('job', 'theirs')")).run();
    std::string lease;
    const auto granted = within([&](local_queues& q) {
        lease = q.open(10s, "test").value.id;
        ASSERT_FALSE(q.enter(on(lease, {{"job", claim_kind::exclusive}})).error);
    });
    EXPECT_TRUE(granted.rings.contains("theirs"));
    EXPECT_TRUE(granted.look);
    const auto ended = within([&](local_queues& q) { q.revoke(lease); });
    EXPECT_TRUE(ended.rings.contains("theirs"));
}

}  // namespace
}  // namespace trinco::detail::test
