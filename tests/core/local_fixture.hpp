// A local breaker on a clock of the test's own, with its window of time, driven as circuit_breaker
// drives it: the simplest way that judges after every outcome.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "core/breaker/local.hpp"
#include "core/breaker/window.hpp"

namespace trinco::test {

using namespace std::chrono_literals;
using detail::counter;
using detail::local_breaker;
using detail::trip_reason;
using std::chrono::nanoseconds;

// Small numbers that are easy to count with: opens at half of at least 4 calls, for 1 s, no jitter;
// 3 probes of 500 ms.
inline detail::local_rules small_rules() {
    breaker_options o;
    o.failure_rate = 0.5;
    o.minimum_calls = 4;
    o.window = 1s;
    o.window_slices = 10;
    o.open_for = 1s;
    o.open_backoff = 2;
    o.open_max = 10s;
    o.jitter = 0;
    o.half_open_probes = 3;
    o.probe_timeout = 500ms;
    return detail::local_rules_of(o);
}

class driven_breaker {
public:
    explicit driven_breaker(const detail::local_rules& rules)
        : b(rules),
          window_(std::make_unique<detail::time_window>(rules.shared.window,
                                                        rules.shared.window_slices, 1)) {}

    // A call that was admitted: while closed, or as a probe.
    struct call {
        local_breaker::era era = 0;
        local_breaker::probe probe;
    };

    void pass(nanoseconds time) { now += time; }

    // Admitted or refused.
    std::optional<call> begin() {
        note(b.expire(now, random));
        if (b.suspended()) return std::nullopt;
        if (b.state() == breaker_state::closed) return call{b.current_era(), {}};
        const auto answer = b.ask_probe(now, random);
        note(answer.change);
        retry_after = answer.retry_after;
        if (!answer.probe) return std::nullopt;
        return call{answer.probe.era, answer.probe};
    }

    void end(const call& c, outcome what, bool slow = false) {
        note(b.expire(now, random));
        if (c.probe) return note(b.settle(c.probe, what, slow, now, random));
        if (c.era != b.current_era()) return;  // counted for nothing but totals
        const auto counted = detail::counter_of(what, slow);
        window_->add(bank(), now, counted);
        note(b.on_outcome(c.era, counted, window(), now, random));
    }

    // `times` calls one after the other that end at once; how many were admitted.
    int calls(int times, outcome what, bool slow = false) {
        int admitted = 0;
        for (int i = 0; i < times; ++i) {
            if (const auto c = begin()) {
                ++admitted;
                end(*c, what, slow);
            }
        }
        return admitted;
    }

    void trip() { note(b.trip(0ms, now)); }
    void reset() { note(b.reset(now)); }
    void suspend() {
        b.suspend(now);
        renew_window();
    }
    void resume(bool set_aside = false) { note(b.resume(set_aside, now, random)); }
    void inherit(const detail::view& fleet, std::uint32_t live) {
        note(b.inherit(fleet, live, now, random));
    }
    [[nodiscard]] detail::counts window() const { return window_->sum(bank(), now); }

    local_breaker b;
    nanoseconds now{0};
    double random = 0;
    std::chrono::milliseconds retry_after{0};
    std::vector<local_breaker::transition> changes;

    // Every era begins with an empty window. To be called after changes that were made on `b`
    // itself.
    void renew_window() {
        if (era_ == b.current_era()) return;
        era_ = b.current_era();
        window_->clear(bank());
    }

private:
    [[nodiscard]] unsigned bank() const { return static_cast<unsigned>(b.current_era() & 1U); }
    void note(const local_breaker::change& c) {
        if (c) changes.push_back(*c);
        renew_window();
    }

    std::unique_ptr<detail::time_window> window_;
    local_breaker::era era_ = 1;
};

}  // namespace trinco::test
