// How long something took, how often: the shape of a latency in a few numbers.
//
// A plain value: copy it freely, one thread at a time. Ranges of durations double every four
// steps, so what is read from them is at most a quarter too high, never too low; those below 8 us
// are exact to the microsecond. The last range takes everything over two minutes.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace trinco {

struct duration_histogram {
    // Durations up to and including this one, and longer than the range before ends.
    struct range {
        std::chrono::microseconds up_to{0};
        std::uint64_t count = 0;
    };
    std::vector<range> ranges;  // those that hold any, ascending
    std::uint64_t count = 0;    // of all
    std::chrono::microseconds total{0};
    std::chrono::microseconds longest{0};  // exact

    // The duration that this share of them did not exceed: 0.5 is the median, 0.99 what all but
    // one in a hundred kept. 0 ... 1, what lies outside counts as the nearest; 0 us when there are
    // none. Linear in the ranges.
    [[nodiscard]] std::chrono::microseconds quantile(double share) const noexcept;
};

}  // namespace trinco
