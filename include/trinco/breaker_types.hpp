// The words that breakers, their stores and their users share. Plain values.
#pragma once

#include <cstdint>

namespace trinco {

enum class breaker_state : std::uint8_t {
    closed,    // calls go through and are counted
    open,      // calls are refused until the time of the opening has run out
    half_open  // a limited number of probes goes through and decides
};

// What an operator has laid over the state. Always with a reason and an expiry.
enum class override_kind : std::uint8_t {
    none,
    forced_open,  // refuse everything
    disabled,     // let everything through, keep counting, decide nothing
    observing     // decide, but refuse nothing; what would have been refused is counted
};

enum class outcome : std::uint8_t {
    success,
    failure,  // the dependency's fault
    ignored   // neither: cancelled, or the caller's own fault; never moves the breaker
};

// Numbers of outcomes. Slow ones are counted in success or failure as well as in slow_*.
struct counts {
    std::uint64_t success = 0;
    std::uint64_t failure = 0;
    std::uint64_t slow_success = 0;
    std::uint64_t slow_failure = 0;
    std::uint64_t ignored = 0;
    std::uint64_t rejected = 0;

    // The calls that rates are judged on.
    [[nodiscard]] constexpr std::uint64_t judged() const noexcept { return success + failure; }
    [[nodiscard]] constexpr std::uint64_t slow() const noexcept {
        return slow_success + slow_failure;
    }
    [[nodiscard]] constexpr bool empty() const noexcept { return *this == counts{}; }

    constexpr counts& operator+=(const counts& o) noexcept {
        success += o.success;
        failure += o.failure;
        slow_success += o.slow_success;
        slow_failure += o.slow_failure;
        ignored += o.ignored;
        rejected += o.rejected;
        return *this;
    }
    // Every member of o must be at most the same member of *this.
    constexpr counts& operator-=(const counts& o) noexcept {
        success -= o.success;
        failure -= o.failure;
        slow_success -= o.slow_success;
        slow_failure -= o.slow_failure;
        ignored -= o.ignored;
        rejected -= o.rejected;
        return *this;
    }
    friend constexpr counts operator+(counts a, const counts& b) noexcept { return a += b; }
    friend constexpr counts operator-(counts a, const counts& b) noexcept { return a -= b; }
    constexpr bool operator==(const counts&) const noexcept = default;
};

}  // namespace trinco
