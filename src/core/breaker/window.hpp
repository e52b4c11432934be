// The window of time of one breaker in one process: what calls count into, from any thread, without
// a lock, an allocation or a system call.
//
// Shape       Slices of equal length in two banks. A cell is one cache line per (shard, bank,
//             slice): the slice's number and six counters. A thread counts into the shard that
//             core/breaker/shard names, so two threads rarely share a line. One outcome is one
//             relaxed fetch_add.
// Banks       Every generation of the breaker (see circuit_breaker) counts into the bank of its
//             parity, so that a straggler of the last generation cannot count into this one.
// Rotation    Counters only ever grow. The first to enter a slice in a shard's cell notes their
//             values there (the base), and the slice's counts are what came on top. So no count can
//             be lost whatever threads do: totals() is the exact number of all adds at quiescence,
//             and sum() exact but for calls that were being counted while their slice began or ran
//             out.
// Harvest     What has been counted since the last harvest, per slice, for the fleet. Under the
//             caller's lock.
//
// Time is nanoseconds of a coarse monotonic clock since any origin, given by the caller. A slice is
// what a whole multiple of its length begins, the end excluded. A step back counts into the newest
// slice that was entered. Memory: 160 bytes * slices * 2 * shards.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/breaker/shard.hpp"
#include "core/breaker/view.hpp"

namespace trinco::detail {

using coarse_time = std::chrono::nanoseconds;

enum class counter : std::uint8_t {
    success,
    failure,
    slow_success,
    slow_failure,
    ignored,
    rejected
};

// The counter of one outcome.
[[nodiscard]] constexpr counter counter_of(outcome what, bool slow) noexcept {
    switch (what) {
        case outcome::success: return slow ? counter::slow_success : counter::success;
        case outcome::failure: return slow ? counter::slow_failure : counter::failure;
        case outcome::ignored: break;
    }
    return counter::ignored;
}

[[nodiscard]] constexpr bool is_success(counter what) noexcept {
    return what == counter::success || what == counter::slow_success;
}
[[nodiscard]] constexpr bool is_failure(counter what) noexcept {
    return what == counter::failure || what == counter::slow_failure;
}

// Failed or slow: what may open the breaker.
[[nodiscard]] constexpr bool is_bad(counter what) noexcept {
    return is_failure(what) || what == counter::slow_success;
}

// What one add of this counter adds: slow ones count as success or failure too.
[[nodiscard]] constexpr counts counts_of(counter what) noexcept {
    counts n;
    n.success = is_success(what) ? 1 : 0;
    n.failure = is_failure(what) ? 1 : 0;
    n.slow_success = what == counter::slow_success ? 1 : 0;
    n.slow_failure = what == counter::slow_failure ? 1 : 0;
    n.ignored = what == counter::ignored ? 1 : 0;
    n.rejected = what == counter::rejected ? 1 : 0;
    return n;
}

class time_window {
public:
    // length and slices as validated: at most 60 slices, of 1 us or longer. shards is a power of
    // two.
    time_window(std::chrono::nanoseconds length, std::uint32_t slices, std::size_t shards);

    // Counts one outcome. slow_success counts into success as well, slow_failure into failure.
    // Returns true when this call was the first in a new slice of its shard (somebody should judge:
    // old calls have left the window). Any thread. Cost: one locked addition.
    bool add(unsigned bank, coarse_time now, counter what) noexcept {
        std::int64_t newest = newest_.load(std::memory_order_relaxed);
        if (!inside(newest, now)) [[unlikely]]
            newest = advance(now);
        const std::size_t at = index(this_thread_shard() & shard_mask_, bank,
                                     static_cast<std::size_t>(newest & place_mask));
        cell& c = cells_[at];
        bool first = false;
        if (c.number.load(std::memory_order_acquire) != (newest >> place_bits)) [[unlikely]] {
            first = enter(at, newest >> place_bits);
        }
        c.grown[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed);
        return first;
    }

    // The counts of the window's slices at `now` in one bank. Any thread.
    [[nodiscard]] counts sum(unsigned bank, coarse_time now) const noexcept;

    struct aged {
        counts n;
        std::chrono::nanoseconds age;  // since the end of the slice; 0 for the running one
    };
    // What was counted in a bank since its last harvest, oldest first, and what left the window
    // unharvested (`expired`). One caller at a time.
    struct harvested {
        std::vector<aged> slices;
        counts expired;
    };
    [[nodiscard]] harvested harvest(unsigned bank, coarse_time now);

    // Empties a bank for its next generation: to be called (under the caller's lock) before any
    // call can count into it. What it still held and was not harvested is returned.
    counts clear(unsigned bank) noexcept;

    // Everything ever counted, both banks.
    [[nodiscard]] counts totals() const noexcept;

    [[nodiscard]] std::chrono::nanoseconds slice_length() const noexcept {
        return std::chrono::nanoseconds(length_);
    }
    [[nodiscard]] std::size_t slices() const noexcept { return slices_; }

private:
    static constexpr std::size_t counters = 6;
    static constexpr unsigned place_bits = 8;  // newest_ = slice number << 8 | place in the ring
    static constexpr std::int64_t place_mask = 255;

    // What threads count into. grown[i] only grows, for the life of the window.
    struct alignas(64) cell {
        std::atomic<std::int64_t> number;
        std::array<std::atomic<std::uint64_t>, counters> grown;
    };
    // The values of grown when the slice was entered, and when they were last harvested.
    struct notes {
        std::array<std::atomic<std::uint64_t>, counters> base;
        std::array<std::uint64_t, counters> taken;
    };
    using values = std::array<std::uint64_t, counters>;
    struct snapshot {
        std::int64_t number;
        values grown;
        values base;
    };

    [[nodiscard]] bool inside(std::int64_t newest, coarse_time now) const noexcept {
        const auto begin =
            static_cast<std::uint64_t>(newest >> place_bits) * static_cast<std::uint64_t>(length_);
        return static_cast<std::uint64_t>(now.count()) - begin <
               static_cast<std::uint64_t>(length_);
    }
    [[nodiscard]] std::size_t index(std::size_t shard, unsigned bank,
                                    std::size_t place) const noexcept {
        return ((shard << 1) | (bank & 1U)) * slices_ + place;
    }
    [[nodiscard]] std::int64_t number_of(coarse_time now) const noexcept;
    [[nodiscard]] std::int64_t current(coarse_time now) const noexcept;
    std::int64_t advance(coarse_time now) noexcept;
    bool enter(std::size_t at, std::int64_t number) noexcept;
    [[nodiscard]] bool read(std::size_t at, snapshot& out) const noexcept;
    [[nodiscard]] bool has_grown(std::size_t at) const noexcept;  // since its last harvest

    std::atomic<std::int64_t> newest_;  // changes once a slice, so every core keeps a copy
    std::int64_t length_;               // of a slice
    std::size_t slices_;
    std::size_t shard_mask_;
    std::unique_ptr<cell[]> cells_;
    std::unique_ptr<notes[]> notes_;
};

}  // namespace trinco::detail
