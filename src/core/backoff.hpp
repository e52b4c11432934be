// How long to wait before trying again: exponential backoff with full jitter.
//
// The wait before attempt n is drawn uniformly from 0 ... min(longest, first * 2^n). Full jitter,
// rather than a fixed wait with a little noise, because clients that failed together must not come
// back together: spread over the whole interval they cause the least work until all have succeeded.
//
// Pure: the caller counts the attempts and brings the randomness. A success starts again at 0.
#pragma once

#include <chrono>
#include <cstdint>

namespace trinco::detail {

struct backoff {
    std::chrono::milliseconds first{50};       // upper bound of the first wait; > 0
    std::chrono::milliseconds longest{5'000};  // upper bound of every wait; >= first

    // The upper bound of the wait before attempt n (0 = the first retry). Never overflows.
    [[nodiscard]] std::chrono::milliseconds limit(std::uint32_t attempt) const noexcept;
    // The wait itself. `random` is uniform over all 64-bit numbers, as loop::random() gives it.
    [[nodiscard]] std::chrono::milliseconds wait(std::uint32_t attempt,
                                                 std::uint64_t random) const noexcept;
};

// A number uniform over 0 <= x < 1 from one that is uniform over all 64-bit numbers.
[[nodiscard]] constexpr double unit_share(std::uint64_t random) noexcept {
    return static_cast<double>(random >> 11) * 0x1.0p-53;
}

}  // namespace trinco::detail
