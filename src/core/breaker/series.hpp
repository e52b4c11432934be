// The one table: fleet's view x state of the local breaker -> what happens to a call. Local breaker
// and record never include each other; this is where they meet. Pure.
//
//   override           whatever the states are: disabled admits, forced_open refuses in the fleet's
//                      name. It counts even while the fleet is not known: it was inherited, or is
//                      this process's own.
//   fleet not closed   the local breaker is suspended, nobody but the fleet is asked: a probe when
//                      one is due, else a refusal.
//   outlived           the fleet's opening is one from which this instance has recovered alone
//                      while the store was lost: as closed, but the call offers itself to the fleet
//                      as a probe first, because otherwise the fleet would never close.
//   closed or unknown  the local breaker decides: a refusal while it is open, a probe when one is
//                      due, a call by share while either of the two ramps, else the call.
//   observing          decided like this, but nothing is refused: what would be is admitted
//                      uncounted, and a ramp admits all. A probe is asked for as ever, because
//                      without probes nothing would recover while it is observed; when none is
//                      granted the call goes through uncounted.
#pragma once

#include <cstdint>

#include "core/breaker/view.hpp"

namespace trinco::detail {

enum class decision : std::uint8_t {
    admit,            // goes through and counts
    admit_uncounted,  // goes through; the outcome moves nothing (observing: it would be refused)
    ramp,             // admitted by share
    ask_local,        // the local breaker is half open: it has or has no probe left
    ask_fleet,        // a probe of the fleet's is needed: one lease
    offer_probe,  // as a probe of the fleet's when one can be had; otherwise goes through, counts
    refuse_local,
    refuse_fleet
};

// What the fleet says to this instance. `known` is false while there is no store, or none has
// answered yet, or it is degraded and the local breaker has inherited the view: then the local one
// decides.
struct fleet_side {
    bool known = false;
    breaker_state state = breaker_state::closed;
    bool probing_due = false;  // open, and its time has run out; half open always counts as due
    bool ramping = false;
    override_kind over = override_kind::none;
    bool outlived = false;  // this instance has recovered from it alone, and nothing newer was said
};

struct local_side {
    breaker_state state = breaker_state::closed;
    bool probing_due = false;  // as above
    bool ramping = false;
};

[[nodiscard]] decision decide(const fleet_side& fleet, const local_side& local) noexcept;

}  // namespace trinco::detail
