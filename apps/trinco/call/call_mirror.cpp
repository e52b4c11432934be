#include "apps/trinco/call/call_mirror.hpp"

#include <algorithm>
#include <utility>

#include "apps/trinco/mirror/stand_in.hpp"
#include "core/breaker/policy.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using trouble_t = server_mirror::trouble_t;

// How long a server that did not answer is asked in brief, before a call asks it at length.
constexpr milliseconds away_for{5'000};
constexpr int brief_part = 10;
constexpr milliseconds briefest{20};
// Each call tries to write, and the first one that can ends it: this is for the row alone.
constexpr milliseconds no_writes_for{60'000};

counts counts_of(outcome what, admission::kind_t as) {
    counts n;
    if (as == admission::kind_t::refused || as == admission::kind_t::uncounted) {
        n.rejected = 1;
    } else if (what == outcome::success) {
        n.success = 1;
    } else if (what == outcome::failure) {
        n.failure = 1;
    } else {
        n.ignored = 1;
    }
    return n;
}

}  // namespace

call_mirror::call_mirror(std::string breaker, const call_rules& rules, server_mirror of_server)
    : breaker_(std::move(breaker)),
      options_(rules.options),
      store_timeout_(rules.options.store_timeout),
      of_server_(std::move(of_server)) {
    options_.store_timeout = server_mirror::patience;
    options_.degraded_after = std::max(options_.degraded_after, options_.store_timeout);
}

std::optional<call_mirror> call_mirror::open(const settings& with, const std::string& breaker,
                                             const call_rules& rules, std::string& why_not) {
    auto of_server = server_mirror::open(with, call_instance_name(), &why_not);
    if (!of_server) return std::nullopt;
    return call_mirror(breaker, rules, std::move(*of_server));
}

void call_mirror::prepare(call_breaker& call) {
    last_view_ = of_server_.last_view(breaker_);
    call.remember(last_view_, [this] { return of_server_.last_options(breaker_); });
    away_ = of_server_.has(trouble_t::away);
    no_writes_ = of_server_.has(trouble_t::no_writes);
    was_brief_ = away_ && away_->left > 0ms;
    const milliseconds brief = std::max(briefest, store_timeout_ / brief_part);
    call.be_brief(was_brief_ ? std::min(brief, store_timeout_) : store_timeout_);
    // Those who come meanwhile need not find out, too.
    if (away_ && !was_brief_) note({trouble_t::away, away_->why});
}

void call_mirror::was_asked(call_breaker& call, const std::optional<std::string>& why_not) {
    if (!why_not) {
        if (away_) of_server_.is_over(trouble_t::away);
        call.be_brief(store_timeout_);
        hear(call);
    } else if (!was_brief_) {
        note({trouble_t::away, *why_not});
    }
}

void call_mirror::note(const hindrance& what) {
    const bool is_away = what.kind == trouble_t::away;
    if (!is_away && no_writes_ && no_writes_->left > 0ms) return;
    of_server_.note(what.kind, {what.why, is_away ? away_for : no_writes_for});
}

// At once: when the call has ended, what it was told may be of before an outage.
void call_mirror::hear(const call_breaker& call) {
    const detail::view now = call.fleet_now();
    if (now.era == last_view_.era) return;
    of_server_.remember(breaker_, {now, {}});
    stand_in(of_server_.stand_in(), breaker_).agree({now, of_server_.last_options(breaker_)});
}

void call_mirror::catch_up(const call_breaker& call) {
    stand_in(of_server_.stand_in(), breaker_).agree_on_override(call.fleet_now());
}

void call_mirror::keep(const call_breaker& call, outcome what,
                       const std::optional<hindrance>& why_not, bool has_counted) {
    if (why_not) {
        note(*why_not);
    } else if (no_writes_) {
        of_server_.is_over(trouble_t::no_writes);
    }
    const told said{call.fleet_now(), call.governing()};
    of_server_.remember(breaker_, said);
    stand_in here(of_server_.stand_in(), breaker_);
    // Otherwise it was said before the command ran, and what stands in may have opened since.
    if (!why_not) here.agree(said);
    if (has_counted) return;
    const std::string& text = said.options.text;
    here.count(counts_of(what, call.admitted_as()),
               text.empty() ? to_text(detail::policy_of(options_)) : text);
}

}  // namespace trinco::program
