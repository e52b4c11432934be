// The local breaker and its window a second time, written to be obvious instead of fast: it keeps
// the list of everything that happened and computes every answer from it anew. Shares no code with
// the breaker but the plain values.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/breaker/local.hpp"

namespace trinco::test {

class reference_breaker {
public:
    using ms = std::chrono::milliseconds;
    using ns = std::chrono::nanoseconds;
    using rules = detail::local_rules;

    // What began with a new era.
    struct epoch {
        breaker_state state = breaker_state::closed;
        ns at{0};
        ns lasts{0};  // of an opening; of a ramp
        detail::trip_reason why = detail::trip_reason::none;
        int level = 0;
        bool suspended = false;
        std::uint32_t live = 0;  // not 0: inherited, shared among so many
    };
    struct result {
        std::size_t epoch;
        std::int64_t slice;
        detail::counter what;
        std::size_t rules;
    };
    enum class fate { flying, ignored, success, slow_success, failure, slow_failure };
    struct probe {
        std::uint64_t token;
        std::size_t epoch;
        ns deadline;
        fate end = fate::flying;
    };
    struct own {
        bool open = false;
        ns until{0};
        int level = 0;
        detail::trip_reason why = detail::trip_reason::none;
    };

    explicit reference_breaker(const rules& r) : all_rules{r}, epochs(1) {}

    // ---- time
    ns time() const {
        ns passed = readings.front();
        ns highest = readings.front();
        for (const ns r : readings) {
            if (r > highest) passed += r - highest;
            if (r > highest || highest - r >= std::chrono::seconds(1)) highest = r;
        }
        return passed;
    }
    // What the caller's clock will show at one's own time t.
    ns shown(ns t) const {
        ns highest = readings.front();
        for (const ns r : readings) {
            if (r > highest || highest - r >= std::chrono::seconds(1)) highest = r;
        }
        return t - time() + highest;
    }
    void read_clock(ns now, double random) {
        readings.push_back(now);
        for (auto& p : probes) {
            if (p.end != fate::flying || p.deadline > time()) continue;
            p.end = p.epoch + 1 == epochs.size() ? fate::failure : fate::ignored;
        }
        decide_probes(random);
    }

    // ---- what is
    const epoch& now() const { return epochs.back(); }
    const rules& r() const { return all_rules.back(); }
    std::uint64_t era() const { return epochs.size(); }
    ms remaining() const {
        if (now().suspended || now().state == breaker_state::half_open) return ms(0);
        return std::chrono::ceil<ms>(std::max(ns(0), now().at + now().lasts - time()));
    }
    bool due() const {
        if (now().suspended) return false;
        return now().state == breaker_state::half_open ||
               (now().state == breaker_state::open && time() - now().at >= now().lasts);
    }
    std::uint32_t limit() const {
        const auto n = r().shared.half_open_probes;
        return now().live == 0 ? n : std::max<std::uint32_t>(1, n / now().live);
    }
    int ended(std::initializer_list<fate> as) const {
        int n = 0;
        for (const auto& p : probes) {
            const bool one = std::find(as.begin(), as.end(), p.end) != as.end();
            if (p.epoch + 1 == epochs.size() && one) ++n;
        }
        return n;
    }
    int flying() const {
        return static_cast<int>(std::count_if(
            probes.begin(), probes.end(), [](const probe& p) { return p.end == fate::flying; }));
    }
    int failed() const { return ended({fate::failure, fate::slow_failure}); }
    int settled() const { return failed() + ended({fate::success, fate::slow_success}); }
    int probes_left() const {
        if (now().suspended || now().state != breaker_state::half_open) return 0;
        return std::max(0, static_cast<int>(limit()) - flying() - settled());
    }

    // ---- outcomes of calls
    std::int64_t slice_at(ns clock) const {
        std::int64_t slice = clock.count() / slice_length();
        for (const auto& x : results) slice = std::max(slice, x.slice);
        return slice;
    }
    counts window(ns clock) const {
        counts n;
        for (const auto& x : results) {
            const bool in = x.slice > slice_at(clock) - r().shared.window_slices;
            if (in && x.epoch + 1 == epochs.size()) n += plain(x.what);
        }
        return n;
    }
    counts last_calls() const {
        counts n;
        std::uint32_t taken = 0;
        for (auto x = results.rbegin(); x != results.rend() && taken < r().count_window; ++x) {
            if (x->epoch + 1 != epochs.size() || x->what >= detail::counter::ignored) continue;
            if (x->rules < counting_since) break;
            n += plain(x->what);
            ++taken;
        }
        return n;
    }
    std::uint32_t row() const {
        std::uint32_t n = 0;
        for (auto x = results.rbegin(); x != results.rend(); ++x) {
            if (x->epoch + 1 != epochs.size()) break;
            if (plain(x->what).success != 0) break;
            if (plain(x->what).failure != 0) ++n;
        }
        return n;
    }
    void outcome_of_call(std::size_t begun, detail::counter what, ns clock, double random) {
        if (begun + 1 != epochs.size()) return;
        results.push_back({begun, slice_at(clock), what, all_rules.size()});
        if (now().state != breaker_state::closed) return;
        const auto n = r().count_window != 0 ? last_calls() : window(clock);
        const auto why = verdict(n);
        if (why != detail::trip_reason::none) open(why, random);
    }

    // ---- probes
    // The token of a new probe, or 0.
    std::uint64_t take() {
        if (now().state == breaker_state::open && due()) {
            auto next = now();
            next.state = breaker_state::half_open;
            next.at = time();
            epochs.push_back(next);
        }
        if (probes_left() == 0) return 0;
        probes.push_back({probes.size() + 1, epochs.size() - 1, time() + r().shared.probe_timeout});
        return probes.size();
    }
    void settle(std::uint64_t token, fate how, double random) {
        auto& p = probes[token - 1];
        if (p.end != fate::flying) return;
        p.end = p.epoch + 1 == epochs.size() ? how : fate::ignored;
        if (p.end == fate::ignored) return;
        decide_probes(random);
    }

    // ---- transitions by others
    void trip(ms lasts) {
        if (lasts == ms(0)) lasts = r().shared.open_for;
        auto next = now();
        next.state = breaker_state::open;
        next.at = time();
        next.lasts = lasts;
        next.why = detail::trip_reason::operator_trip;
        next.live = 0;
        aside = {true, next.at + lasts, next.level, next.why};
        epochs.push_back(next);
    }
    void reset() {
        epoch next;
        next.at = time();
        next.suspended = now().suspended;
        next.why = now().why;
        aside = {};
        epochs.push_back(next);
    }
    void suspend() {
        if (now().suspended) return;
        if (now().live == 0) aside = mine();
        auto next = now();
        next.suspended = true;
        next.live = 0;
        next.state = aside.open ? breaker_state::open : breaker_state::closed;
        epochs.push_back(next);
    }
    void resume(bool set_aside, double random) {
        if (!now().suspended && now().live == 0) return;
        epoch next;
        next.at = time();
        next.why = now().why;
        next.level = aside.level;
        if (set_aside) {
            next.state = breaker_state::open;
            next.lasts = length(next.level, random);
            next.why = detail::trip_reason::probes_failed;
        } else if (aside.open) {
            next.state = breaker_state::open;
            next.lasts = std::chrono::ceil<ms>(std::max(ns(0), aside.until - next.at));
            next.why = aside.why;
        }
        epochs.push_back(next);
    }
    void inherit(const detail::view& v, std::uint32_t live, double random) {
        if (v.state == breaker_state::closed) {
            resume(false, random);
            if (now().state == breaker_state::closed) {
                const auto end = std::max(now().at + now().lasts, time() + v.remaining);
                if (v.remaining > ms(0)) epochs.back().lasts = end - now().at;
            }
            return;
        }
        if (!now().suspended && now().live == 0) aside = mine();
        epoch next;
        next.state = breaker_state::open;
        next.at = time();
        next.why = detail::trip_reason::fleet;
        next.level = std::min<int>(32, v.backoff_level);
        next.live = std::max<std::uint32_t>(1, live);
        next.lasts = (v.state == breaker_state::open ? v.remaining : ms(0)) + extra(random);
        epochs.push_back(next);
    }
    void set_rules(const rules& x) {
        if (x.count_window != r().count_window) counting_since = all_rules.size() + 1;
        all_rules.push_back(x);
    }

    std::vector<rules> all_rules;
    std::vector<epoch> epochs;  // the index is the era less one
    std::vector<ns> readings;
    std::vector<result> results;
    std::vector<probe> probes;  // the index is the token less one
    own aside;
    std::size_t counting_since = 0;

private:
    static counts plain(detail::counter what) {
        counts n;
        switch (what) {
            case detail::counter::slow_success: n.slow_success = 1; [[fallthrough]];
            case detail::counter::success: n.success = 1; break;
            case detail::counter::slow_failure: n.slow_failure = 1; [[fallthrough]];
            case detail::counter::failure: n.failure = 1; break;
            case detail::counter::ignored: n.ignored = 1; break;
            case detail::counter::rejected: n.rejected = 1; break;
        }
        return n;
    }
    std::int64_t slice_length() const {
        return ns(r().shared.window).count() / r().shared.window_slices;
    }
    detail::trip_reason verdict(const counts& n) const {
        const auto& p = r().shared;
        const auto all = static_cast<double>(n.success + n.failure);
        if (p.failure_count != 0 && n.failure >= p.failure_count) {
            return detail::trip_reason::failure_count;
        }
        if (all >= p.minimum_calls && static_cast<double>(n.failure) / all >= p.failure_rate) {
            return detail::trip_reason::failure_rate;
        }
        const auto slow = static_cast<double>(n.slow_success + n.slow_failure);
        if (all >= p.minimum_calls && p.slow_calls && slow / all >= p.slow_call_rate) {
            return detail::trip_reason::slow_call_rate;
        }
        if (r().consecutive_failures != 0 && row() >= r().consecutive_failures) {
            return detail::trip_reason::consecutive_failures;
        }
        return detail::trip_reason::none;
    }
    ms length(int level, double random) const {
        const auto& p = r().shared;
        const double plain_length =
            static_cast<double>(p.open_for.count()) * std::pow(p.open_backoff, level);
        const double most = static_cast<double>(p.open_max.count());
        return ms(std::llround(std::min(plain_length, most) * (1 + p.jitter * random)));
    }
    ms extra(double random) const {
        return ms(static_cast<std::int64_t>(
            std::floor(random * static_cast<double>(r().shared.open_for.count() / 2))));
    }
    own mine() const {
        if (now().state == breaker_state::closed) return {};
        const bool open = now().state == breaker_state::open;
        return {true, open ? now().at + now().lasts : time(), now().level, now().why};
    }
    void open(detail::trip_reason why, double random) {
        epoch next = now();
        if (now().state != breaker_state::closed) next.level = std::min(32, now().level + 1);
        if (now().state == breaker_state::closed && time() - now().at >= r().shared.open_max) {
            next.level = 0;
        }
        next.state = breaker_state::open;
        next.at = time();
        next.lasts = length(next.level, random) + (now().live != 0 ? extra(random) : ms(0));
        next.why = why;
        epochs.push_back(next);
    }
    void decide_probes(double random) {
        if (now().suspended || now().state != breaker_state::half_open) return;
        const auto& p = r().shared;
        const double all = std::max(static_cast<double>(limit()), static_cast<double>(settled()));
        const int slow = ended({fate::slow_success, fate::slow_failure});
        if (failed() / all >= p.failure_rate || (p.slow_calls && slow / all >= p.slow_call_rate)) {
            return open(detail::trip_reason::probes_failed, random);
        }
        if (settled() < all) return;
        epoch next = now();
        next.state = breaker_state::closed;
        next.at = time();
        next.lasts = p.recovery_ramp;
        next.live = 0;
        epochs.push_back(next);
    }
};

}  // namespace trinco::test
