#include "apps/trinco/call/call_breaker.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>
#include <variant>

#include "apps/trinco/stores/hurried_ask.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/breaker/policy.hpp"
#include "store/identity.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using trinco::detail::boot_clock;
using trinco::detail::decision;
using trinco::detail::news;
using trinco::detail::probe_reply;
using trinco::detail::probe_request;
using trinco::detail::probe_step;
using trinco::detail::verdict;
using trinco::detail::view;

// Calls of one machine that end in the same moment rarely meet under one of so many names.
constexpr long shared_names = 16;
// The record asks for 20 ms before a cold window may open it; the rest is for a busy machine.
constexpr milliseconds second_look{25};
constexpr milliseconds shortest_retry{10};
// The view may have changed while a probe was asked for, and again.
constexpr int most_decisions = 4;
constexpr double first_ramp_share = 0.1;

std::uint64_t random_bits() {
    std::uint64_t n = 0;
    // Never fails for so few bytes once the machine has begun; should it, the clock is as good.
    if (::getentropy(&n, sizeof n) != 0) {
        n = static_cast<std::uint64_t>(boot_clock::now().time_since_epoch().count());
    }
    return n | 1U;
}

std::uint64_t next_number() {
    const auto since = boot_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

milliseconds left(milliseconds at_first, boot_clock::duration passed) {
    return std::max(milliseconds(0), at_first - std::chrono::floor<milliseconds>(passed));
}

counts one(outcome what, bool is_slow) {
    counts n;
    switch (what) {
        case outcome::success:
            n.success = 1;
            n.slow_success = is_slow ? 1 : 0;
            break;
        case outcome::failure:
            n.failure = 1;
            n.slow_failure = is_slow ? 1 : 0;
            break;
        case outcome::ignored: n.ignored = 1; break;
    }
    return n;
}

probe_step step_of(outcome what) {
    switch (what) {
        case outcome::success: return probe_step::success;
        case outcome::failure: return probe_step::failure;
        case outcome::ignored: break;
    }
    return probe_step::give_back;
}

// A store that could not, say because the disk is full, will not within a moment.
bool is_worth_repeating(const std::error_code& error) {
    return kind_of(error) == error_kind::unknown;
}

// One answer from the store about the one breaker that was asked for.
std::error_code error_of(const answer<std::vector<verdict>>& a) {
    if (a.error) return a.error;
    return a.value.empty() ? make_error_code(errc::unavailable) : a.value.front().error;
}

admission refused(refused_by by, refusal_reason reason, milliseconds retry_after) {
    return {admission::kind_t::refused, {by, reason, std::max(retry_after, shortest_retry)}, {}};
}

}  // namespace

std::string call_instance_name() {
    const std::string own = detail::make_instance_name();
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string boot(std::istreambuf_iterator<char>(file), {});
    boot.resize(std::min<std::size_t>(boot.size(), 8));
    return own.substr(0, own.find(':')) + ":call:" + boot + ":" +
           std::to_string(::getpid() % shared_names);
}

detail::fleet_side fleet_side_of(const view& fleet) noexcept {
    detail::fleet_side side;
    side.known = true;
    side.state = fleet.state;
    side.probing_due = fleet.remaining.count() == 0;
    side.ramping = fleet.state == detail::breaker_state::closed && fleet.remaining.count() > 0;
    side.over = fleet.over;
    return side;
}

double ramp_share(const view& fleet, milliseconds recovery_ramp) noexcept {
    if (recovery_ramp.count() <= 0) return 1;
    const double to_come =
        static_cast<double>(fleet.remaining.count()) / static_cast<double>(recovery_ramp.count());
    return 1 - (1 - first_ramp_share) * std::min(1.0, to_come);
}

call_breaker::call_breaker(const store& at, std::string name, const breaker_options& options,
                           bool configured)
    : at_(at),
      name_(std::move(name)),
      options_(options),
      configured_(configured),
      limit_(options.store_timeout) {}

call_breaker::~call_breaker() {
    if (kind_ == admission::kind_t::probe && !settled_) {
        static_cast<void>(settle_probe(outcome::ignored));
    }
}

// ---- asking ------------------------------------------------------------------------------------

admission call_breaker::ask(std::optional<milliseconds> longest) {
    if (const auto error = read()) return {admission::kind_t::unanswered, {}, error};
    const admission answer = decide_call(longest);
    kind_ = answer.kind;
    return answer;
}

template <class T, class Request>
answer<T> call_breaker::question(Request request) const {
    if (!is_hurried_) return ask_breakers<T>(at_, limit_, std::move(request));
    return ask_breakers_hurried<T>(at_, limit_, milliseconds(0), std::move(request));
}

std::error_code call_breaker::read() {
    rules_ = detail::policy_of(options_);
    heard_ = boot_clock::now();
    const detail::look_request wanted{name_, told_};
    const auto seen = question<detail::glance>([&](detail::breaker_store& at, auto by, auto done) {
        return at.look(wanted, by, std::move(done));
    });
    if (seen.error) return seen.error;
    if (told_.newer_than(seen.value.fleet)) return bring_back(seen.value.fleet);
    fleet_ = seen.value.fleet;
    return {};
}

// The store has lost what it had told: it learns it again before anything is decided by it.
std::error_code call_breaker::bring_back(const view& now) {
    const told_options governed = told_options_ ? told_options_() : told_options{};
    news n = again(name_, believed(told_, now), governed);
    fleet_ = n.mine;
    governing_ = n.options;
    governing_stamp_ = n.mine.options_stamp;
    const auto parsed = detail::parse_policy(governing_, rules_);
    if (const auto* p = std::get_if<detail::policy>(&parsed)) rules_ = *p;
    if (governing_.empty()) n.options = own_options();
    verdict v;
    return exchange(n, v);
}

// The text of what governs, where there is one that is not known. Stamps nothing.
std::error_code call_breaker::learn_options() {
    if (!governing_.empty() || fleet_.options_stamp == 0) return {};
    news n;
    n.breaker = name_;
    verdict v;
    return exchange(n, v);
}

admission call_breaker::decide_call(std::optional<milliseconds> longest) {
    for (int i = 0; i < most_decisions; ++i) {
        switch (detail::decide(fleet_side_of(fleet_), {})) {
            case decision::ramp: {
                if (const auto error = learn_options()) {
                    return {admission::kind_t::unanswered, {}, error};
                }
                const double drawn = static_cast<double>(random_bits() >> 11U) * 0x1p-53;
                if (drawn >= ramp_share(fleet_, rules_.recovery_ramp)) {
                    return refused(refused_by::ramp, refusal_reason::recovering, shortest_retry);
                }
                [[fallthrough]];
            }
            case decision::admit: return {admission::kind_t::counted, {}, {}};
            case decision::admit_uncounted: return {admission::kind_t::uncounted, {}, {}};
            case decision::refuse_fleet:
                if (fleet_.over == override_kind::forced_open) {
                    return refused(refused_by::operator_override, refusal_reason::forced_open,
                                   fleet_.over_remaining);
                }
                return refused(refused_by::fleet_breaker, refusal_reason::open, fleet_.remaining);
            case decision::ask_fleet:
                if (auto answer = take_probe(longest)) return *answer;
                break;
            case decision::ask_local:
            case decision::offer_probe:
            case decision::refuse_local: break;  // there is no local breaker, open or recovered
        }
    }
    return refused(refused_by::fleet_breaker, refusal_reason::no_probe_left, shortest_retry);
}

// Nothing: the view has changed, and what to do is to be decided anew.
std::optional<admission> call_breaker::take_probe(std::optional<milliseconds> longest) {
    // Before options are known no record grants a probe.
    if (configured_ || governing_.empty()) {
        auto error = learn_options();
        note_options();
        if (!error) error = tell_options();
        if (error) {
            return admission{admission::kind_t::unanswered, {}, error};
        }
    }
    probe_request request;
    request.breaker = name_;
    request.mine = fleet_;
    request.step = probe_step::take;
    request.token = random_bits();
    request.lease = longest.value_or(milliseconds(0));
    const auto began = boot_clock::now();
    const auto reply = question<probe_reply>([&](detail::breaker_store& at, auto by, auto done) {
        return at.probe(request, by, std::move(done));
    });
    if (reply.error) {
        // It may have been granted. Nobody will settle it, so it is given back as far as we can.
        token_ = request.token;
        static_cast<void>(settle_probe(outcome::ignored));
        return admission{admission::kind_t::unanswered, {}, reply.error};
    }
    fleet_ = reply.value.fleet;
    heard_ = began;
    if (reply.value.granted) {
        token_ = request.token;
        const bool is_shorter = longest && *longest < rules_.probe_timeout;
        lease_end_ = began + (is_shorter ? *longest : rules_.probe_timeout);
        return admission{admission::kind_t::probe, {}, {}};
    }
    if (detail::decide(fleet_side_of(fleet_), {}) != decision::ask_fleet) {
        return std::nullopt;
    }
    if (fleet_.over == override_kind::observing) {
        return admission{admission::kind_t::uncounted, {}, {}};
    }
    return refused(refused_by::fleet_breaker, refusal_reason::no_probe_left,
                   reply.value.retry_after);
}

// ---- settling ----------------------------------------------------------------------------------

void call_breaker::remember(const view& fleet, std::function<told_options()> options) {
    told_ = fleet;
    told_options_ = std::move(options);
}

void call_breaker::be_brief(milliseconds limit) noexcept {
    limit_ = limit;
    is_hurried_ = true;
    attempts_ = 1;
}

// What governs, before our own may replace it.
void call_breaker::note_options() {
    if (configured_ && before_.empty()) before_ = governing_;
}

std::string call_breaker::replaced_options() const {
    const bool is_replaced = !before_.empty() && before_ != governing_ &&
                             governing_ == to_text(detail::policy_of(options_));
    return is_replaced ? before_ : std::string();
}

view call_breaker::fleet_now() const {
    view now = fleet_;
    const auto passed = boot_clock::now() - heard_;
    now.remaining = left(fleet_.remaining, passed);
    now.over_remaining = left(fleet_.over_remaining, passed);
    return now;
}

std::error_code call_breaker::settle(outcome what, milliseconds took) {
    if (std::exchange(settled_, true)) return {};
    const bool is_slow = options_.slow_call_after.count() != 0 && took >= options_.slow_call_after;
    switch (kind_) {
        case admission::kind_t::counted: return book(one(what, is_slow), false);
        case admission::kind_t::probe: {
            if (const auto error = settle_probe(what)) return error;
            // The record counts a probe by its settlement; this is for the totals.
            return book(one(what, is_slow), true);
        }
        case admission::kind_t::uncounted:
        case admission::kind_t::refused: {
            counts n;
            n.rejected = 1;
            return book(n, false);
        }
        case admission::kind_t::unanswered: break;
    }
    return {};
}

std::error_code call_breaker::settle_probe(outcome what) {
    probe_request request;
    request.breaker = name_;
    request.step = step_of(what);
    request.token = token_;
    const auto end = boot_clock::now() + attempts_ * limit_;
    bool in_doubt = false;
    while (true) {
        const auto now = boot_clock::now();
        request.mine = fleet_now();
        const auto reply =
            question<probe_reply>([&](detail::breaker_store& at, auto by, auto done) {
                return at.probe(request, by, std::move(done));
            });
        if (!reply.error) {
            fleet_ = reply.value.fleet;
            heard_ = now;
            late_ = what == outcome::success && now > lease_end_;
            return {};
        }
        if (!is_worth_repeating(reply.error) || boot_clock::now() >= end) {
            return after_attempts(in_doubt, reply.error);
        }
        in_doubt = true;
    }
}

std::error_code call_breaker::tell_options() {
    news n;
    n.breaker = name_;
    n.options = own_options();
    verdict v;
    return exchange(n, v);
}

std::error_code call_breaker::book(const counts& what, bool is_stale) {
    if (configured_) {
        if (const auto error = learn_options()) return error;
        note_options();
    }
    news n;
    n.breaker = name_;
    n.options = own_options();
    if (is_stale) {
        n.stale = what;
    } else {
        n.slices.push_back({what, milliseconds(0)});
    }
    const detail::era_t era = fleet_.era;
    const auto began = boot_clock::now();
    const auto end = began + attempts_ * limit_;
    verdict v;
    bool may_be_counted = false;  // an answer was lost: another number could count it twice
    n.seq = next_number();
    while (true) {
        const auto error = exchange(n, v);
        if (!error && (v.counted || may_be_counted)) break;
        const bool is_late = boot_clock::now() >= end;
        if (error) {
            if (is_late || !is_worth_repeating(error)) {
                return after_attempts(may_be_counted, error);
            }
            may_be_counted = true;  // sent again as it is
            continue;
        }
        if (is_late) return make_error_code(errc::unavailable);
        // Overtaken by a later number of the same name.
        n.seq = next_number();
        if (fleet_.era != era) {
            n.stale = what;
            n.slices.clear();
        } else if (!n.slices.empty()) {
            n.slices.front().age = std::chrono::floor<milliseconds>(boot_clock::now() - began);
        }
    }
    if (knows_nobodys_) {
        if (const auto error = tell_options()) return error;
    }
    if (v.fleet.era == era && is_crossed(v)) {
        std::this_thread::sleep_for(second_look);
        return tell_options();
    }
    return {};
}

std::error_code call_breaker::exchange(const news& what, verdict& v) {
    const auto now = boot_clock::now();
    news n = what;
    n.mine = fleet_now();
    // The stamp of a text that is not held would keep the store from telling it.
    n.mine.options_stamp = governing_stamp_;
    auto reply = question<std::vector<verdict>>([&](detail::breaker_store& at, auto by, auto done) {
        return at.exchange({&n, 1}, by, std::move(done));
    });
    if (const auto error = error_of(reply)) return error;
    v = std::move(reply.value.front());
    learn(v);
    heard_ = now;
    return {};
}

void call_breaker::learn(const verdict& v) {
    fleet_ = v.fleet;
    window_ = v.window;
    // A record that was lost knows none at all: whoever was told them brings them back.
    knows_nobodys_ = v.own_stamp == 0 && v.fleet.options_stamp != 0;
    if (v.options.empty()) return;
    governing_ = v.options;
    governing_stamp_ = v.fleet.options_stamp;
    const auto parsed = detail::parse_policy(governing_, rules_);
    if (const auto* p = std::get_if<detail::policy>(&parsed)) rules_ = *p;
}

// The record saw a threshold crossed and waits for what others may have to say.
bool call_breaker::is_crossed(const verdict& v) const {
    const bool is_frozen =
        v.fleet.over == override_kind::forced_open || v.fleet.over == override_kind::disabled;
    return v.fleet.state == breaker_state::closed && !is_frozen &&
           v.voters_failing >= std::min(rules_.quorum, v.live) &&
           detail::judge(v.window, rules_) != detail::trip_reason::none;
}

std::string call_breaker::own_options() const {
    const bool is_known = !governing_.empty() || fleet_.options_stamp != 0;
    if (!configured_ && !knows_nobodys_ && is_known) return {};
    return to_text(detail::policy_of(options_));
}

}  // namespace trinco::program
