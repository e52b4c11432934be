#include "core/lock/claim.hpp"

namespace trinco::detail {
namespace {

claim_state wanted(claim_state s, claim_event e) noexcept {
    switch (e) {
        case claim_event::entered: return s == claim_state::entering ? claim_state::waiting : s;
        case claim_event::refused: return s == claim_state::entering ? claim_state::gone : s;
        case claim_event::granted: return claim_state::granted;
        case claim_event::abandoned: return claim_state::leaving;
        default: return s;
    }
}

}  // namespace

claim_state claim_life::on(claim_event e) noexcept {
    if (e == claim_event::lost) return state_ = claim_state::gone;
    switch (state_) {
        case claim_state::entering:
        case claim_state::waiting:
        case claim_state::granted:
            if (state_ == claim_state::entering) {
                if (e == claim_event::unsettled) enter_unsettled_ = true;
                // Refused now, but an earlier copy of the same request may yet be applied.
                if (e == claim_event::refused && enter_unsettled_)
                    return state_ = claim_state::debt;
            }
            return state_ = wanted(state_, e);
        case claim_state::leaving:
            if (e == claim_event::left) {
                state_ = enter_unsettled_ ? claim_state::debt : claim_state::gone;
            }
            if (e == claim_event::unsettled) state_ = claim_state::debt;
            return state_;
        case claim_state::debt:
            if (e == claim_event::left && !enter_unsettled_) state_ = claim_state::gone;
            if (e == claim_event::listed) state_ = claim_state::leaving;
            if (e == claim_event::unlisted) state_ = claim_state::gone;
            return state_;
        case claim_state::gone: return state_;
    }
    return state_;
}

std::string_view name_of(claim_state s) noexcept {
    switch (s) {
        case claim_state::entering: return "entering";
        case claim_state::waiting: return "waiting";
        case claim_state::granted: return "granted";
        case claim_state::leaving: return "leaving";
        case claim_state::debt: return "debt";
        case claim_state::gone: return "gone";
    }
    return "?";
}

}  // namespace trinco::detail
