#include "core/breaker/local.hpp"

#include <algorithm>
#include <limits>

#include "core/mutant.hpp"

namespace trinco::detail {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint8_t highest_level = 32;
constexpr double first_ramp_share = 0.1;
constexpr nanoseconds clock_was_set = std::chrono::seconds(1);

milliseconds share_of(milliseconds whole, double share) noexcept {
    return milliseconds(static_cast<std::int64_t>(static_cast<double>(whole.count()) * share));
}

bool at_threshold(std::uint64_t hits, std::uint64_t calls, double rate) noexcept {
    return static_cast<double>(hits) / static_cast<double>(calls) >= rate;
}

}  // namespace

local_rules local_rules_of(const breaker_options& options) {
    return {policy_of(options), options.count_window, options.consecutive_failures};
}

local_breaker::local_breaker(const local_rules& rules, era first)
    : rules_(rules), era_(first), last_calls_(rules.count_window) {}

// ---- time ---------------------------------------------------------------------------------------

local_breaker::time local_breaker::advance(time now) noexcept {
    if (!clock_known_) {
        clock_known_ = true;
        last_now_ = own_now_ = now;
    } else if (now >= last_now_) {
        last_now_ = now;
        own_now_ = now + skew_;
    } else if (last_now_ - now >= clock_was_set) {
        skew_ += last_now_ - now;
        last_now_ = now;
    }
    return own_now_;
}

local_breaker::time local_breaker::peek(time now) const noexcept {
    return clock_known_ ? std::max(own_now_, now + skew_) : now;
}

// ---- reading ------------------------------------------------------------------------------------

bool local_breaker::probing_due(time now) const noexcept {
    if (suspended_) return false;
    return state_ == breaker_state::half_open ||
           (state_ == breaker_state::open && peek(now) >= until_);
}

bool local_breaker::ramping(time now) const noexcept {
    return !suspended_ && state_ == breaker_state::closed && peek(now) < until_;
}

milliseconds local_breaker::remaining(time now) const noexcept {
    if (suspended_ || state_ == breaker_state::half_open) return milliseconds(0);
    return std::chrono::ceil<milliseconds>(std::max(time(0), until_ - peek(now)));
}

milliseconds local_breaker::retry_after(time now) const noexcept {
    auto wait = remaining(now);
    if (const auto first = next_deadline(); first && state_ == breaker_state::half_open) {
        wait = std::chrono::ceil<milliseconds>(*first + skew_ - peek(now));
    }
    return std::max(milliseconds(1), wait);
}

double local_breaker::admitted_share(time now) const noexcept {
    if (!ramping(now)) return 1.0;
    const auto passed = static_cast<double>(std::max(time(0), peek(now) - ramp_from_).count());
    const auto all = static_cast<double>((until_ - ramp_from_).count());
    return first_ramp_share + (1.0 - first_ramp_share) * (passed / all);
}

std::optional<local_breaker::time> local_breaker::next_deadline() const noexcept {
    std::optional<time> first;
    for (const auto& f : flights_) {
        if (!first || f.deadline < *first) first = f.deadline;
    }
    if (first) *first -= skew_;
    return first;
}

std::uint32_t local_breaker::probes_in_flight() const noexcept {
    return static_cast<std::uint32_t>(flights_.size());
}

std::uint32_t local_breaker::probes_left() const noexcept {
    if (suspended_ || state_ != breaker_state::half_open) return 0;
    const auto used = flights_.size() + settled_.judged();
    return used < probe_limit() ? static_cast<std::uint32_t>(probe_limit() - used) : 0;
}

bool local_breaker::sees_every_outcome() const noexcept {
    return last_calls_.size() != 0 || (rules_.consecutive_failures != 0 && streak_ != 0);
}

// ---- transitions --------------------------------------------------------------------------------

std::uint32_t local_breaker::probe_limit() const noexcept {
    const auto all = rules_.shared.half_open_probes;
    return inherited_ ? std::max(1U, all / inherited_live_) : all;
}

std::uint8_t local_breaker::next_level(time at) const noexcept {
    if (state_ == breaker_state::closed) {
        return at - closed_since_ >= rules_.shared.open_max ? std::uint8_t{0} : level_;
    }
    return std::min<std::uint8_t>(highest_level, static_cast<std::uint8_t>(level_ + 1));
}

void local_breaker::new_era() noexcept {
    ++era_;
    settled_ = {};
    streak_ = 0;
    last_calls_.clear();
}

local_breaker::change local_breaker::go_open(trip_reason why, milliseconds lasts, time at) {
    const auto from = state_;
    new_era();
    state_ = breaker_state::open;
    until_ = at + lasts;
    reason_ = why;
    return transition{from, state_, why, era_, lasts};
}

local_breaker::change local_breaker::go_open(trip_reason why, time at, double random) {
    level_ = next_level(at);
    auto lasts = open_duration(rules_.shared, level_, random);
    if (inherited_) lasts += share_of(rules_.shared.open_for / 2, random);
    return go_open(why, lasts, at);
}

local_breaker::change local_breaker::go_half_open() {
    const auto from = state_;
    new_era();
    state_ = breaker_state::half_open;
    return transition{from, state_, trip_reason::none, era_, milliseconds(0)};
}

local_breaker::change local_breaker::go_closed(time at, bool ramp) {
    const auto from = state_;
    const auto lasts = ramp ? rules_.shared.recovery_ramp : milliseconds(0);
    new_era();
    state_ = breaker_state::closed;
    inherited_ = false;
    closed_since_ = at;
    ramp_from_ = at;
    until_ = at + lasts;
    if (from == state_) return std::nullopt;
    return transition{from, state_, trip_reason::none, era_, lasts};
}

// Half open: what the probes that have settled decide. A limit that new rules have lowered below
// what has settled already judges all of it.
local_breaker::change local_breaker::conclude(time at, double random) {
    if (suspended_ || state_ != breaker_state::half_open) return std::nullopt;
    const auto& p = rules_.shared;
    const auto calls = std::max<std::uint64_t>(probe_limit(), settled_.judged());
    if (at_threshold(settled_.failure, calls, p.failure_rate) ||
        (p.slow_calls && at_threshold(settled_.slow(), calls, p.slow_call_rate))) {
        return go_open(trip_reason::probes_failed, at, random);
    }
    if (settled_.judged() < calls) return std::nullopt;
    return go_closed(at, true);
}

// ---- closed -------------------------------------------------------------------------------------

local_breaker::change local_breaker::on_outcome(era e, counter what, const counts& window, time now,
                                                double random) {
    count(e, what);
    return on_window(e, window, now, random);
}

void local_breaker::count(era e, counter what) noexcept {
    if (e != era_) return;
    if (is_failure(what) && streak_ != std::numeric_limits<std::uint32_t>::max()) ++streak_;
    if (is_success(what)) streak_ = 0;
    last_calls_.add(what);
}

local_breaker::change local_breaker::on_window(era e, const counts& window, time now,
                                               double random) {
    const auto at = advance(now);
    if (e != era_ || suspended_ || state_ != breaker_state::closed) return std::nullopt;
    auto why = judge(last_calls_.size() != 0 ? last_calls_.sum() : window, rules_.shared);
    if (why == trip_reason::none && rules_.consecutive_failures != 0 &&
        streak_ >= rules_.consecutive_failures) {
        why = trip_reason::consecutive_failures;
    }
    return why == trip_reason::none ? std::nullopt : go_open(why, at, random);
}

// ---- probes -------------------------------------------------------------------------------------

local_breaker::asked local_breaker::ask_probe(time now, double random) {
    asked answer;
    answer.change = expire(now, random);
    if (!answer.change && state_ == breaker_state::open && probing_due(now)) {
        answer.change = go_half_open();
    }
    if (probes_left() == 0) {
        answer.retry_after = retry_after(now);
        return answer;
    }
    const auto deadline = own_now_ + rules_.shared.probe_timeout;
    flights_.push_back({++last_token_, era_, deadline});
    answer.probe = {last_token_, era_, deadline - skew_};
    return answer;
}

local_breaker::change local_breaker::settle(const probe& p, outcome what, bool slow, time now,
                                            double random) {
    auto others = expire(now, random);
    const auto mine = std::find_if(flights_.begin(), flights_.end(),
                                   [&p](const flight& f) { return f.token == p.token; });
    if (mine == flights_.end()) return others;  // unknown or late
    const bool decides = mine->era == era_ && what != outcome::ignored;
    flights_.erase(mine);
    if (!decides) return others;
    settled_ += counts_of(counter_of(what, slow));
    return conclude(own_now_, random);
}

local_breaker::change local_breaker::expire(time now, double random) {
    const auto at = advance(now);
    std::erase_if(flights_, [this, at](const flight& f) {
        if (f.deadline > at) return false;
        if (f.era == era_) ++settled_.failure;
        return true;
    });
    return conclude(at, random);
}

// ---- operators ----------------------------------------------------------------------------------

local_breaker::change local_breaker::trip(milliseconds lasts, time now) {
    const auto at = advance(now);
    if (lasts.count() == 0) lasts = rules_.shared.open_for;
    inherited_ = false;
    aside_ = {true, at + lasts, level_, trip_reason::operator_trip};
    return go_open(trip_reason::operator_trip, lasts, at);
}

local_breaker::change local_breaker::reset(time now) {
    const auto at = advance(now);
    aside_ = {};
    level_ = 0;
    return go_closed(at, false);
}

// ---- the fleet ----------------------------------------------------------------------------------

local_breaker::own_state local_breaker::put_aside(time at) const noexcept {
    if (state_ == breaker_state::closed) return {};
    return {true, state_ == breaker_state::open ? until_ : at, level_, reason_};
}

void local_breaker::suspend(time now) {
    const auto at = advance(now);
    if (suspended_) return;
    if (!inherited_) aside_ = put_aside(at);
    new_era();
    inherited_ = false;
    suspended_ = true;
    state_ = aside_.open ? breaker_state::open : breaker_state::closed;
}

local_breaker::change local_breaker::resume(bool set_aside, time now, double random) {
    const auto at = advance(now);
    if (!suspended_ && !inherited_) return std::nullopt;
    const auto from = state_;
    suspended_ = inherited_ = false;
    state_ = breaker_state::closed;
    level_ = aside_.level;
    change c;
    if (set_aside) {
        c = go_open(trip_reason::probes_failed, open_duration(rules_.shared, level_, random), at);
    } else if (aside_.open) {
        auto left = std::max(time(0), aside_.until - at);
        if (TRINCO_MUTANT("local_opening_stands_still")) left = rules_.shared.open_for;
        c = go_open(aside_.reason, std::chrono::ceil<milliseconds>(left), at);
    } else {
        state_ = from;
        return go_closed(at, false);
    }
    c->from = from;
    return from == state_ ? std::nullopt : c;
}

local_breaker::change local_breaker::inherit(const view& fleet, std::uint32_t live, time now,
                                             double random) {
    const auto at = advance(now);
    if (fleet.state == breaker_state::closed) {
        const auto c = resume(false, now, random);
        if (state_ == breaker_state::closed && fleet.remaining.count() > 0) {
            until_ = std::max<time>(until_, at + fleet.remaining);
            ramp_from_ = std::min<time>(at, until_ - rules_.shared.recovery_ramp);
        }
        return c;
    }
    if (!suspended_ && !inherited_) aside_ = put_aside(at);
    suspended_ = false;
    inherited_ = true;
    inherited_live_ = std::max(1U, live);
    level_ = std::min(highest_level, fleet.backoff_level);
    const auto left = fleet.state == breaker_state::open ? fleet.remaining : milliseconds(0);
    const auto from = state_;
    auto c = go_open(trip_reason::fleet, left + share_of(rules_.shared.open_for / 2, random), at);
    return from == state_ ? std::nullopt : c;
}

void local_breaker::set_rules(const local_rules& rules) {
    if (rules.count_window != rules_.count_window) last_calls_ = count_window(rules.count_window);
    rules_ = rules;
}

}  // namespace trinco::detail
