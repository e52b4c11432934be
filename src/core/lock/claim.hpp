// The rule of a queue, and the life of one claim as its session sees it. Pure; the rule is what the
// stores that keep queues themselves (memory, local) decide by, and what etcd's reads are judged
// by.
#pragma once

#include <cstdint>
#include <string_view>

namespace trinco::detail {

enum class claim_kind : std::uint8_t { exclusive, shared, permit };

// What one entry of a queue asks for; n is the number of permits of its semaphore, else 0.
struct seat {
    claim_kind kind = claim_kind::exclusive;
    std::uint32_t n = 0;
    bool operator==(const seat&) const = default;
};

// Two entries of a name cannot both be granted by kind alone: unless both are shared, or both are
// permits of a semaphore with equal n.
[[nodiscard]] constexpr bool conflicts(seat a, seat b) noexcept {
    if (a.kind != b.kind) return true;
    if (a.kind == claim_kind::permit) return a.n != b.n;
    return a.kind == claim_kind::exclusive;
}

// A semaphore of the same name with another number of permits: refused with errc::limit_mismatch.
[[nodiscard]] constexpr bool limits_differ(seat a, seat b) noexcept {
    return a.kind == claim_kind::permit && b.kind == claim_kind::permit && a.n != b.n;
}

// Walks a queue from its head and tells of each entry whether it has its turn: no earlier entry
// conflicts with it and, for a permit, fewer than n earlier entries exist.
class turn_rule {
public:
    [[nodiscard]] constexpr bool has_turn(seat s) const noexcept {
        if (mixed_) return false;
        if (before_ == 0) return s.kind != claim_kind::permit || s.n > 0;
        return !conflicts(first_, s) && (s.kind != claim_kind::permit || before_ < s.n);
    }
    constexpr void pass(seat s) noexcept {
        if (before_ == 0) first_ = s;
        if (conflicts(first_, s) && before_ > 0) mixed_ = true;
        ++before_;
    }
    // Nothing that follows can have its turn.
    [[nodiscard]] constexpr bool closed() const noexcept {
        if (before_ == 0) return false;
        return mixed_ || first_.kind == claim_kind::exclusive ||
               (first_.kind == claim_kind::permit && before_ >= first_.n);
    }

private:
    seat first_{};
    std::uint32_t before_ = 0;
    bool mixed_ = false;  // entries that conflict with each other have passed
};

// The life of one claim as its session sees it.
//
//   entering   the request to queue it was sent, perhaps more than once; nothing is known
//   waiting    the store acknowledged it
//   granted    the store confirmed its turn
//   leaving    its owner wants no more of it; the request to remove it is under way
//   debt       nobody wants it and it may still be there: the session settles it
//   gone       final
enum class claim_state : std::uint8_t { entering, waiting, granted, leaving, debt, gone };

enum class claim_event : std::uint8_t {
    entered,    // the store acknowledged the enter
    refused,    // the store did not apply it
    granted,    // its turn is confirmed
    abandoned,  // released, cancelled, or the handle is gone
    left,       // the store acknowledged the removal
    unsettled,  // a request ended without a known outcome, or the store could not be reached
    listed,     // the store's own account shows it
    unlisted,   // the store's account, asked after the last request ended, does not show it
    lost        // the claim or its lease no longer exists
};

class claim_life {
public:
    [[nodiscard]] claim_state state() const noexcept { return state_; }
    // Events that have no meaning in a state leave it unchanged: they are late.
    claim_state on(claim_event e) noexcept;

private:
    claim_state state_ = claim_state::entering;
    bool enter_unsettled_ = false;  // an enter may still arrive at the store
};

[[nodiscard]] std::string_view name_of(claim_state s) noexcept;

}  // namespace trinco::detail
