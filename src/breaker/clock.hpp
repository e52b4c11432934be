// The time of one breaker: nanoseconds of a monotonic clock, coarse for windows and deadlines,
// precise for durations. Both run on the same scale.
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trinco::detail {

class breaker_clock {
public:
    // Null: CLOCK_MONOTONIC_COARSE and CLOCK_MONOTONIC. Otherwise virtual time, for both; the
    // atomic must outlive the clock.
    explicit breaker_clock(const std::atomic<std::int64_t>* virtual_ns = nullptr) noexcept
        : virtual_(virtual_ns) {}

    // The time at the kernel's last tick; a few nanoseconds to read.
    [[nodiscard]] std::chrono::nanoseconds coarse() const noexcept {
        return read(CLOCK_MONOTONIC_COARSE);
    }
    [[nodiscard]] std::chrono::nanoseconds precise() const noexcept {
        return read(CLOCK_MONOTONIC);
    }
    [[nodiscard]] bool is_virtual() const noexcept { return virtual_ != nullptr; }

private:
    [[nodiscard]] std::chrono::nanoseconds read(clockid_t which) const noexcept {
        if (virtual_ != nullptr) [[unlikely]] {
            return std::chrono::nanoseconds(virtual_->load(std::memory_order_relaxed));
        }
        timespec t;
        ::clock_gettime(which, &t);
        return std::chrono::nanoseconds(std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec);
    }

    const std::atomic<std::int64_t>* virtual_;
};

}  // namespace trinco::detail
