// One admitted call, or the reason why it was not admitted.
//
// A breaker answers try_acquire() with a permit. An admitted one has to be settled with exactly one
// of three outcomes:
//
//     success()   the dependency did its work
//     failure()   the dependency did not
//     ignore()    neither: cancelled, or the caller's own fault
//
// A permit that is destroyed unsettled settles as ignored, so that an early return or an exception
// leaks nothing; when it was a probe of a half-open breaker, its slot goes to the next caller. A
// second settlement does nothing.
//
// Every permit belongs to the era of the breaker in which it was admitted. An outcome that arrives
// in a later era (the breaker opened or closed in between) is counted in the lifetime totals as
// stale and decides nothing: a slow success of last minute does not close an open breaker.
//
// Slow calls. When the breaker measures durations (slow_call_after, overdue_after or call_timeout
// is set) the time between admission and settlement counts. Whoever knows better, say because the
// permit was taken before a queue, hands the duration to success(took) or failure(took).
//
// Threads      A permit may be settled on another thread than the one that acquired it; it is not
//              to be used by two threads at once.
// Ownership    Move-only. It must be settled or destroyed before its breaker is destroyed.
// Errors       Nothing here throws.
// Cost         Settling while the breaker is closed: about 7 ns, without lock, allocation or system
//              call; one more clock read when durations are measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "trinco/breaker_types.hpp"

namespace trinco {

namespace detail {
class engine;
}

enum class refused_by : std::uint8_t {
    none,               // admitted
    local_breaker,      // the breaker of this process
    fleet_breaker,      // the breaker that all processes share
    operator_override,  // an operator forces it open
    ramp                // it recovers: only a growing share of the calls goes through
};

enum class refusal_reason : std::uint8_t {
    none,
    open,           // the time of the opening has not run out
    no_probe_left,  // half open, and all probes are out or have been used
    probe_pending,  // another caller of this process is asking the fleet for a probe
    store_late,     // a probe of the fleet's is needed, and its store does not answer in time
    forced_open,
    recovering
};

// One sentence for each reason.
[[nodiscard]] std::string_view text_of(refusal_reason reason) noexcept;
[[nodiscard]] std::string_view text_of(refused_by who) noexcept;

struct refusal {
    refused_by by = refused_by::none;
    refusal_reason reason = refusal_reason::none;
    // When asking again makes sense: what is left of the opening or of the override, or a short
    // wait while probes are out. Never zero in a refusal.
    std::chrono::milliseconds retry_after{0};
};

class [[nodiscard]] permit {
public:
    // Neither admitted nor refused; a place for a permit to move to.
    permit() noexcept = default;
    permit(permit&& other) noexcept { take(other); }
    permit& operator=(permit&& other) noexcept {
        if (this != &other) {
            if (engine_ != nullptr) settle(outcome::ignored, measure);
            take(other);
        }
        return *this;
    }
    permit(const permit&) = delete;
    permit& operator=(const permit&) = delete;
    ~permit() {
        if (engine_ != nullptr) settle(outcome::ignored, measure);
    }

    // Whether the call may be made: admitted, and not settled yet.
    [[nodiscard]] explicit operator bool() const noexcept { return engine_ != nullptr; }
    // Why it may not. Meaningful when try_acquire() answered a permit that is false.
    [[nodiscard]] const trinco::refusal& refusal() const noexcept { return refusal_; }
    // Whether this call is a probe of a half-open breaker, on which its recovery depends.
    [[nodiscard]] bool is_probe() const noexcept;

    void success() noexcept {
        if (engine_ != nullptr) settle(outcome::success, measure);
    }
    void failure() noexcept {
        if (engine_ != nullptr) settle(outcome::failure, measure);
    }
    void ignore() noexcept {
        if (engine_ != nullptr) settle(outcome::ignored, measure);
    }
    // With a duration that the caller measured. Negative ones count as zero.
    void success(std::chrono::nanoseconds took) noexcept {
        if (engine_ != nullptr) settle(outcome::success, took.count() < 0 ? 0 : took.count());
    }
    void failure(std::chrono::nanoseconds took) noexcept {
        if (engine_ != nullptr) settle(outcome::failure, took.count() < 0 ? 0 : took.count());
    }
    void settle(outcome what) noexcept {
        if (engine_ != nullptr) settle(what, measure);
    }

private:
    friend class detail::engine;
    static constexpr std::int64_t measure = -1;

    void settle(outcome what, std::int64_t took_ns) noexcept;
    void take(permit& other) noexcept {
        engine_ = std::exchange(other.engine_, nullptr);
        stamp_ = other.stamp_;
        started_ = other.started_;
        handle_ = other.handle_;
        refusal_ = other.refusal_;
    }

    detail::engine* engine_ = nullptr;
    std::uint64_t stamp_ = 0;   // generation of the breaker, and how the call was admitted
    std::int64_t started_ = 0;  // ns, when durations are measured
    std::uint64_t handle_ = 0;  // token of a probe, or place among the calls that may be overdue
    trinco::refusal refusal_;
};

}  // namespace trinco
