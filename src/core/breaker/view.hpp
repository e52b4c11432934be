// The vocabulary that breakers, their record and every store share. Plain values; durations only,
// never times, because the clocks of two machines never meet.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

#include "trinco/breaker_types.hpp"

namespace trinco::detail {

// Grows at every transition of the fleet's breaker. 0: no transition since the record was made;
// otherwise the store's time in microseconds, or one more than any era seen.
using era_t = std::uint64_t;

// One definition for the library's users and for its inside.
using trinco::breaker_state;
using trinco::counts;
using trinco::outcome;
using trinco::override_kind;

// The reason of a closing by probes; that of any other closing is an operator's.
inline constexpr const char* recovered_reason = "recovered";

// What one party knows of the fleet's breaker. Of two views the one with the greater (era, rev)
// wins, in both directions and in every state.
struct view {
    era_t era = 0;
    std::uint64_t rev = 0;  // grows, within an era, at every other change except of counts
    breaker_state state = breaker_state::closed;
    // open: until probes may be asked for. closed: what is left of the recovery ramp. half_open: 0.
    std::chrono::milliseconds remaining{0};
    std::uint8_t backoff_level = 0;  // re-openings in a row
    override_kind over = override_kind::none;
    std::string reason;  // of the override when there is one, else of the last transition
    std::chrono::milliseconds over_remaining{0};
    // When, by the store's clock in microseconds, the governing options were stamped; 0: never.
    std::uint64_t options_stamp = 0;

    // Order of knowledge, not equality of contents.
    [[nodiscard]] bool newer_than(const view& other) const noexcept {
        return era != other.era ? era > other.era : rev > other.rev;
    }
};

// Counts of one stretch of time, by its age when the message was made.
struct slice {
    counts n;
    std::chrono::milliseconds age{0};
};

}  // namespace trinco::detail
