// Claims of several names, which step back where they keep a free name from others.
#include "lock_scene.hpp"

namespace trinco::test {
namespace {

class LockAllClaim : public LockScene {
protected:
    static lock_request all(std::vector<std::string> names, bool only_if_free = false) {
        lock_request r;
        for (auto& n : names) {
            r.parts.push_back({std::move(n), detail::claim_kind::exclusive, 0});
        }
        r.only_if_free = only_if_free;
        return r;
    }
    std::size_t entries() const { return locks_->rows().size(); }

    std::shared_ptr<session_core> first_ = open(one_, store_one_);
    std::shared_ptr<session_core> second_ = open(two_, store_two_);
};

TEST_F(LockAllClaim, TakesAllOrNothing) {
    lock_claim held(first_), both(second_);
    told t, tried;
    acquire(held, t, exclusive("b"));
    world_.run_for(50ms);
    acquire(both, tried, all({"a", "b"}, true));
    world_.run_for(50ms);
    EXPECT_EQ(tried.answer, errc::conflict);
    EXPECT_EQ(entries(), 1U) << "a part stayed behind";
    held.abandon();
    world_.run_for(50ms);
    acquire(both, tried, all({"a", "b"}, true));
    world_.run_for(50ms);
    EXPECT_TRUE(both.held());
    EXPECT_EQ(both.granted().tokens.size(), 2U);
}

TEST_F(LockAllClaim, AStrangerThatNestsGetsThrough) {
    lock_claim outer(first_), inner(first_), both(second_);
    told to, ti, tb;
    acquire(outer, to, exclusive("b"));
    world_.run_for(50ms);
    acquire(both, tb, all({"a", "b"}));
    world_.run_for(50ms);
    acquire(inner, ti, exclusive("a"));  // behind `both`, which waits for `outer`
    world_.run_for(1'500ms);
    EXPECT_FALSE(ti.answer) << "it stepped back before its time";
    world_.run_for(2s);
    ASSERT_TRUE(inner.held()) << "a deadlock";
    EXPECT_FALSE(tb.answer);
    inner.abandon();
    outer.abandon();
    world_.run_for(1s);
    EXPECT_TRUE(both.held());
}

TEST_F(LockAllClaim, WhoHeadsNoneKeepsItsPlace) {
    lock_claim a(first_), b(first_), both(second_), late(first_);
    told ta, tb, tboth, tl;
    acquire(a, ta, exclusive("a"));
    acquire(b, tb, exclusive("b"));
    world_.run_for(50ms);
    acquire(both, tboth, all({"a", "b"}));
    world_.run_for(50ms);
    acquire(late, tl, exclusive("a"));
    world_.run_for(10s);
    a.abandon();
    b.abandon();
    world_.run_for(1s);
    EXPECT_TRUE(both.held()) << "its place was given up although it blocked nobody";
    EXPECT_FALSE(tl.answer);
}

TEST_F(LockAllClaim, AFreeNameIsNotKeptForLong) {
    lock_claim b(first_), both(second_);
    told tb, tboth;
    acquire(b, tb, exclusive("b"));
    world_.run_for(50ms);
    acquire(both, tboth, all({"a", "b"}));
    boot_clock::duration kept{}, longest{};
    for (int i = 0; i < 2'000; ++i) {
        world_.run_for(10ms);
        const auto rows = locks_->rows();
        const bool waits = !rows.empty() && rows.front().name == "a";
        kept = waits ? kept + 10ms : boot_clock::duration{};
        longest = std::max(longest, kept);
    }
    EXPECT_GT(longest, 1'900ms);
    EXPECT_LT(longest, 2'100ms);
    both.abandon();
    world_.run_for(1s);
    EXPECT_EQ(entries(), 1U);
}

TEST_F(LockAllClaim, AbandonedWhileSteppedBackItEntersNoMore) {
    lock_claim b(first_), both(second_);
    told tb, tboth;
    acquire(b, tb, exclusive("b"));
    world_.run_for(50ms);
    auto limited = all({"a", "b"});
    limited.by = world_.now() + 2'040ms;  // 2,000 after it is known to wait, it leaves
    acquire(both, tboth, std::move(limited));
    world_.run_for(2'030ms);
    EXPECT_EQ(entries(), 1U) << "it has not stepped back";
    world_.run_for(1s);
    EXPECT_EQ(tboth.answer, errc::not_acquired);
    EXPECT_TRUE(both.idle());
    EXPECT_EQ(entries(), 1U);
}

// Twenty who take the same five names in orders of their own, beside two strangers who nest.
TEST_F(LockAllClaim, ManyInAllOrdersAndStrangersAllGetTheirTurns) {
    struct party {
        explicit party(const std::shared_ptr<session_core>& on) : lock(on), nested(on) {}
        lock_claim lock, nested;
        told got, got_nested;
        int turns = 0;
    };
    const std::vector<std::string> names{"a", "b", "c", "d", "e"};
    std::vector<std::unique_ptr<party>> all_of_them;
    for (int i = 0; i < 22; ++i) {
        all_of_them.push_back(std::make_unique<party>(i % 2 == 0 ? first_ : second_));
    }
    const auto take = [&](party& p, int i) {
        p.got = {};
        p.got_nested = {};
        acquire(p.lock, p.got, i < 20 ? all(names) : exclusive(i == 20 ? "b" : "d"));
    };
    for (int i = 0; i < 22; ++i) take(*all_of_them[static_cast<std::size_t>(i)], i);
    for (int step = 0; step < 60'000; ++step) {
        world_.run_for(10ms);
        int whole = 0;
        for (int i = 0; i < 22; ++i) {
            auto& p = *all_of_them[static_cast<std::size_t>(i)];
            if (p.lock.idle() || !p.lock.held()) continue;
            if (i < 20) {
                ++whole;
            } else if (p.nested.idle() && !p.got_nested.answer) {
                acquire(p.nested, p.got_nested, exclusive(i == 20 ? "a" : "c"));
                continue;
            } else if (!p.nested.held()) {
                continue;
            }
            p.nested.abandon();
            p.lock.abandon();
            if (++p.turns < 3) take(p, i);
        }
        ASSERT_LE(whole, 1) << "two hold all five";
        if (std::all_of(all_of_them.begin(), all_of_them.end(),
                        [](const auto& p) { return p->turns == 3; })) {
            break;
        }
    }
    for (const auto& p : all_of_them) EXPECT_EQ(p->turns, 3);
}

}  // namespace
}  // namespace trinco::test
