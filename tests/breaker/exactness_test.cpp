// The engine judges rarely; it must behave as if it judged after every outcome. Random histories of
// one thread against a reference that keeps every outcome and does just that.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <deque>
#include <optional>
#include <ostream>
#include <vector>

#include "breaker_fixture.hpp"
#include "tests/core/property.hpp"

namespace trinco::test {
namespace {

using std::chrono::milliseconds;

struct step {
    enum kind_t { succeed, fail, ignore, pass, take, settle, reset, kinds } kind;
    int amount;      // of calls, of milliseconds; which held permit
    outcome result;  // of settle
};

std::ostream& operator<<(std::ostream& out, const step& s) {
    static const char* const names[] = {"succeed", "fail",   "ignore", "pass",
                                        "take",    "settle", "reset"};
    return out << names[s.kind] << "(" << s.amount << ", " << text_of(s.result) << ")";
}

// Every outcome with its slice; no shortcut anywhere.
class reference {
public:
    explicit reference(const breaker_options& o) : o_(o) {}

    struct call {
        std::uint64_t era;
        milliseconds began;
        bool probe;
    };
    struct seen {
        std::int64_t slice;
        outcome what;
        bool slow;
    };

    breaker_state state = breaker_state::closed;
    milliseconds now{0};
    milliseconds open_until{0};
    std::uint64_t stale = 0;
    std::uint64_t rejected = 0;

    std::optional<call> take(std::vector<call>& held) {
        notice_overdue(held);
        if (state == breaker_state::open && now >= open_until) enter(breaker_state::half_open);
        if (state == breaker_state::open ||
            (state == breaker_state::half_open && out_ + probes_.size() >= o_.half_open_probes)) {
            ++rejected;
            return std::nullopt;
        }
        const bool probe = state == breaker_state::half_open;
        if (probe) ++out_;
        return call{era_, now, probe};
    }

    void settle(const call& c, outcome what, std::vector<call>& held) {
        const bool slow = slow_on() && now - c.began >= o_.slow_call_after;
        if (c.era != era_) {
            ++stale;
            if (c.probe) --out_;
        } else if (c.probe) {
            --out_;
            settle_probe(what, slow);
        } else {
            outcomes_.push_back({slice(), what, slow});
            if (what != outcome::ignored) {
                streak_ = what == outcome::failure ? streak_ + 1 : 0;
                last_.push_back({0, what, slow});
                if (last_.size() > o_.count_window) last_.pop_front();
            }
            judge(overdue(held));
        }
        notice_overdue(held);
    }

    // A call that has just become overdue is looked at as soon as anybody comes by.
    void notice_overdue(const std::vector<call>& held) {
        if (!slow_on()) return;
        const auto late = overdue(held);
        if (late > known_overdue_) judge(late);
        known_overdue_ = overdue(held);
    }

    void reset() { enter(breaker_state::closed); }

    [[nodiscard]] counts window() const {
        counts n;
        for (const auto& s : outcomes_) {
            if (s.slice <= slice() - o_.window_slices) continue;
            if (s.what == outcome::success) ++n.success;
            if (s.what == outcome::failure) ++n.failure;
            if (s.what == outcome::ignored) ++n.ignored;
            if (s.what == outcome::success && s.slow) ++n.slow_success;
            if (s.what == outcome::failure && s.slow) ++n.slow_failure;
        }
        return n;
    }

private:
    [[nodiscard]] bool slow_on() const { return o_.slow_call_after.count() != 0; }
    [[nodiscard]] std::int64_t slice() const {
        return now.count() / (o_.window.count() / o_.window_slices);
    }
    [[nodiscard]] std::uint64_t overdue(const std::vector<call>& held) const {
        std::uint64_t n = 0;
        for (const auto& c : held) {
            n += slow_on() && c.era == era_ && !c.probe && now - c.began >= o_.slow_call_after;
        }
        return n;
    }
    void enter(breaker_state next) {
        state = next;
        ++era_;
        outcomes_.clear();
        last_.clear();
        probes_.clear();
        streak_ = 0;
        known_overdue_ = 0;
        if (next == breaker_state::open) open_until = now + o_.open_for;
    }
    void judge(std::uint64_t late) {
        if (state != breaker_state::closed) return;
        auto n = window();
        n.success += late;
        n.slow_success += late;
        if (o_.count_window != 0) {
            n = {};
            for (const auto& s : last_) {
                ++(s.what == outcome::success ? n.success : n.failure);
                if (s.slow) ++n.slow_success;
            }
        }
        const auto calls = static_cast<double>(n.judged());
        const bool enough = n.judged() >= o_.minimum_calls;
        if ((o_.failure_count != 0 && n.failure >= o_.failure_count) ||
            (enough && static_cast<double>(n.failure) / calls >= o_.failure_rate) ||
            (enough && slow_on() && static_cast<double>(n.slow()) / calls >= o_.slow_call_rate) ||
            (o_.consecutive_failures != 0 && streak_ >= o_.consecutive_failures)) {
            enter(breaker_state::open);
        }
    }
    void settle_probe(outcome what, bool slow) {
        if (what == outcome::ignored) return;
        probes_.push_back({0, what, slow});
        double failed = 0;
        double slow_ones = 0;
        for (const auto& p : probes_) {
            failed += p.what == outcome::failure;
            slow_ones += p.slow;
        }
        const double all = o_.half_open_probes;
        if (failed / all >= o_.failure_rate ||
            (slow_on() && slow_ones / all >= o_.slow_call_rate)) {
            enter(breaker_state::open);
        } else if (probes_.size() == o_.half_open_probes) {
            enter(breaker_state::closed);
        }
    }

    const breaker_options o_;
    std::uint64_t era_ = 1;
    std::vector<seen> outcomes_;  // of this era
    std::deque<seen> last_;
    std::vector<seen> probes_;
    std::uint64_t out_ = 0;  // probes in flight, of all eras
    std::uint64_t streak_ = 0;
    std::uint64_t known_overdue_ = 0;
};

// The real one and the reference, doing the same.
class both {
public:
    explicit both(const breaker_options& o) : real_(o), ref_(o) {
        ref_.now = std::chrono::duration_cast<milliseconds>(24h);
    }

    void run(const step& s) {
        switch (s.kind) {
            case step::succeed: calls(s.amount, outcome::success); break;
            case step::fail: calls(s.amount, outcome::failure); break;
            case step::ignore: calls(s.amount, outcome::ignored); break;
            case step::pass:
                real_.pass(milliseconds(s.amount));
                ref_.now += milliseconds(s.amount);
                break;
            case step::take: take(); break;
            case step::settle:
                if (!held_.empty()) {
                    settle(static_cast<std::size_t>(s.amount) % held_.size(), s.result);
                }
                break;
            case step::reset:
                if (s.amount % 8 == 0) {
                    (void)real_->reset("test");
                    ref_.reset();
                }
                break;
            case step::kinds: break;
        }
    }

    void compare() {
        const auto seen = real_->snapshot();
        ref_.notice_overdue(calls_);
        RC_ASSERT(text_of(seen.state) == text_of(ref_.state));
        RC_ASSERT(seen.stale == ref_.stale);
        RC_ASSERT(seen.totals.rejected == ref_.rejected);
        if (ref_.state == breaker_state::closed) {
            auto window = seen.window;
            window.rejected = 0;
            RC_ASSERT(window == ref_.window());
        }
        if (ref_.state == breaker_state::open) {
            RC_ASSERT(seen.retry_after == std::max(milliseconds(0), ref_.open_until - ref_.now));
        }
    }

private:
    bool take() {
        auto mine = ref_.take(calls_);
        auto permit = real_->try_acquire();
        RC_ASSERT(static_cast<bool>(permit) == mine.has_value());
        if (!mine) return false;
        held_.push_back(std::move(permit));
        calls_.push_back(*mine);
        return true;
    }
    void settle(std::size_t i, outcome what) {
        held_[i].settle(what);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
        const auto c = calls_[i];
        calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(i));
        ref_.settle(c, what, calls_);
    }
    void calls(int n, outcome what) {
        for (int i = 0; i < n; ++i) {
            if (take()) settle(held_.size() - 1, what);
        }
    }

    timed_breaker real_;
    reference ref_;
    std::vector<permit> held_;
    std::vector<reference::call> calls_;  // of the held permits
};

breaker_options some_options() {
    breaker_options o;
    o.failure_rate = *rc::gen::element(0.1, 1.0 / 3, 0.5, 0.7, 0.99, 1.0);
    o.minimum_calls = *rc::gen::inRange(1U, 30U);
    o.window_slices = *rc::gen::inRange(2U, 8U);
    o.window = milliseconds(o.window_slices * *rc::gen::inRange(50U, 200U));
    o.failure_count = *rc::gen::element(0U, 0U, 3U, 12U);
    o.consecutive_failures = *rc::gen::element(0U, 0U, 4U);
    o.count_window = *rc::gen::element(0U, 0U, 0U, o.minimum_calls, o.minimum_calls + 7);
    o.slow_call_after = milliseconds(*rc::gen::element(0, 0, 80));
    o.slow_call_rate = *rc::gen::element(0.2, 0.5, 1.0);
    o.open_for = 300ms;
    o.open_backoff = 1;
    o.jitter = 0;
    o.half_open_probes = *rc::gen::inRange(1U, 5U);
    o.probe_timeout = 1h;
    o.sync_interval = 10ms;
    return o;
}

step some_step() {
    step s;
    s.kind = *rc::gen::weightedElement<step::kind_t>({{6, step::succeed},
                                                      {5, step::fail},
                                                      {1, step::ignore},
                                                      {4, step::pass},
                                                      {3, step::take},
                                                      {3, step::settle},
                                                      {1, step::reset}});
    s.amount = s.kind == step::pass ? *rc::gen::element(0, 1, 20, 50, 100, 300, 1000)
                                    : *rc::gen::element(1, 1, 2, 3, 10, 40);
    s.result = *rc::gen::element(outcome::success, outcome::failure, outcome::ignored);
    return s;
}

TEST(Exactness, BehavesAsIfJudgedAfterEveryOutcome) {
    EXPECT_TRUE(holds("the engine equals a reference that judges after every outcome", 20000, [] {
        both b(some_options());
        const auto steps = *rc::gen::container<std::vector<step>>(
            *rc::gen::inRange<std::size_t>(1, 80), rc::gen::exec(some_step));
        for (const auto& s : steps) {
            b.run(s);
            b.compare();
        }
    }));
}

// Whatever the first outcome after successes have left the window is: it, or the next call, finds
// that only failures remain.
class OldSuccessesLeave : public ::testing::TestWithParam<breaker_options> {};

TEST_P(OldSuccessesLeave, AndAnIgnoredOutcomeNotices) {
    timed_breaker b(GetParam());
    b.succeed(3);
    b.pass(200ms);
    b.fail(3);
    b.pass(150ms);
    EXPECT_EQ(b->state(), breaker_state::closed);
    b->try_acquire().ignore();
    EXPECT_EQ(b->state(), breaker_state::open);
}

TEST_P(OldSuccessesLeave, AndAnIgnoredOutcomeOfALongCallNotices) {
    timed_breaker b(GetParam());
    b.succeed(3);
    b.pass(200ms);
    auto held = b->try_acquire();
    b.fail(3);
    b.pass(150ms);
    held.ignore();
    EXPECT_EQ(b->state(), breaker_state::open);
}

breaker_options leaving(unsigned in_a_row, milliseconds slow_after) {
    breaker_options o;
    o.failure_rate = 1;
    o.minimum_calls = 3;
    o.window = 300ms;
    o.window_slices = 3;
    o.consecutive_failures = in_a_row;
    o.slow_call_after = slow_after;
    o.sync_interval = 10ms;
    return o;
}

INSTANTIATE_TEST_SUITE_P(Closed, OldSuccessesLeave, ::testing::Values(leaving(0, 0ms)));
INSTANTIATE_TEST_SUITE_P(Every, OldSuccessesLeave, ::testing::Values(leaving(9, 0ms)));
INSTANTIATE_TEST_SUITE_P(Measured, OldSuccessesLeave,
                         ::testing::Values(leaving(0, 10s), leaving(9, 10s), leaving(9, 100ms)));

}  // namespace
}  // namespace trinco::test
