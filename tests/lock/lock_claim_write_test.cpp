// Writes that are guarded by a claim, over a network that can be cut.
#include "lock/lock_claim.hpp"
#include "lock_scene.hpp"

namespace trinco::test {
namespace {

using detail::change;

class LockClaimWrite : public LockScene {
protected:
    struct wrote {
        std::optional<std::error_code> answer;
        int answers = 0;
        std::uint64_t revision = 0;
    };
    static void write(lock_claim& by, wrote& w, std::string value) {
        by.write({change{"d:1", std::move(value)}}, 0s,
                 [&w](std::error_code error, std::uint64_t at) {
                     w.answer = error;
                     ++w.answers;
                     w.revision = at;
                 });
        EXPECT_EQ(w.answers, 0) << "a completion ran inside its call";
    }
    void hold(lock_claim& c, told& t) {
        acquire(c, t, exclusive("n"));
        world_.run_for(50ms);
        ASSERT_TRUE(c.held());
    }
    [[nodiscard]] std::string kept() const {
        const auto found = locks_->read("d:1").value;
        return found ? found->value : "";
    }

    std::shared_ptr<session_core> first_ = open(one_, store_one_);
    std::shared_ptr<session_core> second_ = open(two_, store_two_);
};

TEST_F(LockClaimWrite, IsAppliedWhileTheLockIsHeldAndNotBefore) {
    lock_claim c(first_);
    told t;
    wrote early, good;
    write(c, early, "early");
    world_.run_for(50ms);
    EXPECT_EQ(early.answer, errc::not_held);
    hold(c, t);
    write(c, good, "mine");
    world_.run_for(50ms);
    EXPECT_EQ(good.answer, std::error_code());
    EXPECT_EQ(good.revision, locks_->read("d:1").value->revision);
    EXPECT_EQ(kept(), "mine");
}

TEST_F(LockClaimWrite, IsKeptForAsLongAsSaid) {
    lock_claim c(first_);
    told t;
    hold(c, t);
    c.write({change{"d:1", "short"}}, 60s,
            [](std::error_code error, std::uint64_t) { EXPECT_FALSE(error) << error.message(); });
    world_.run_for(59s);
    EXPECT_EQ(kept(), "short");
    world_.run_for(2s);
    EXPECT_EQ(kept(), "");
}

TEST_F(LockClaimWrite, WhatTheStoreTookAwayIsRefusedAndLost) {
    lock_claim c(first_), heir(second_);
    told t, next;
    wrote stale;
    hold(c, t);
    // The news of it does not get through, the write does.
    cut(one_);
    locks_->revoke(first_->lease_id());
    acquire(heir, next, exclusive("n"));
    world_.run_for(50ms);
    ASSERT_TRUE(heir.held());
    ASSERT_TRUE(c.held()) << "it must still believe for this to be a test";
    mend(one_);
    write(c, stale, "stale");
    world_.run_for(50ms);
    EXPECT_EQ(stale.answer, errc::lost);
    EXPECT_FALSE(c.held()) << "it was told so";
    EXPECT_EQ(t.losses.size(), 1U);
    EXPECT_EQ(kept(), "");
}

TEST_F(LockClaimWrite, WithoutAnAnswerItIsUnknownAndMayHaveHappened) {
    lock_claim c(first_);
    told t;
    wrote lost_question, lost_answer;
    hold(c, t);
    net_.cut(one_, server_);
    write(c, lost_question, "1");
    world_.run_for(3s);
    EXPECT_EQ(lost_question.answer, errc::unknown_outcome);
    EXPECT_EQ(kept(), "");
    mend(one_);
    net_.cut(server_, one_);
    write(c, lost_answer, "2");
    world_.run_for(3s);
    EXPECT_EQ(lost_answer.answer, errc::unknown_outcome);
    EXPECT_EQ(kept(), "2");
    EXPECT_TRUE(c.held());
}

TEST_F(LockClaimWrite, SeveralAtATimeAreAnsweredOnceAndAfterGivingBack) {
    lock_claim c(first_);
    told t;
    std::vector<wrote> all(3);
    hold(c, t);
    for (std::size_t i = 0; i < all.size(); ++i) write(c, all[i], std::to_string(i));
    c.release([](std::error_code) {});
    world_.run_for(50ms);
    for (const auto& one : all) {
        EXPECT_EQ(one.answers, 1);
        EXPECT_EQ(one.answer, std::error_code());
    }
    EXPECT_EQ(kept(), "2");
    EXPECT_TRUE(t.losses.empty());
}

TEST_F(LockClaimWrite, AnEarlierGrantIsNotTakenForTheLaterOne) {
    lock_claim c(first_);
    told t, again;
    wrote late;
    hold(c, t);
    net_.cut(server_, one_);  // of the first grant, answered after the second has begun
    locks_->revoke(first_->lease_id());
    write(c, late, "late");
    c.abandon();
    world_.run_for(50ms);
    mend(one_);
    world_.run_for(3s);
    EXPECT_EQ(late.answers, 1);
    EXPECT_TRUE(*late.answer);
    EXPECT_EQ(kept(), "");
}

TEST_F(LockClaimWrite, NothingIsToldAfterDestruction) {
    auto c = std::make_unique<lock_claim>(first_);
    told t;
    wrote w;
    hold(*c, t);
    write(*c, w, "1");
    c.reset();
    world_.run_for(3s);
    EXPECT_EQ(w.answers, 0);
}

}  // namespace
}  // namespace trinco::test
