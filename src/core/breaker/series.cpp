#include "core/breaker/series.hpp"

namespace trinco::detail {

namespace {

[[nodiscard]] bool wants_probe(breaker_state state, bool probing_due) noexcept {
    return state == breaker_state::half_open || (state == breaker_state::open && probing_due);
}

[[nodiscard]] decision decide_by_states(const fleet_side& fleet, const local_side& local) noexcept {
    const bool fleet_is_closed = fleet.state == breaker_state::closed;
    if (fleet.known && !fleet_is_closed && !fleet.outlived) {
        return wants_probe(fleet.state, fleet.probing_due) ? decision::ask_fleet
                                                           : decision::refuse_fleet;
    }
    if (local.state != breaker_state::closed) {
        return wants_probe(local.state, local.probing_due) ? decision::ask_local
                                                           : decision::refuse_local;
    }
    if ((fleet.known && fleet.ramping) || local.ramping) return decision::ramp;
    return fleet.known && !fleet_is_closed ? decision::offer_probe : decision::admit;
}

[[nodiscard]] decision observed(decision d) noexcept {
    switch (d) {
        case decision::refuse_local:
        case decision::refuse_fleet: return decision::admit_uncounted;
        case decision::ramp: return decision::admit;
        default: return d;
    }
}

}  // namespace

decision decide(const fleet_side& fleet, const local_side& local) noexcept {
    switch (fleet.over) {
        case override_kind::disabled: return decision::admit;
        case override_kind::forced_open: return decision::refuse_fleet;
        case override_kind::observing: return observed(decide_by_states(fleet, local));
        case override_kind::none: break;
    }
    return decide_by_states(fleet, local);
}

}  // namespace trinco::detail
