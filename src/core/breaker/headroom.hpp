// How far a window is from opening a breaker, so that most outcomes need not be judged one by one
// and the result is still exactly that of judging after every outcome. Pure.
#pragma once

#include <cstdint>

#include "core/breaker/policy.hpp"
#include "core/breaker/view.hpp"

namespace trinco::detail {

struct headroom {
    // The least number of further bad outcomes (failures, and slow calls where they are judged)
    // with which judge() can trip, however many good ones come between; at least 1. The evaluation
    // is due when that many have come.
    std::uint64_t bad = 1;
    // A good outcome alone can make it trip, by bringing the window to minimum_calls: until the
    // next evaluation every outcome must be judged.
    bool judge_successes = false;

    static constexpr std::uint64_t unreachable = ~std::uint64_t{0};
};

// For a window that does not trip. Holds as long as outcomes are only added: when a slice leaves
// the window or the policy changes, it has to be computed anew.
[[nodiscard]] headroom headroom_of(const counts& window, const policy& p) noexcept;

}  // namespace trinco::detail
