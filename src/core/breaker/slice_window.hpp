// A sliding window of counts in numbered slices of time, with its sum kept at hand: what the record
// keeps for the fleet, for each voter and for each instance. Pure; the caller names the slices by
// number = time / slice length, and shows them in non-decreasing order of `current`.
//
// Cost: add and sum are constant within a slice and linear in the slices once a slice. A window
// allocates once, at its first count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/breaker/view.hpp"

namespace trinco::detail {

struct slice_window {
    struct cell {
        std::int64_t number = -1;  // -1: empty
        counts n;
        bool operator==(const cell&) const = default;
    };
    std::vector<cell> cells;  // cells[number mod size]; empty until something is counted
    counts sum;               // of the cells that had not left the window at `newest`
    std::int64_t newest = -1;

    // The cells that are in the window when `current` is the running slice: it and the size - 1
    // before it. Cells that have left it are emptied.
    const counts& advance(std::int64_t current) noexcept;
    // Books into slice `number`. False, and nothing is booked, when it has left the window.
    bool add(std::int64_t number, std::int64_t current, std::size_t size, const counts& n);
    // The sum at `current` without changing anything.
    [[nodiscard]] counts sum_at(std::int64_t current) const noexcept;
    void clear() noexcept;

    bool operator==(const slice_window&) const = default;
};

}  // namespace trinco::detail
