// When an instance speaks to the store: the pure parts of fleet_sync's timing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/breaker/policy.hpp"
#include "core/breaker/view.hpp"
#include "core/loop.hpp"

namespace trinco::detail {

// How many unsent bad outcomes of one instance make an exchange urgent: as many as would bring the
// fleet's window, as last heard, within 20 % of a threshold (to four fifths of it, and to four
// fifths of the minimum of calls), were each of them both failed and slow. Good outcomes that are
// unsent too are left out, so the answer is never too late.
//
// Below that it is never less than one hundredth of the window's calls per live voter: a fleet that
// lives close under its threshold would otherwise send each failure alone, at a cost that grows
// with its rate of calls. What the fleet can hide so is one hundredth of its window.
[[nodiscard]] std::uint64_t urgent_after(const counts& window, const policy& rules,
                                         std::uint32_t live) noexcept;

// The last round trips to the store, and how far to stretch the interval between exchanges because
// of them.
class round_trips {
public:
    static constexpr int slow_factor = 5;
    // Faster ones are never slow: below that the median is noise of the scheduler.
    static constexpr boot_clock::duration never_slow = std::chrono::milliseconds(1);

    // An answer after that long. Slow (over slow_factor medians of those before) doubles the
    // stretch, otherwise it is quartered: slowing down is cautious, coming back need not be.
    void answered(boot_clock::duration took) noexcept;
    // No answer at all.
    void failed() noexcept;

    // The base interval times the stretch, at most 2 s unless the base is longer.
    [[nodiscard]] boot_clock::duration stretched(boot_clock::duration base) const noexcept;

    [[nodiscard]] boot_clock::duration last() const noexcept { return last_; }
    [[nodiscard]] boot_clock::duration median() const noexcept { return median_; }
    [[nodiscard]] boot_clock::duration longest() const noexcept { return longest_; }

private:
    static constexpr std::size_t kept = 32;
    static constexpr std::uint32_t most_stretch = 32;

    std::array<boot_clock::duration, kept> ring_{};
    std::array<boot_clock::duration, kept> sorted_{};  // the same, by length
    std::size_t seen_ = 0;
    boot_clock::duration last_{0};
    boot_clock::duration median_{0};
    boot_clock::duration longest_{0};
    std::uint32_t stretch_ = 1;
};

// Ticks of one instance: `phase` (from the clock's origin) plus whole intervals. The first at or
// after t.
[[nodiscard]] boot_clock::time_point tick_at_or_after(boot_clock::time_point t,
                                                      boot_clock::duration phase,
                                                      boot_clock::duration interval) noexcept;

// The tick for which t is a little late, by up to a quarter of an interval, or else t itself.
// Timers are always late, and what they began must not miss the tick after.
[[nodiscard]] boot_clock::time_point tick_meant_by(boot_clock::time_point t,
                                                   boot_clock::duration phase,
                                                   boot_clock::duration interval) noexcept;

}  // namespace trinco::detail
