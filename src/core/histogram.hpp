// Durations, counted by ranges that grow with them (trinco/duration_histogram.hpp says how). One
// thread records, any thread reads; recording takes three additions and allocates nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/tally.hpp"
#include "trinco/duration_histogram.hpp"

namespace trinco::detail {

class histogram {
public:
    // Four ranges for each power of two of microseconds, up to 2^27 - 1 (134 s); then one for all
    // that is longer.
    static constexpr std::size_t ranges = 105;

    // What is negative counts as 0, what is under a microsecond as its floor.
    void record(std::chrono::nanoseconds took) noexcept;
    // Any thread. What is recorded meanwhile may be in it or not, or in a range and not yet in the
    // total.
    [[nodiscard]] duration_histogram shape() const;

    [[nodiscard]] static std::size_t range_of(std::chrono::microseconds d) noexcept;
    // The longest duration of a range.
    [[nodiscard]] static std::chrono::microseconds end_of(std::size_t range) noexcept;

private:
    std::array<tally, ranges> counts_;
    tally total_;
    tally longest_;
};

}  // namespace trinco::detail
