#include "apps/trinco/breakers/view_words.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/output/visible.hpp"
#include "trinco/breaker_events.hpp"

namespace trinco::program {
namespace {

using trinco::detail::view;

std::string_view spoken(override_kind over) {
    switch (over) {
        case override_kind::forced_open: return "forced open";
        case override_kind::disabled: return "disabled: all calls go through";
        case override_kind::observing: return "observed: no call is refused";
        case override_kind::none: break;
    }
    return "";
}

std::string spoken_state(const view& v) {
    switch (v.state) {
        case breaker_state::closed: return v.remaining.count() > 0 ? "recovering" : "closed";
        case breaker_state::open: return "open";
        case breaker_state::half_open: return "half open";
    }
    return "";
}

// What happens next, or nothing.
std::string outlook(const view& v) {
    const auto time = duration_words(v.remaining);
    switch (v.state) {
        case breaker_state::closed:
            return v.remaining.count() > 0 ? "; all calls go through in " + time : "";
        case breaker_state::open:
            return v.remaining.count() > 0 ? "; probes begin in " + time : "; the next call probes";
        case breaker_state::half_open: break;
    }
    return "";
}

// The store's, and so perhaps not of this program.
std::string reason_of(const view& v) {
    return visible(v.reason);
}

// " (maintenance, by ann@shop)", of "maintenance (by ann@shop)": brackets in brackets read badly.
std::string in_brackets(const view& v) {
    std::string reason = reason_of(v);
    if (reason.empty()) return {};
    const auto who = reason.rfind(" (by ");
    if (who != std::string::npos && reason.ends_with(')')) {
        reason.pop_back();
        reason.replace(who, 2, ", ");
    }
    return " (" + reason + ")";
}

void add_or_null(json_object& to, std::string_view key, const std::string& text) {
    text.empty() ? to.add_null(key) : to.add(key, text);
}

// On local:, too, what all processes share refuses: there is no fleet to be seen.
std::string_view spoken(refused_by by, bool stands_in) {
    const bool is_breaker = by == refused_by::fleet_breaker || by == refused_by::local_breaker;
    if (stands_in && is_breaker) return "breaker that stands in on this machine";
    return by == refused_by::fleet_breaker ? "shared breaker" : text_of(by);
}

}  // namespace

std::string_view word_of(const view& v) noexcept {
    return v.over == override_kind::none ? text_of(v.state) : text_of(v.over);
}

std::string sentence_of(std::string_view breaker, const view& v) {
    std::string text(breaker);
    text += " is ";
    if (v.over == override_kind::none) {
        return text + spoken_state(v) + in_brackets(v) + outlook(v);
    }
    text += spoken(v.over);
    text +=
        ", by an operator: " + reason_of(v) + "; for another " + duration_words(v.over_remaining);
    return text + "; beneath it is " + spoken_state(v) + outlook(v);
}

std::string refusal_sentence(std::string_view breaker, const view& v, const refusal& why,
                             bool stands_in) {
    std::string text(breaker);
    text += " is ";
    text += v.over == override_kind::forced_open ? "forced open" : spoken_state(v);
    text += in_brackets(v);
    if (why.reason == refusal_reason::no_probe_left) {
        // Half open none is left; before that none is granted yet: those of before a loss of the
        // server's data may be under way.
        text += v.state == detail::breaker_state::half_open ? " and all its probes are out"
                                                            : " and grants no probe yet";
    }
    text += ", refused by the " + std::string(spoken(why.by, stands_in));
    return text + "; retry in " + duration_words(why.retry_after);
}

std::string percent_text(double share) {
    // One decimal where it says something: 33.3 %, but 50 %.
    const double percent = std::round(share * 1'000) / 10;
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), percent).ptr;
    return std::string(digits.data(), end) + " %";
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return "-";
    return percent_text(static_cast<double>(part) / static_cast<double>(whole));
}

void add_view(json_object& to, const view& v) {
    to.add("state", text_of(v.state));
    to.add("in_force", word_of(v));
    if (v.over == override_kind::none) {
        add_or_null(to, "reason", v.reason);
        to.add_null("override");
    } else {
        to.add_null("reason");
        json_object over;
        over.add("kind", text_of(v.over));
        add_or_null(over, "reason", v.reason);
        over.add("remaining_ms", v.over_remaining.count());
        to.add_raw("override", over.text());
    }
    to.add("remaining_ms", v.remaining.count());
    to.add("backoff_level", v.backoff_level);
    to.add("era", v.era);
    to.add("rev", v.rev);
}

json_object json_of(const counts& n) {
    json_object all;
    all.add("success", n.success);
    all.add("failure", n.failure);
    all.add("slow_success", n.slow_success);
    all.add("slow_failure", n.slow_failure);
    all.add("ignored", n.ignored);
    all.add("rejected", n.rejected);
    return all;
}

}  // namespace trinco::program
