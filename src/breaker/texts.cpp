// Words for people: of states, outcomes, refusals.

#include "trinco/breaker_events.hpp"
#include "trinco/permit.hpp"

namespace trinco {

std::string_view text_of(refusal_reason reason) noexcept {
    switch (reason) {
        case refusal_reason::none: return "It was not refused.";
        case refusal_reason::open: return "The breaker is open.";
        case refusal_reason::no_probe_left:
            return "The breaker is half open and all probes are out.";
        case refusal_reason::probe_pending:
            return "Another call of this process is asking for a probe.";
        case refusal_reason::store_late:
            return "A probe is needed and the store does not answer in time.";
        case refusal_reason::forced_open: return "An operator forces the breaker open.";
        case refusal_reason::recovering:
            return "The breaker recovers and lets only a share of the calls through.";
    }
    return "";
}

std::string_view text_of(refused_by who) noexcept {
    switch (who) {
        case refused_by::none: return "nobody";
        case refused_by::local_breaker: return "local breaker";
        case refused_by::fleet_breaker: return "fleet breaker";
        case refused_by::operator_override: return "operator";
        case refused_by::ramp: return "recovery ramp";
    }
    return "";
}

std::string_view text_of(breaker_state state) noexcept {
    switch (state) {
        case breaker_state::closed: return "closed";
        case breaker_state::open: return "open";
        case breaker_state::half_open: return "half_open";
    }
    return "";
}

std::string_view text_of(override_kind over) noexcept {
    switch (over) {
        case override_kind::none: return "none";
        case override_kind::forced_open: return "forced_open";
        case override_kind::disabled: return "disabled";
        case override_kind::observing: return "observing";
    }
    return "";
}

std::string_view text_of(outcome what) noexcept {
    switch (what) {
        case outcome::success: return "success";
        case outcome::failure: return "failure";
        case outcome::ignored: return "ignored";
    }
    return "";
}

std::string_view text_of(event_kind kind) noexcept {
    switch (kind) {
        case event_kind::state_changed: return "state_changed";
        case event_kind::override_changed: return "override_changed";
        case event_kind::store_lost: return "store_lost";
        case event_kind::store_back: return "store_back";
        case event_kind::options_differ: return "options_differ";
    }
    return "";
}

}  // namespace trinco
