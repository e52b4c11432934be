#include "core/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace trinco {

using std::chrono::microseconds;

microseconds duration_histogram::quantile(double share) const noexcept {
    if (count == 0) return microseconds(0);
    const double wanted = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count));
    std::uint64_t seen = 0;
    for (const range& r : ranges) {
        seen += r.count;
        if (static_cast<double>(seen) >= wanted) return std::min(r.up_to, longest);
    }
    return longest;
}

namespace detail {

namespace {

// Of the powers of two that have four ranges of their own, the first; below it each microsecond
// has one.
constexpr unsigned first_power = 2;

}  // namespace

std::size_t histogram::range_of(microseconds d) noexcept {
    const auto us = static_cast<std::uint64_t>(std::max<microseconds::rep>(d.count(), 0));
    if (us < 4) return static_cast<std::size_t>(us);
    const auto power = static_cast<unsigned>(std::bit_width(us)) - 1;
    const std::size_t quarter = (us >> (power - first_power)) & 3U;
    return std::min<std::size_t>((power - first_power + 1) * 4 + quarter, ranges - 1);
}

microseconds histogram::end_of(std::size_t range) noexcept {
    if (range < 4) return microseconds(range);
    if (range >= ranges - 1) return microseconds::max();
    const auto shift = range / 4 - 1;
    return microseconds(((range % 4 + 5) << shift) - 1);
}

void histogram::record(std::chrono::nanoseconds took) noexcept {
    const auto us = std::max(std::chrono::floor<microseconds>(took), microseconds(0));
    ++counts_[range_of(us)];
    total_.add(static_cast<std::uint64_t>(us.count()));
    longest_.set(std::max(longest_.get(), static_cast<std::uint64_t>(us.count())));
}

duration_histogram histogram::shape() const {
    duration_histogram h;
    h.longest = microseconds(longest_.get());
    h.total = microseconds(total_.get());
    for (std::size_t i = 0; i < ranges; ++i) {
        const std::uint64_t n = counts_[i].get();
        if (n == 0) continue;
        h.ranges.push_back({end_of(i), n});
        h.count += n;
    }
    return h;
}

}  // namespace detail
}  // namespace trinco
