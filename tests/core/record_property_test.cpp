// Random histories of a fleet against record_reference, with the invariants checked after each
// step.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <vector>

#include "core/breaker/record.hpp"
#include "tests/core/property.hpp"
#include "tests/core/record_lab.hpp"
#include "tests/core/record_reference.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {

using trinco::test::holds;

// One step of a history: numbers, so that a failing history shrinks.
struct step {
    std::uint8_t what = 0;
    std::uint8_t who = 0;
    std::uint16_t a = 0;
    std::uint16_t b = 0;
};

std::ostream& operator<<(std::ostream& s, const step& x) {
    return s << "{" << int(x.what) << "," << int(x.who) << "," << x.a << "," << x.b << "}";
}

namespace {

constexpr int instances = 6;

// Two instances share a voter, twice.
int voter_of(int instance) {
    return instance % 4;
}

breaker_identity identity(int instance) {
    return {"i" + std::to_string(instance), "v" + std::to_string(voter_of(instance))};
}

policy small_policy(std::uint32_t seed) {
    policy p = plain_policy();
    const auto pick = [&](std::initializer_list<int> from) {
        const auto n = static_cast<std::uint32_t>(from.size());
        const int got = from.begin()[seed % n];
        seed /= n;
        return got;
    };
    p.half_open_probes = static_cast<std::uint32_t>(pick({5, 1, 2, 4}));
    p.quorum = static_cast<std::uint32_t>(pick({2, 1, 3}));
    p.failure_rate = pick({50, 25, 100}) / 100.0;
    p.minimum_calls = static_cast<std::uint32_t>(pick({5, 1, 10}));
    p.window = milliseconds(pick({1'000, 3'000}));
    p.window_slices = static_cast<std::uint32_t>(pick({10, 2, 4}));
    p.failure_count = static_cast<std::uint32_t>(pick({0, 12}));
    p.slow_calls = pick({0, 1}) == 1;
    p.probe_timeout = milliseconds(pick({1'000, 200}));
    p.recovery_ramp = milliseconds(pick({0, 700}));
    p.open_for = milliseconds(pick({300, 1'000}));
    p.open_max = 2'000ms;
    p.jitter = pick({0, 1}) * 0.5;
    p.live_for = milliseconds(pick({3'000, 8'000}));
    p.sync_interval = milliseconds(pick({20, 100}));
    return p;
}

// The fleet: what each instance knows, and what was said before and may be said again.
class history {
public:
    explicit history(const policy& p) : p_(p), text_(to_text(p)), told_(p) {}

    void take_step(const step& s) {
        switch (s.what % 16) {
            case 0:
            case 1: return pass(store_time(s.a % 400 * 1'000 + s.b % 1'000));
            case 2: return pass(store_time(s.a % 6'000 * 1'000));
            case 3:
            case 4:
            case 5:
            case 6: return exchange(s);
            case 7:
            case 8: return take(s);
            case 9:
            case 10:
            case 11: return settle(s);
            case 12: return repeat(s);
            case 13: return control(s);
            case 14: return meddle_with_time_or_data(s);
            default: return forget(s);
        }
    }
    [[nodiscard]] fleet_record& record() { return r_; }
    [[nodiscard]] store_time now() const { return now_; }
    void pass(store_time d) {
        now_ += d;
        passed_ += d;
    }

    // Asks for probes and settles them until the state is one of these, at most for that long.
    bool becomes(breaker_state wanted, std::vector<int> askers, probe_step result,
                 store_time limit);

private:
    struct out {
        int instance;
        std::uint64_t token;
    };

    void exchange(const step& s) {
        const int i = s.who % instances;
        news n;
        n.mine = known_[i];
        n.options = text_;
        n.seq = s.b % 8 == 0 ? 0 : ++seq_[i];
        const std::uint64_t calls_made = s.a % 9;
        slice first;
        first.n.failure = std::min<std::uint64_t>(calls_made, s.a / 9 % 9);
        first.n.success = calls_made - first.n.failure;
        first.n.slow_success = first.n.success / 2;
        first.n.rejected = s.b % 3;
        first.age = milliseconds(s.b / 8 % 4 == 0 ? s.b % 4'000 : 0);
        n.slices.push_back(first);
        if (s.b % 5 == 0) n.slices.push_back({calls(1, 1), 0ms});
        n.stale.failure = s.b % 7 == 0 ? 3 : 0;
        send(i, n);
        if (n.seq != 0) said_.push_back({i, n, {}, passed_});
    }

    void send(int i, const news& n) {
        effects did;
        const counts before = r_.totals;
        const std::uint64_t last = last_seq_of(i);
        const verdict v = apply(r_, identity(i), n, now_, did);
        const auto expected = told_.exchange(i, voter_of(i), n, now_);
        RC_ASSERT(!v.error);
        RC_ASSERT(v.counted == expected.counted);
        RC_ASSERT(v.window == expected.window);
        RC_ASSERT(v.voters_failing == expected.failing);
        RC_ASSERT(v.live == expected.live);
        RC_ASSERT(v.probes_left == expected.probes_left);
        RC_ASSERT(v.set_aside == expected.set_aside);
        RC_ASSERT(did.flush == expected.flush);
        RC_ASSERT(r_.totals == expected.totals);
        check(n.mine, v.fleet, expected.fleet);
        counts sent = n.stale;
        for (const slice& s : n.slices) sent += s.n;
        RC_ASSERT(r_.totals - before == (n.seq > last ? sent : counts{}));
        learn(i, v.fleet);
    }

    void take(const step& s) {
        const int i = s.who % instances;
        probe_request p;
        p.mine = known_[i];
        p.token = ++token_;
        send(i, p);
    }
    void settle(const step& s) {
        if (out_.empty()) return take(s);
        const std::size_t at = s.a % out_.size();
        const out o = out_[at];
        probe_request p;
        p.mine = known_[o.instance];
        p.token = o.token;
        p.step = s.b % 8 < 4   ? probe_step::success
                 : s.b % 8 < 7 ? probe_step::failure
                               : probe_step::give_back;
        out_.erase(out_.begin() + static_cast<std::ptrdiff_t>(at));
        send(o.instance, p);
    }

    void send(int i, const probe_request& p) {
        effects did;
        const fleet_record before = r_;
        const probe_reply got = apply(r_, identity(i), p, now_, did);
        const auto expected = told_.probe(voter_of(i), p, now_);
        RC_ASSERT(got.granted == expected.granted);
        RC_ASSERT(got.live == expected.live);
        RC_ASSERT(got.set_aside == expected.set_aside);
        check(p.mine, got.fleet, expected.fleet);
        if (p.step == probe_step::take) {
            if (got.granted) {
                check_limit();
                const bool known = std::any_of(out_.begin(), out_.end(),
                                               [&](const out& o) { return o.token == p.token; });
                if (!known) out_.push_back({i, p.token});
            } else {
                RC_ASSERT(got.fleet.state == breaker_state::closed || got.retry_after >= 10ms);
                RC_ASSERT(r_.leases.size() <= before.leases.size());
            }
        }
        learn(i, got.fleet);
        said_.push_back({i, std::nullopt, p, passed_});
    }

    // Held slots and what has settled in the era never exceed N when another is granted.
    void check_limit() {
        std::uint32_t used = static_cast<std::uint32_t>(r_.leases.size());
        for (const auto& v : r_.voters) {
            if (!v.set_aside) used += v.probes_succeeded + v.probes_failed;
        }
        RC_ASSERT(used <= p_.half_open_probes);
        RC_ASSERT(r_.state == breaker_state::half_open);
        RC_ASSERT(r_.taken_over_at == store_time(0) ||
                  r_.clock - r_.taken_over_at >= p_.probe_timeout);
    }

    // Lost replies and duplicates: something said a little earlier is said again, unchanged.
    void repeat(const step& s) {
        if (said_.empty()) return;
        const std::size_t back = std::min<std::size_t>(s.a % 5 + 1, said_.size());
        const said_before x = said_[said_.size() - back];
        if (passed_ - x.at >= std::min<store_time>(p_.probe_timeout, p_.window)) return;
        if (x.batch) {
            send(x.instance, *x.batch);
        } else {
            send(x.instance, x.probe);
            said_.pop_back();  // said when it was said first
        }
    }

    void control(const step& s) {
        control_request c;
        c.id = s.b % 6 == 0 && control_id_ > 0 ? control_id_ : ++control_id_;
        constexpr control_verb verbs[] = {control_verb::trip,    control_verb::reset,
                                          control_verb::disable, control_verb::force_open,
                                          control_verb::observe, control_verb::resume,
                                          control_verb::resume};
        c.verb = verbs[s.a % std::size(verbs)];
        c.expires = milliseconds(100 + s.b % 1'500);
        effects did;
        std::error_code error;
        const view v = apply(r_, c, now_, did, error);
        RC_ASSERT(!error);
        check({}, v, told_.control(c, now_).fleet);
    }

    void meddle_with_time_or_data(const step& s) {
        switch (s.a % 6) {
            case 0: now_ -= store_time(s.b * 1'000); return;
            case 1: now_ -= store_time(s.b); return;
            case 2:
                r_ = {};
                told_ = record_reference(p_);
                era_ = 0;
                return;
            case 3:
            case 4:
                dump_ = r_;
                told_then_ = told_;
                return;
            default:
                if (!told_then_) return;
                r_ = *dump_;
                told_ = *told_then_;
                era_ = r_.era;
                return;
        }
    }

    void forget(const step& s) { known_[s.who % instances] = {}; }

    // Of two the newer one; and the record agrees with the reference.
    void check(const view& mine, const view& got, const view& expected) {
        RC_ASSERT(!mine.newer_than(got));
        RC_ASSERT(got.era == expected.era);
        RC_ASSERT(got.rev == expected.rev);
        RC_ASSERT(got.state == expected.state);
        RC_ASSERT(got.remaining == expected.remaining);
        RC_ASSERT(got.backoff_level == expected.backoff_level);
        RC_ASSERT(got.over == expected.over);
        RC_ASSERT(got.over_remaining == expected.over_remaining);
        RC_ASSERT(got.era >= era_);
        era_ = got.era;
        RC_ASSERT(time_to_live(r_, now_) >= r_.rules.key_ttl + got.remaining);
    }
    void learn(int i, const view& v) {
        if (v.newer_than(known_[i])) known_[i] = v;
        known_[i].options_stamp = 0;
    }
    [[nodiscard]] std::uint64_t last_seq_of(int i) const {
        for (const auto& x : r_.instances) {
            if (x.name == identity(i).instance) return x.last_seq;
        }
        return 0;
    }

    struct said_before {
        int instance;
        std::optional<news> batch;
        probe_request probe;
        store_time at;
    };

    policy p_;
    std::string text_;
    fleet_record r_;
    record_reference told_;
    store_time now_ = 1'000'000s;
    store_time passed_{0};  // as no clock shows it
    era_t era_ = 0;         // since the record was last lost
    std::map<int, view> known_;
    std::map<int, std::uint64_t> seq_;
    std::uint64_t token_ = 0;
    std::uint64_t control_id_ = 0;
    std::vector<out> out_;
    std::vector<said_before> said_;
    std::optional<fleet_record> dump_;
    std::optional<record_reference> told_then_;
};

bool history::becomes(breaker_state wanted, std::vector<int> askers, probe_step result,
                      store_time limit) {
    for (const store_time end = now_ + limit; now_ < end; pass(20ms)) {
        for (int i : askers) {
            news n;
            n.mine = known_[i];
            n.options = text_;
            send(i, n);
            probe_request p;
            p.mine = known_[i];
            p.token = ++token_;
            send(i, p);
            if (r_.state == wanted) return true;
            if (out_.empty() || out_.back().token != token_) continue;
            out_.pop_back();
            p.step = result;
            p.mine = known_[i];
            send(i, p);
            if (r_.state == wanted) return true;
        }
    }
    return false;
}

std::vector<step> some_history() {
    const auto one = rc::gen::build<step>(rc::gen::set(&step::what), rc::gen::set(&step::who),
                                          rc::gen::set(&step::a), rc::gen::set(&step::b));
    const auto length = *rc::gen::inRange<std::size_t>(1, 160);
    return *rc::gen::container<std::vector<step>>(length, one);
}

TEST(RecordProperty, AgreesWithThePlainReferenceOverRandomHistories) {
    EXPECT_TRUE(holds("the record is what the reference says", 4'000, [] {
        history h(small_policy(*rc::gen::arbitrary<std::uint32_t>()));
        for (const step& s : some_history()) h.take_step(s);
    }));
}

// A history in which the breaker opens again and again: little but failures and probes.
TEST(RecordProperty, AgreesWithThePlainReferenceWhileItRecovers) {
    EXPECT_TRUE(holds("the record is what the reference says of half-open", 4'000, [] {
        history h(small_policy(*rc::gen::arbitrary<std::uint32_t>()));
        h.take_step({13, 0, 0, 1});
        for (step s : some_history()) {
            constexpr std::uint8_t often[] = {0,  0,  2, 3,  7,  8,  7,  9,
                                              10, 11, 9, 10, 12, 13, 14, 15};
            if (s.what % 7 != 0) s.what = often[s.what % 13];
            h.take_step(s);
        }
    }));
}

// The longest an honest asker may have to wait: what is left of open, quarantine, overdue leases, a
// voter that asked and went, and the rounds in between.
store_time patience(const fleet_record& r, store_time now) {
    const view v = view_of(r, now);
    return store_time(v.remaining + v.over_remaining) + 10 * store_time(5'000ms) +
           2 * store_time(8'000ms) + 8 * store_time(1'000ms);
}

TEST(RecordProperty, HalfOpenIsNeverStuckForAHealthyFleet) {
    EXPECT_TRUE(holds("healthy askers close it in bounded time", 1'500, [] {
        history h(small_policy(*rc::gen::arbitrary<std::uint32_t>()));
        h.take_step({13, 0, 0, 1});
        for (const step& s : some_history()) h.take_step(s);
        std::vector<int> askers{*rc::gen::inRange(0, instances)};
        if (*rc::gen::arbitrary<bool>()) askers.push_back((askers[0] + 1) % instances);
        RC_ASSERT(h.becomes(breaker_state::closed, askers, probe_step::success,
                            patience(h.record(), h.now())));
    }));
}

TEST(RecordProperty, HalfOpenIsNeverStuckForAFailingFleet) {
    EXPECT_TRUE(holds("failing askers open it in bounded time", 1'500, [] {
        history h(small_policy(*rc::gen::arbitrary<std::uint32_t>()));
        h.take_step({13, 0, 0, 1});
        for (const step& s : some_history()) h.take_step(s);
        if (h.record().state != breaker_state::half_open) return;
        std::vector<int> askers{*rc::gen::inRange(0, instances)};
        if (*rc::gen::arbitrary<bool>()) askers.push_back((askers[0] + 1) % instances);
        const auto limit = patience(h.record(), h.now());
        const bool opened = h.becomes(breaker_state::open, askers, probe_step::failure, limit);
        RC_ASSERT(opened || h.record().state == breaker_state::closed);
    }));
}

}  // namespace
}  // namespace trinco::detail::test
