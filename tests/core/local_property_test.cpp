// Random histories of the local breaker with its window of time, against reference_breaker: after
// every step both must agree on everything that can be asked.
#include <gtest/gtest.h>

#include <array>

#include "tests/core/local_fixture.hpp"
#include "tests/core/local_reference.hpp"
#include "tests/core/property.hpp"

namespace trinco::test {
namespace {

using std::chrono::milliseconds;

enum class act : std::uint8_t {
    pass,
    pass_to_edge,
    step_back,
    jump_back,
    begin,
    end,
    calls,
    trip,
    reset,
    suspend,
    resume,
    inherit,
    rules
};

struct step {
    act what;
    std::uint32_t a;
    std::uint32_t b;
};

std::ostream& operator<<(std::ostream& out, const step& s) {
    static constexpr std::array names = {
        "pass", "pass_to_edge", "step_back", "jump_back", "begin",   "end",  "calls",
        "trip", "reset",        "suspend",   "resume",    "inherit", "rules"};
    return out << names[static_cast<std::size_t>(s.what)] << '(' << s.a << ", " << s.b << ')';
}

rc::Gen<step> some_step() {
    const auto what = rc::gen::weightedElement<act>({{6, act::pass},
                                                     {6, act::pass_to_edge},
                                                     {1, act::step_back},
                                                     {1, act::jump_back},
                                                     {12, act::begin},
                                                     {12, act::end},
                                                     {10, act::calls},
                                                     {1, act::trip},
                                                     {1, act::reset},
                                                     {2, act::suspend},
                                                     {2, act::resume},
                                                     {2, act::inherit},
                                                     {1, act::rules}});
    const auto number = rc::gen::inRange<std::uint32_t>(0, 1 << 20);
    return rc::gen::map(rc::gen::tuple(what, number, number), [](const auto& t) {
        return step{std::get<0>(t), std::get<1>(t), std::get<2>(t)};
    });
}

std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return *rc::gen::inRange<std::uint32_t>(low, high + 1);
}

detail::local_rules some_rules(milliseconds window, std::uint32_t slices) {
    static const std::vector<double> rates = {0.1, 1.0 / 3, 0.5, 0.7, 1.0};
    detail::local_rules r;
    auto& p = r.shared;
    p.window = window;
    p.window_slices = slices;
    p.failure_rate = *rc::gen::elementOf(rates);
    p.slow_call_rate = *rc::gen::elementOf(rates);
    p.slow_calls = number(0, 1) == 1;
    p.minimum_calls = number(1, 8);
    p.failure_count = number(0, 2) == 0 ? number(1, 6) : 0;
    p.open_for = milliseconds(number(10, 2'000));
    p.open_backoff = *rc::gen::elementOf(std::vector<double>{1, 1.5, 2, 3});
    p.open_max = p.open_for + milliseconds(number(0, 5'000));
    p.jitter = *rc::gen::elementOf(std::vector<double>{0, 0.1, 1});
    p.half_open_probes = number(1, 6);
    p.probe_timeout = milliseconds(number(10, 1'000));
    p.recovery_ramp = milliseconds(number(0, 1) * number(10, 2'000));
    r.count_window = number(0, 2) == 0 ? p.minimum_calls + number(0, 5) : 0;
    r.consecutive_failures = number(0, 2) == 0 ? number(1, 5) : 0;
    return r;
}

// Both breakers side by side.
class pair {
public:
    explicit pair(const detail::local_rules& rules) : d_(rules), ref_(rules) {
        d_.now = 24h;
        tick();
    }

    void run(const step& s) {
        d_.random = static_cast<double>(s.b % 1'000) / 1'000;
        switch (s.what) {
            case act::pass: d_.now += nanoseconds(s.a) * (s.b % 4 == 0 ? 2'000 : 100); break;
            case act::pass_to_edge: d_.now += to_edge(s.a, s.b); break;
            case act::step_back: d_.now -= milliseconds(s.a % 1'000); break;
            case act::jump_back: d_.now -= milliseconds(1'000 + s.a % 10'000); break;
            default: break;
        }
        tick();
        if (s.what == act::begin) begin();
        if (s.what == act::end && !calls_.empty()) end(s.a % calls_.size(), s.b);
        if (s.what == act::calls) {
            for (std::uint32_t i = 0; i <= s.a % 8; ++i) {
                if (begin()) end(calls_.size() - 1, s.b >> i);
            }
        }
        by_others(s);
        compare();
    }

    int transitions() const { return static_cast<int>(ref_.epochs.size()) - 1; }

private:
    void tick() {
        (void)d_.b.expire(d_.now, d_.random);
        d_.renew_window();
        ref_.read_clock(d_.now, d_.random);
    }

    // From now to the next edge of something, or to one nanosecond before or after it.
    nanoseconds to_edge(std::uint32_t a, std::uint32_t b) const {
        const auto& p = d_.b.rules().shared;
        const auto slice = nanoseconds(p.window) / p.window_slices;
        const nanoseconds edges[] = {
            slice - d_.now % slice,
            p.window,
            d_.b.remaining(d_.now),
            d_.b.next_deadline().value_or(d_.now + p.probe_timeout) - d_.now,
            p.open_max,
        };
        const auto edge = edges[a % 5] + nanoseconds(b % 3) - 1ns;
        return std::max(nanoseconds(0), edge);
    }

    bool begin() {
        if (d_.b.suspended()) return false;
        if (d_.b.state() == breaker_state::closed) {
            calls_.push_back({d_.b.current_era(), {}});
            return true;
        }
        const auto c = d_.begin();
        const auto token = ref_.take();
        RC_ASSERT((c ? c->probe.token : 0) == token);
        if (!c) {
            RC_ASSERT(d_.retry_after >= 1ms);
            return false;
        }
        RC_ASSERT(c->probe.era == ref_.era());
        RC_ASSERT(c->probe.deadline == ref_.shown(ref_.probes.back().deadline));
        calls_.push_back(*c);
        return true;
    }

    void end(std::size_t at, std::uint32_t how) {
        const auto c = calls_[at];
        if (how % 16 != 0) calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(at));
        const auto what = static_cast<outcome>(how / 16 % 3);
        const bool slow = how / 64 % 3 == 0;
        const auto counted = detail::counter_of(what, slow);
        d_.end(c, what, slow);
        if (!c.probe) {
            ref_.outcome_of_call(c.era - 1, counted, d_.now, d_.random);
            return;
        }
        using fate = reference_breaker::fate;
        static constexpr fate fates[] = {fate::success, fate::failure, fate::slow_success,
                                         fate::slow_failure, fate::ignored};
        ref_.settle(c.probe.token, fates[static_cast<std::size_t>(counted)], d_.random);
    }

    void by_others(const step& s) {
        switch (s.what) {
            case act::trip:
                (void)d_.b.trip(milliseconds(s.a % 3 * 100), d_.now);
                ref_.trip(milliseconds(s.a % 3 * 100));
                break;
            case act::reset:
                d_.reset();
                ref_.reset();
                break;
            case act::suspend:
                d_.suspend();
                ref_.suspend();
                break;
            case act::resume:
                d_.resume(s.a % 4 == 0);
                ref_.resume(s.a % 4 == 0, d_.random);
                break;
            case act::inherit: {
                detail::view v;
                v.state = static_cast<breaker_state>(s.a % 3);
                v.remaining = milliseconds(s.a % 1'500);
                v.backoff_level = static_cast<std::uint8_t>(s.a % 40);
                d_.inherit(v, s.a % 5);
                ref_.inherit(v, s.a % 5, d_.random);
                break;
            }
            case act::rules: {
                const auto& p = d_.b.rules().shared;
                const auto rules = some_rules(p.window, p.window_slices);
                d_.b.set_rules(rules);
                ref_.set_rules(rules);
                tick();
                break;
            }
            default: break;
        }
        d_.renew_window();
    }

    void compare() {
        const auto& b = d_.b;
        RC_ASSERT(b.current_era() == ref_.era());
        RC_ASSERT(b.state() == ref_.now().state);
        RC_ASSERT(b.suspended() == ref_.now().suspended);
        RC_ASSERT(b.inherited() == (ref_.now().live != 0));
        RC_ASSERT(b.remaining(d_.now) == ref_.remaining());
        RC_ASSERT(b.probing_due(d_.now) == ref_.due());
        RC_ASSERT(static_cast<int>(b.probes_left()) == ref_.probes_left());
        RC_ASSERT(static_cast<int>(b.probes_in_flight()) == ref_.flying());
        RC_ASSERT(b.backoff_level() == ref_.now().level);
        RC_ASSERT(d_.window() == ref_.window(d_.now));
        const double share = b.admitted_share(d_.now);
        RC_ASSERT(share >= 0.1);
        RC_ASSERT(share <= 1.0);
        RC_ASSERT(b.ramping(d_.now) == (share < 1.0));
        if (b.state() == breaker_state::open) RC_ASSERT(b.reason() == ref_.now().why);
        // Never permanently half open: something in flight has a deadline, or a probe may go.
        if (b.state() == breaker_state::half_open && !b.suspended()) {
            RC_ASSERT(b.probes_left() > 0U || b.next_deadline().has_value());
        }
    }

    driven_breaker d_;
    reference_breaker ref_;
    std::vector<driven_breaker::call> calls_;
};

TEST(LocalBreaker, EqualsItsReferenceOverRandomHistories) {
    int transitions = 0;
    EXPECT_TRUE(holds("local_breaker against the list of all events", 6000, [&] {
        const auto slices = number(2, 10);
        pair both(some_rules(milliseconds(slices * number(10, 200)), slices));
        for (const auto& s : *rc::gen::container<std::vector<step>>(some_step())) both.run(s);
        transitions += both.transitions();
    }));
    EXPECT_GT(transitions, 20'000) << "the histories hardly move the breaker";
}

}  // namespace
}  // namespace trinco::test
