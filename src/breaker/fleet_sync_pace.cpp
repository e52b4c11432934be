#include "breaker/fleet_sync_pace.hpp"

#include <algorithm>
#include <cmath>

namespace trinco::detail {
namespace {

constexpr double nearness = 0.8;  // within 20 % of a threshold
constexpr std::uint64_t never = UINT64_MAX;

std::uint64_t whole(double x) noexcept {
    constexpr double rounding = 1e-6;  // a whole number may come as a little more than itself
    return x <= rounding ? 0 : static_cast<std::uint64_t>(std::ceil(x - rounding));
}

// The least x with bad + x >= near * rate * (calls + x) and calls + x >= near * minimum.
std::uint64_t to_rate(double rate, std::uint64_t bad, std::uint64_t calls,
                      std::uint32_t minimum) noexcept {
    const double share = nearness * rate;
    const double missing = share * static_cast<double>(calls) - static_cast<double>(bad);
    const auto by_rate = whole(missing / (1 - share));
    const auto by_minimum = whole(nearness * minimum - static_cast<double>(calls));
    return std::max(by_rate, by_minimum);
}

}  // namespace

std::uint64_t urgent_after(const counts& window, const policy& rules, std::uint32_t live) noexcept {
    const auto calls = window.judged();
    auto x = to_rate(rules.failure_rate, window.failure, calls, rules.minimum_calls);
    if (rules.slow_calls) {
        x = std::min(x, to_rate(rules.slow_call_rate, window.slow(), calls, rules.minimum_calls));
    }
    const auto by_count =
        rules.failure_count == 0
            ? never
            : whole(nearness * rules.failure_count - static_cast<double>(window.failure));
    x = std::min(x, by_count);
    return std::max(x, 1 + calls / (100 * std::uint64_t{std::max(live, 1U)}));
}

void round_trips::answered(boot_clock::duration took) noexcept {
    const bool slow = seen_ > 0 && took > never_slow && took > slow_factor * median_;
    stretch_ = slow ? std::min(stretch_ * 2, most_stretch) : std::max(stretch_ / 4, 1U);
    last_ = took;
    longest_ = std::max(longest_, took);
    auto end = sorted_.begin() + static_cast<std::ptrdiff_t>(std::min(seen_, kept));
    auto& oldest = ring_[seen_ % kept];
    if (seen_ >= kept) {
        const auto gone = std::lower_bound(sorted_.begin(), end, oldest);
        end = std::move(gone + 1, end, gone);
    }
    oldest = took;
    const auto at = std::upper_bound(sorted_.begin(), end, took);
    std::move_backward(at, end, end + 1);
    *at = took;
    ++seen_;
    median_ = sorted_[std::min(seen_, kept) / 2];
}

void round_trips::failed() noexcept {
    stretch_ = std::min(stretch_ * 2, most_stretch);
}

boot_clock::duration round_trips::stretched(boot_clock::duration base) const noexcept {
    constexpr boot_clock::duration most = std::chrono::seconds(2);
    return std::max(base, std::min(base * stretch_, most));
}

boot_clock::time_point tick_at_or_after(boot_clock::time_point t, boot_clock::duration phase,
                                        boot_clock::duration interval) noexcept {
    const auto since = t.time_since_epoch() - phase % interval;
    const auto n = (since.count() + interval.count() - 1) / interval.count();
    return boot_clock::time_point(n * interval + phase % interval);
}

boot_clock::time_point tick_meant_by(boot_clock::time_point t, boot_clock::duration phase,
                                     boot_clock::duration interval) noexcept {
    return std::min(t, tick_at_or_after(t - interval / 4, phase, interval));
}

}  // namespace trinco::detail
