#include "core/backoff.hpp"

#include <algorithm>

namespace trinco::detail {

std::chrono::milliseconds backoff::limit(std::uint32_t attempt) const noexcept {
    // 2^32 ms are seven weeks, more than any limit; stopping there keeps the shift in range.
    const auto most = longest.count();
    const auto shift = std::min<std::uint32_t>(attempt, 32);
    if (first.count() > (most >> shift)) return longest;
    return std::min(longest, std::chrono::milliseconds(first.count() << shift));
}

std::chrono::milliseconds backoff::wait(std::uint32_t attempt,
                                        std::uint64_t random) const noexcept {
    const auto choices = static_cast<double>(limit(attempt).count()) + 1.0;
    return std::chrono::milliseconds(static_cast<std::int64_t>(unit_share(random) * choices));
}

}  // namespace trinco::detail
