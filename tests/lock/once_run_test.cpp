#include "lock/once_run.hpp"

#include "lock_scene.hpp"

namespace trinco::test {
namespace {

using detail::once_record;
using detail::once_run;
using detail::once_settings;
using detail::once_step;
using detail::once_turn;
using detail::once_wishes;

class OnceRun : public LockScene {
protected:
    struct caller {
        std::unique_ptr<once_run> run;
        std::optional<std::error_code> error;
        once_turn turn;
        int turns = 0;
        std::optional<std::error_code> finished;
        [[nodiscard]] bool has(once_step s) const { return error && !*error && turn.step == s; }
    };

    once_settings settings(once_wishes wishes = {}) {
        once_settings s;
        s.key = "invoice/42";
        s.label = "worker";
        s.wishes = std::move(wishes);
        s.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        return s;
    }
    static detail::completion<once_turn> into(caller& c) {
        return [&c](std::error_code error, once_turn t) {
            c.error = error;
            c.turn = std::move(t);
            ++c.turns;
        };
    }
    void begin(caller& c, const std::shared_ptr<session_core>& on, once_settings s) {
        c.run = std::make_unique<once_run>(on, std::move(s));
        c.run->begin(into(c));
    }
    void finish(caller& c, bool failed, std::string payload) {
        c.run->finish(failed ? once_record::state_t::failed : once_record::state_t::done,
                      std::move(payload), world_.now() + 30s,
                      [&c](std::error_code error, int) { c.finished = error; });
    }

    std::shared_ptr<session_core> first_ = open(one_, store_one_);
    std::shared_ptr<session_core> second_ = open(two_, store_two_);
};

TEST_F(OnceRun, OneOfFiftyRunsAndAllGetItsResult) {
    std::vector<caller> callers(50);
    for (std::size_t i = 0; i < callers.size(); ++i) {
        begin(callers[i], i % 2 == 0 ? first_ : second_, settings());
    }
    world_.run_for(3s);
    caller* runner = nullptr;
    for (auto& c : callers) {
        if (!c.has(once_step::begin)) {
            EXPECT_FALSE(c.error) << "told before the one that runs was done";
            continue;
        }
        EXPECT_EQ(runner, nullptr) << "two run";
        runner = &c;
    }
    ASSERT_NE(runner, nullptr);
    finish(*runner, false, "charge 7");
    world_.run_for(1s);
    EXPECT_EQ(runner->finished, std::error_code());
    for (auto& c : callers) {
        EXPECT_EQ(c.turns, 1);
        if (&c == runner) continue;
        ASSERT_TRUE(c.has(once_step::answer));
        EXPECT_EQ(c.turn.record.payload, "charge 7");
        EXPECT_EQ(c.turn.record.run_id, runner->turn.record.run_id);
    }
    EXPECT_TRUE(locks_->rows().empty()) << "a lock was left";
}

TEST_F(OnceRun, AnAnswerThatIsThereTakesNoLock) {
    caller a, b;
    begin(a, first_, settings());
    world_.run_for(100ms);
    finish(a, false, "r");
    world_.run_for(100ms);
    begin(b, second_, settings());
    world_.run_for(3ms);
    EXPECT_TRUE(b.has(once_step::answer)) << "one request to the store and back is 2 ms";
}

TEST_F(OnceRun, WhenTheOwnerDiesEverybodyIsToldAndNobodyRuns) {
    caller dies;
    begin(dies, first_, settings());
    world_.run_for(100ms);
    ASSERT_TRUE(dies.has(once_step::begin));
    std::vector<caller> others(10);
    for (auto& c : others) begin(c, second_, settings());
    world_.run_for(1s);
    for (auto& c : others) EXPECT_FALSE(c.error);
    one_.kill();
    world_.run_for(ttl + 2s);
    for (auto& c : others) {
        ASSERT_TRUE(c.has(once_step::tell));
        EXPECT_EQ(c.turn.record.owner, "worker");
        EXPECT_EQ(c.turn.record.run_id, dies.turn.record.run_id);
    }
    caller later;
    begin(later, second_, settings());
    world_.run_for(1s);
    EXPECT_TRUE(later.has(once_step::tell));
}

TEST_F(OnceRun, WhoAsksForItRunsItAgainUnderTheSameId) {
    caller dies;
    begin(dies, first_, settings());
    world_.run_for(100ms);
    one_.kill();
    std::vector<caller> others(5);
    const once_wishes again{.on_interrupted = once_wishes::interrupted_t::rerun};
    for (auto& c : others) begin(c, second_, settings(again));
    world_.run_for(ttl + 2s);
    const auto runs = std::count_if(others.begin(), others.end(),
                                    [](const caller& c) { return c.has(once_step::begin); });
    ASSERT_EQ(runs, 1) << "only one of them may";
    auto& runner = *std::find_if(others.begin(), others.end(),
                                 [](const caller& c) { return c.has(once_step::begin); });
    EXPECT_EQ(runner.turn.record.run_id, dies.turn.record.run_id);
    EXPECT_EQ(runner.turn.record.attempt, 2U);
    finish(runner, false, "r");
    world_.run_for(2s);
    for (auto& c : others) EXPECT_TRUE(&c == &runner || c.has(once_step::answer));
}

TEST_F(OnceRun, WhoKnowsWhomToAskSettlesIt) {
    const once_wishes asks{.on_interrupted = once_wishes::interrupted_t::ask};
    caller dies;
    begin(dies, first_, settings());
    world_.run_for(100ms);
    one_.kill();
    world_.run_for(ttl + 2s);
    caller a, b;
    begin(a, second_, settings(asks));
    world_.run_for(100ms);
    begin(b, second_, settings(asks));
    world_.run_for(2s);
    ASSERT_TRUE(a.has(once_step::ask));
    EXPECT_FALSE(b.error) << "two would ask at a time";
    a.run->settle("it was charged", into(a));
    world_.run_for(1s);
    ASSERT_TRUE(a.has(once_step::answer));
    ASSERT_TRUE(b.has(once_step::answer));
    EXPECT_EQ(b.turn.record.payload, "it was charged");
}

TEST_F(OnceRun, WhatWasNotDoneIsRunUnderTheSameId) {
    caller dies;
    begin(dies, first_, settings());
    world_.run_for(100ms);
    one_.kill();
    world_.run_for(ttl + 2s);
    caller a;
    begin(a, second_, settings({.on_interrupted = once_wishes::interrupted_t::ask}));
    world_.run_for(100ms);
    ASSERT_TRUE(a.has(once_step::ask));
    a.run->settle(std::nullopt, into(a));
    world_.run_for(100ms);
    ASSERT_TRUE(a.has(once_step::begin));
    EXPECT_EQ(a.turn.record.run_id, dies.turn.record.run_id);
    EXPECT_EQ(a.turn.record.attempt, 2U);
}

TEST_F(OnceRun, AFailureIsKeptUnlessWanted) {
    caller a, b, c;
    begin(a, first_, settings());
    world_.run_for(100ms);
    finish(a, true, "card refused");
    world_.run_for(100ms);
    begin(b, second_, settings());
    world_.run_for(100ms);
    ASSERT_TRUE(b.has(once_step::answer));
    EXPECT_EQ(b.turn.record.state, once_record::state_t::failed);
    EXPECT_EQ(b.turn.record.payload, "card refused");
    begin(c, second_, settings({.retry_on_failure = true}));
    world_.run_for(100ms);
    ASSERT_TRUE(c.has(once_step::begin));
    EXPECT_NE(c.turn.record.run_id, a.turn.record.run_id) << "a provider would refuse it again";
    EXPECT_EQ(c.turn.record.attempt, 2U);
}

TEST_F(OnceRun, AKeyUsedWithOtherInputIsTold) {
    caller a, b;
    begin(a, first_, settings({.fingerprint = "f1"}));
    world_.run_for(100ms);
    begin(b, second_, settings({.fingerprint = "f2"}));
    world_.run_for(100ms);
    EXPECT_TRUE(b.has(once_step::reused)) << "also while it runs";
}

TEST_F(OnceRun, AResultCountsThoughTheLockWasLost) {
    caller a, b;
    begin(a, first_, settings());
    world_.run_for(100ms);
    cut(one_);
    world_.run_for(ttl + 2s);
    mend(one_);
    begin(b, second_, settings());
    world_.run_for(100ms);
    EXPECT_TRUE(b.has(once_step::tell));
    finish(a, false, "late");
    world_.run_for(1s);
    EXPECT_EQ(a.finished, std::error_code()) << "nobody else has run it";
    caller c;
    begin(c, second_, settings());
    world_.run_for(100ms);
    EXPECT_TRUE(c.has(once_step::answer));
}

TEST_F(OnceRun, AResultDoesNotCountWhenSomebodyElseRanIt) {
    caller a, b;
    begin(a, first_, settings());
    world_.run_for(100ms);
    cut(one_);
    world_.run_for(ttl + 2s);
    mend(one_);
    begin(b, second_, settings({.on_interrupted = once_wishes::interrupted_t::rerun}));
    world_.run_for(100ms);
    ASSERT_TRUE(b.has(once_step::begin));
    finish(a, false, "late");
    world_.run_for(1s);
    EXPECT_EQ(a.finished, errc::conflict);
    finish(b, false, "second");
    world_.run_for(1s);
    EXPECT_EQ(b.finished, std::error_code());
}

TEST_F(OnceRun, WaitingEndsAtItsLimit) {
    caller a, b;
    begin(a, first_, settings());
    world_.run_for(100ms);
    auto limited = settings();
    limited.by = world_.now() + 2s;
    begin(b, second_, std::move(limited));
    world_.run_for(3s);
    EXPECT_EQ(b.error, errc::not_acquired);
    EXPECT_EQ(locks_->rows().size(), 1U);
}

TEST_F(OnceRun, SomethingElseUnderTheKeyIsRefused) {
    const std::vector<detail::change> foreign{{detail::once_key_of("invoice/42"), "not ours"}};
    locks_->write("", {}, foreign, 0s);
    caller a;
    begin(a, first_, settings());
    world_.run_for(1s);
    EXPECT_EQ(a.error, errc::invalid);
}

TEST_F(OnceRun, WhatRunsLongerThanItIsKeptRunsOnce) {
    auto brief = settings();
    brief.keep = 2s;
    caller a, b;
    begin(a, first_, brief);
    world_.run_for(100ms);
    begin(b, second_, brief);
    world_.run_for(10s);
    EXPECT_FALSE(b.error) << "the record of one that runs was forgotten";
    finish(a, false, "r");
    world_.run_for(500ms);
    EXPECT_EQ(a.finished, std::error_code());
    ASSERT_TRUE(b.has(once_step::answer));
    world_.run_for(3s);
    caller later;
    begin(later, second_, brief);
    world_.run_for(100ms);
    EXPECT_TRUE(later.has(once_step::begin)) << "what has ended is kept for its time";
}

TEST_F(OnceRun, WhoWithdrawsBeforeItRunsLeavesNothingInterrupted) {
    for (int step = 0; step < 40; ++step) {
        caller a;
        auto s = settings();
        s.key = "k" + std::to_string(step);
        begin(a, first_, s);
        world_.run_for(step * 250us);
        if (!a.error) a.run->withdraw();
        world_.run_for(1s);
        ASSERT_TRUE(a.error.has_value());
        if (a.has(once_step::begin)) {
            finish(a, false, "r");
            world_.run_for(1s);
            continue;
        }
        EXPECT_EQ(a.error, errc::canceled);
        a.run.reset();
        world_.run_for(1s);
        caller b;
        begin(b, second_, s);
        world_.run_for(100ms);
        EXPECT_TRUE(b.has(once_step::begin)) << "withdrawn after " << step;
    }
}

TEST_F(OnceRun, AWriteThatArrivesLateIsItsOwn) {
    // Longer than a request may take: the outcome is unknown, and it lands all the same.
    caller a;
    begin(a, first_, settings());
    world_.run_for(6ms);
    net_.set_faults({.delay_min = 2'500ms, .delay_max = 2'600ms});
    world_.run_for(2s);
    net_.set_faults({.delay_min = 1ms, .delay_max = 1ms});
    world_.run_for(10s);
    ASSERT_TRUE(a.has(once_step::begin)) << (a.error ? a.error->message() : "nothing");
    finish(a, false, "r");
    world_.run_for(2s);
    EXPECT_EQ(a.finished, std::error_code());
}

TEST_F(OnceRun, NothingBeginsAfterTheLockWasLost) {
    int lost = 0;
    for (int step = 0; step < 24; ++step) {
        const auto session = open(one_, store_one_);
        caller a;
        auto s = settings();
        s.key = "k" + std::to_string(step);
        begin(a, session, s);
        world_.run_for(step * 500us);
        if (a.error) continue;
        net_.cut(server_, one_);  // replies alone
        world_.run_for(ttl + 2s);
        net_.restore(server_, one_);
        world_.run_for(5s);
        ASSERT_TRUE(a.error.has_value()) << step;
        EXPECT_EQ(a.error, errc::lost) << step;
        ++lost;
    }
    EXPECT_GT(lost, 10);
}

TEST_F(OnceRun, OnANetworkThatLosesEverythingRunsOnce) {
    net_.set_faults({.p_drop = 0.15, .delay_min = 1ms, .delay_max = 40ms});
    for (int key = 0; key < 60; ++key) {
        std::vector<caller> callers(4);
        for (std::size_t i = 0; i < callers.size(); ++i) {
            auto s = settings();
            s.key = "k" + std::to_string(key);
            begin(callers[i], i % 2 == 0 ? first_ : second_, std::move(s));
        }
        int ran = 0;
        for (int step = 0; step < 600; ++step) {
            world_.run_for(100ms);
            for (auto& c : callers) {
                if (!c.has(once_step::begin) || c.finished) continue;
                ++ran;
                c.finished = errc::unknown_outcome;  // until it is told
                finish(c, false, "r");
            }
            const bool over = std::all_of(callers.begin(), callers.end(), [](const caller& c) {
                return c.has(once_step::answer) || (c.finished && !*c.finished);
            });
            if (over) break;
        }
        EXPECT_EQ(ran, 1);
        for (const auto& c : callers) {
            EXPECT_TRUE(c.has(once_step::answer) || c.finished == std::error_code())
                << "key " << key << ": " << (c.error ? c.error->message() : "waits") << ", "
                << (c.finished ? c.finished->message() : "not finished");
        }
    }
}

}  // namespace
}  // namespace trinco::test
