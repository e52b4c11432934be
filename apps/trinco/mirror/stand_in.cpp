#include "apps/trinco/mirror/stand_in.hpp"

#include <sys/random.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "apps/trinco/mirror/row.hpp"
#include "core/breaker/policy.hpp"
#include "core/loop.hpp"

namespace trinco::program {
namespace {

using std::chrono::milliseconds;
using trinco::detail::control_request;
using trinco::detail::control_verb;
using trinco::detail::view;

// Times of two stores, told one after the other.
constexpr milliseconds close_enough{1'500};
// A batch that another process of the same name has overtaken gets another number.
constexpr int most_numbers = 8;

bool is_close(milliseconds a, milliseconds b) {
    return std::chrono::abs(a - b) <= close_enough;
}

milliseconds half_of_open_for(const std::string& governing) {
    const auto parsed = detail::parse_policy(governing, detail::policy{});
    const auto* const p = std::get_if<detail::policy>(&parsed);
    return (p != nullptr ? *p : detail::policy{}).open_for / 2;
}

milliseconds random_up_to(milliseconds most) {
    std::uint64_t n = 0;
    // Should it fail, all machines begin to probe at once: no harm but to the one that is probed.
    static_cast<void>(::getentropy(&n, sizeof n));
    return milliseconds(
        1 + static_cast<milliseconds::rep>(
                n % static_cast<std::uint64_t>(std::max<milliseconds::rep>(most.count(), 1))));
}

std::uint64_t next_number() {
    const auto since = detail::boot_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

control_verb verb_of(override_kind over) {
    switch (over) {
        case override_kind::forced_open: return control_verb::force_open;
        case override_kind::disabled: return control_verb::disable;
        case override_kind::observing: return control_verb::observe;
        case override_kind::none: break;
    }
    return control_verb::resume;
}

}  // namespace

stand_in::stand_in(const store& kept_in, std::string breaker)
    : kept_in_(kept_in), breaker_(std::move(breaker)) {}

void stand_in::read() {
    is_read_ = true;
    if (auto r = row::read(kept_in_, breaker_)) here_ = std::move(*r);
}

void stand_in::operate(control_request what) {
    what.breaker = breaker_;
    if (auto after = row::control(kept_in_, std::move(what))) here_.now.fleet = std::move(*after);
}

void stand_in::agree(const told& with, milliseconds set_for) {
    read();
    put_options(with.options, set_for);
    put_state(with);
    put_override(with.fleet);
}

void stand_in::begin_anew(const std::string& reason) {
    control_request what;
    what.verb = control_verb::reset;
    what.reason = reason;
    operate(std::move(what));
}

void stand_in::agree_on_override(const view& with) {
    read();
    put_override(with);
}

void stand_in::put_override(const view& with) {
    const view& here = here_.now.fleet;
    const bool is_none = with.over == override_kind::none;
    const bool is_close_to = is_none || is_close(here.over_remaining, with.over_remaining);
    if (here.over == with.over && is_close_to) return;
    control_request what;
    what.verb = verb_of(with.over);
    what.reason = is_none ? std::string() : with.reason;
    what.expires = with.over_remaining;
    operate(std::move(what));
}

// What processes are configured with is told when something is counted.
void stand_in::put_options(const told_options& with, milliseconds set_for) {
    if (with.text.empty()) return;
    control_request what;
    if (with.are_set()) {
        if (here_.options_set && here_.options == with.text && set_for.count() == 0) return;
        what.verb = control_verb::set;
        what.options = with.text;
        what.expires = set_for;
        operate(std::move(what));
    } else if (here_.options_set) {
        what.verb = control_verb::unset;
        operate(std::move(what));
    }
}

void stand_in::put_state(const told& with) {
    const view& there = with.fleet;
    const view& here = here_.now.fleet;
    control_request what;
    what.reason = there.over == override_kind::none ? there.reason : std::string();
    if (there.state == breaker_state::closed) {
        if (here.state == breaker_state::closed) return;
        what.verb = control_verb::reset;
    } else {
        const bool is_open = here.state == breaker_state::open;
        what.verb = control_verb::trip;
        what.expires = std::max(there.remaining, milliseconds(1));
        if (there.state == breaker_state::half_open) {
            const milliseconds most = half_of_open_for(with.options.text);
            const bool is_soon = is_open && here.remaining <= most + close_enough;
            if (is_soon || here.state == breaker_state::half_open) return;
            what.expires = random_up_to(most);
        } else if (is_open && is_close(here.remaining, there.remaining)) {
            return;
        }
    }
    operate(std::move(what));
    has_changed_ = true;
}

void stand_in::count(const counts& n, const std::string& governing) {
    if (!is_read_) read();
    detail::news news;
    news.breaker = breaker_;
    news.mine = here_.now.fleet;
    news.options = governing;
    const auto began = detail::boot_clock::now();
    for (int i = 0; i < most_numbers; ++i) {
        news.seq = next_number();
        news.slices.clear();
        if (has_changed_) {
            news.stale = n;
        } else {
            const auto age = detail::boot_clock::now() - began;
            news.slices.push_back({n, std::chrono::floor<milliseconds>(age)});
        }
        const auto v = row::exchange(kept_in_, news);
        if (!v || v->counted) return;
    }
}

}  // namespace trinco::program
