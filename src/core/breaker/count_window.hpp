// The window of the last N judged calls, for breakers with a count_window. Exact: the N+1st call
// pushes the first one out. Not thread-safe: it lives under its breaker's lock, which a count
// window needs anyway, since every outcome must be judged in order. Cost: two bytes touched, no
// allocation after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/breaker/view.hpp"
#include "core/breaker/window.hpp"

namespace trinco::detail {

class count_window {
public:
    // 0 ... 100,000; at 0 nothing is kept.
    explicit count_window(std::uint32_t calls) : calls_(calls) {}

    // Ignored and rejected calls are not judged and push nothing out.
    void add(counter what) noexcept {
        if (calls_.empty() || what >= counter::ignored) return;
        auto& place = calls_[next_];
        if (full_) shift(place, -1);
        place = static_cast<std::uint8_t>(what);
        shift(place, +1);
        if (++next_ == calls_.size()) {
            next_ = 0;
            full_ = true;
        }
    }

    [[nodiscard]] counts sum() const noexcept {
        counts n;
        n.slow_success = held(counter::slow_success);
        n.slow_failure = held(counter::slow_failure);
        n.success = held(counter::success) + n.slow_success;
        n.failure = held(counter::failure) + n.slow_failure;
        return n;
    }
    void clear() noexcept {
        next_ = 0;
        full_ = false;
        held_ = {};
    }
    [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }

private:
    [[nodiscard]] std::uint64_t held(counter what) const noexcept {
        return held_[static_cast<std::size_t>(what)];
    }
    void shift(std::uint8_t what, int by) noexcept {
        held_[what] += static_cast<std::uint32_t>(by);
    }

    std::vector<std::uint8_t> calls_;  // a ring of counters
    std::size_t next_ = 0;
    bool full_ = false;
    std::array<std::uint32_t, 4> held_{};  // of each judged counter
};

}  // namespace trinco::detail
