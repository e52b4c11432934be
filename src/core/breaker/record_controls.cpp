// An operator's hand.
#include <algorithm>
#include <string>

#include "core/breaker/record_steps.hpp"
#include "core/names.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

using namespace steps;

namespace {

// As a breaker that is alone says it, and who, when there is one: "after the fix (by ann)".
[[nodiscard]] std::string attributed(std::string_view verb, const control_request& c) {
    std::string text(c.reason.empty() ? verb : c.reason);
    if (!c.who.empty()) text.append(" (by ").append(c.who).append(")");
    return text;
}

[[nodiscard]] bool is_acceptable(const control_request& c) noexcept {
    return c.id != 0 && c.verb <= control_verb::forget && c.who.size() <= max_who &&
           c.reason.size() <= max_reason && is_one_line(c.who) && is_one_line(c.reason) &&
           c.expires.count() >= 0 && c.expires <= longest_time;
}

// True when this id is new; it is known from now on.
[[nodiscard]] bool is_first(fleet_record& r, std::uint64_t id, store_time t) {
    std::erase_if(r.controls,
                  [&](const fleet_record::done_control& d) { return t - d.at >= control_memory; });
    const bool is_known =
        std::any_of(r.controls.begin(), r.controls.end(),
                    [&](const fleet_record::done_control& d) { return d.id == id; });
    if (is_known) return false;
    if (r.controls.size() >= max_controls) r.controls.erase(r.controls.begin());
    r.controls.push_back({id, t});
    return true;
}

void put_override(fleet_record& r, override_kind kind, const control_request& c,
                  std::string_view verb, store_time t, effects& out) {
    r.over = kind;
    r.over_reason = attributed(verb, c);
    r.over_until = t + (c.expires.count() != 0 ? store_time(c.expires) : default_override);
    bump_by_operator(r, t, out);
}

void drop_override(fleet_record& r, store_time t, effects& out) {
    if (r.over == override_kind::none) return;
    r.over = override_kind::none;
    r.over_reason.clear();
    bump_by_operator(r, t, out);
}

void start_anew(fleet_record& r, const control_request& c, std::string_view verb, store_time t,
                effects& out) {
    enter_closed(r, t, milliseconds(0), attributed(verb, c), out);
    r.backoff_level = 0;
    for (fleet_record::voter& v : r.voters) v.set_aside = false;
}

void forget(fleet_record& r, const control_request& c, store_time t, effects& out) {
    drop_override(r, t, out);
    unset_options(r, t, out);
    r.totals = counts{};
    start_anew(r, c, "forget", t, out);
}

void carry_out(fleet_record& r, const control_request& c, store_time t, effects& out) {
    switch (c.verb) {
        case control_verb::trip: {
            const milliseconds length = c.expires.count() != 0 ? c.expires : r.rules.open_for;
            return enter_open(r, t, length, attributed("operator trip", c), out);
        }
        case control_verb::reset: return start_anew(r, c, "reset", t, out);
        case control_verb::force_open:
            return put_override(r, override_kind::forced_open, c, "forced open", t, out);
        case control_verb::disable:
            return put_override(r, override_kind::disabled, c, "disabled", t, out);
        case control_verb::observe:
            return put_override(r, override_kind::observing, c, "observing", t, out);
        case control_verb::resume: return drop_override(r, t, out);
        case control_verb::unset: return unset_options(r, t, out);
        case control_verb::forget: return forget(r, c, t, out);
        case control_verb::set: return;  // by the caller, because it may fail
    }
}

}  // namespace

view apply(fleet_record& r, const control_request& c, store_time now, effects& out,
           std::error_code& error) {
    error.clear();
    if (!is_acceptable(c)) {
        error = errc::invalid;
        return {};
    }
    const store_time t = tick(r, now);
    expire(r, t, out);
    const bool is_set = c.verb == control_verb::set;
    const auto rules = is_set ? parse_set(r, c.options) : std::nullopt;
    if (is_set && !rules) {
        error = errc::invalid;
        return {};
    }
    if (is_first(r, c.id, t)) {
        if (is_set) {
            set_options(r, c.options, *rules, c.expires, t, out);
        } else {
            carry_out(r, c, t, out);
        }
    }
    return view_at(r, t);
}

}  // namespace trinco::detail
