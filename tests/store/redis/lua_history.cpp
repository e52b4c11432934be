#include "tests/store/redis/lua_history.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "core/breaker/record_steps.hpp"
#include "tests/core/record_lab.hpp"
#include "tests/store/redis/record_text.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
using trinco::detail::operator<<;

namespace {

constexpr int instances = 6;
constexpr const char* breaker = "payments";
// A life that no record has, put on its keys before each call to see whether the call renews it.
constexpr std::int64_t marked_life = 4'000'000'000;

// Two instances share a voter, twice.
breaker_identity identity(int instance) {
    return {"i" + std::to_string(instance), "v" + std::to_string(instance % 4)};
}

policy small_policy(std::uint32_t seed) {
    policy p = plain_policy();
    const auto pick = [&](std::initializer_list<int> from) {
        const auto n = static_cast<std::uint32_t>(from.size());
        const int got = from.begin()[seed % n];
        seed /= n;
        return got;
    };
    p.half_open_probes = static_cast<std::uint32_t>(pick({5, 1, 2, 4}));
    p.quorum = static_cast<std::uint32_t>(pick({2, 1, 3}));
    p.failure_rate = pick({50, 25, 7}) / 100.0;
    p.minimum_calls = static_cast<std::uint32_t>(pick({5, 1, 10}));
    p.window = milliseconds(pick({1'000, 3'000}));
    p.window_slices = static_cast<std::uint32_t>(pick({10, 3, 7}));
    p.failure_count = static_cast<std::uint32_t>(pick({0, 12}));
    p.slow_calls = pick({0, 1}) == 1;
    p.slow_call_rate = pick({100, 60}) / 100.0;
    p.probe_timeout = milliseconds(pick({1'000, 200}));
    p.recovery_ramp = milliseconds(pick({0, 700}));
    p.open_for = milliseconds(pick({300, 1'000}));
    p.open_backoff = pick({20, 15}) / 10.0;
    p.open_max = milliseconds(pick({2'000, 60'000}));
    p.jitter = pick({0, 1}) * 0.3;
    p.live_for = milliseconds(pick({3'000, 8'010}));
    p.sync_interval = milliseconds(pick({20, 100}));
    p.exchange_budget = static_cast<std::uint32_t>(pick({200, 3}));
    return p;
}

std::uint64_t spread(std::uint64_t n) {
    return n * 0x9e3779b97f4a7c15;  // tokens of 64 bits
}

}  // namespace

std::ostream& operator<<(std::ostream& s, const lua_step& x) {
    return s << "{" << int(x.what) << "," << int(x.who) << "," << x.a << "," << x.b << "}";
}

// ---- comparing ----------------------------------------------------------------------------------

lua_history::lua_history(loaded_scripts& scripts, std::uint32_t policy_seed)
    : scripts_(scripts),
      text_(to_text(small_policy(policy_seed))),
      keys_(breaker_keys("test", breaker)) {
    scripts_.server().call({"DEL", keys_[0], keys_[1], keys_[2]});
    for (int i = 0; i < instances; ++i) processes_[i].configured = text_;
}

template <class T>
void lua_history::compare(const char* what, const T& got, const T& wanted) {
    if (difference_ || got == wanted) return;
    std::ostringstream words;
    words << what << ": the scripts say " << got << ", the record says " << wanted;
    difference_ = words.str();
}

void lua_history::compare(const view& got, const view& wanted) {
    compare("era", got.era, wanted.era);
    compare("rev", got.rev, wanted.rev);
    compare("state", got.state, wanted.state);
    compare("remaining", got.remaining.count(), wanted.remaining.count());
    compare("backoff_level", int(got.backoff_level), int(wanted.backoff_level));
    compare("override", int(got.over), int(wanted.over));
    compare("what is left of it", got.over_remaining.count(), wanted.over_remaining.count());
    compare("reason", got.reason, wanted.reason);
    compare("options_stamp", got.options_stamp, wanted.options_stamp);
}

resp_reply lua_history::ask(const script_call& call) {
    test_connection& server = scripts_.server();
    for (const auto& key : keys_) server.send({"PEXPIRE", key, std::to_string(marked_life)});
    scripts_.send(call, now_);
    for (const auto& key : keys_) server.send({"PTTL", key});
    for (int k = 0; k < 3; ++k) (void)server.receive();
    resp_reply reply = server.receive();
    if (reply.is(resp_reply::kind_t::error) && !difference_) difference_ = reply.text;
    lives_.clear();
    for (int k = 0; k < 3; ++k) lives_.push_back(server.receive().integer);
    return reply;
}

// A call renews the life of all keys, or of none.
void lua_history::compare_life(bool is_refreshed) {
    compare("there is a record", lives_[0] != -2, record_.has_value());
    const bool has_no_end = std::count(lives_.begin(), lives_.end(), -1) != 0;
    compare("a key lives for ever", has_no_end, false);
    if (difference_ || !record_) return;
    compare("its life was renewed", lives_[0] <= marked_life - 100'000'000, is_refreshed);
    if (!is_refreshed) return;
    const std::int64_t wanted = time_to_live(*record_, now_).count();
    for (const std::int64_t life : lives_) {
        const std::int64_t passed = wanted - life;
        if (life != -2) compare("its life is right", passed >= 0 && passed < 5'000, true);
    }
}

void lua_history::compare_record() {
    const std::string got = scripts_.record(keys_, now_);
    compare("the record", got, record_ ? text_of(*record_) : std::string("absent"));
}

void lua_history::compare_report() {
    scripts_.send(inspect_call("test", breaker), now_);
    const auto got = report_from(scripts_.server().receive(), breaker);
    compare("the error of inspect", got.error, std::error_code());
    compare("there is a report", got.value.has_value(), record_.has_value());
    if (difference_ || !record_) return;
    const report wanted = report_of(*record_, breaker, now_);
    compare(got.value->now.fleet, wanted.now.fleet);
    compare("window", got.value->now.window, wanted.now.window);
    compare("totals", got.value->totals, wanted.totals);
    compare("live", got.value->now.live, wanted.now.live);
    compare("failing", got.value->now.voters_failing, wanted.now.voters_failing);
    compare("probes_left", got.value->now.probes_left, wanted.now.probes_left);
    compare("next_exchange", got.value->now.next_exchange.count(),
            wanted.now.next_exchange.count());
    compare("options", got.value->options, wanted.options);
    compare("options_set", got.value->options_set, wanted.options_set);
    compare("set_remaining", got.value->set_remaining.count(), wanted.set_remaining.count());
    compare("shares", got.value->shares.size(), wanted.shares.size());
    for (std::size_t k = 0; !difference_ && k < wanted.shares.size(); ++k) {
        const share& x = got.value->shares[k];
        const share& y = wanted.shares[k];
        compare("share", x.instance + " " + x.voter, y.instance + " " + y.voter);
        compare("its window", x.window, y.window);
        compare("heard", x.heard.count(), y.heard.count());
        compare("its stamp", x.options_stamp, y.options_stamp);
    }
}

void lua_history::learn(process& of, const view& v) const {
    if (v.newer_than(of.known)) of.known = v;
}

// ---- requests -----------------------------------------------------------------------------------

void lua_history::tell(int i, const news& n) {
    const auto call = call_of("test", identity(i), n);
    compare("the news may be sent", call.has_value(), true);
    if (!call) return;
    effects did;
    if (!record_) record_.emplace();
    const verdict wanted = apply(*record_, identity(i), n, now_, did);
    const auto got = verdict_from(ask(*call));
    compare("error", got.error, wanted.error);
    compare(got.value.fleet, wanted.fleet);
    compare("counted", got.value.counted, wanted.counted);
    compare("window", got.value.window, wanted.window);
    compare("live", got.value.live, wanted.live);
    compare("failing", got.value.voters_failing, wanted.voters_failing);
    compare("probes_left", got.value.probes_left, wanted.probes_left);
    compare("set_aside", got.value.set_aside, wanted.set_aside);
    compare("next_exchange", got.value.next_exchange.count(), wanted.next_exchange.count());
    compare("own_stamp", got.value.own_stamp, wanted.own_stamp);
    compare("options", got.value.options, wanted.options);
    compare("send_options", got.value.send_options, wanted.send_options);
    compare_life(true);
    process& p = processes_[i];
    learn(p, wanted.fleet);
    p.own_stamp = wanted.own_stamp;
    p.send_options = wanted.send_options;
    if (!wanted.options.empty()) {
        p.held = wanted.options;
        p.held_stamp = wanted.fleet.options_stamp;
    }
}

void lua_history::look(const lua_step& s) {
    const process& p = processes_[s.who % instances];
    look_request q;
    q.breaker = breaker;
    q.mine = p.known;
    q.mine.options_stamp = p.held_stamp;
    if (s.b % 8 == 0) q.mine.era += s.b % 3;
    if (s.b % 9 == 0) q.mine.rev += s.b % 2;
    const glance wanted = trinco::detail::look(record_.value_or(fleet_record{}), q, now_);
    const auto got = glance_from(ask(call_of("test", q)));
    compare("the error of look", got.error, std::error_code());
    compare(got.value.fleet, wanted.fleet);
    compare("exchange_first", got.value.exchange_first, wanted.exchange_first);
    compare_life(false);
}

void lua_history::tell(int i, const probe_request& p) {
    const auto call = call_of("test", identity(i), p);
    compare("the request may be sent", call.has_value(), true);
    if (!call) return;
    effects did;
    fleet_record r = record_.value_or(fleet_record{});
    const probe_reply wanted = apply(r, identity(i), p, now_, did);
    const bool is_refreshed = wanted.granted || did.changed;
    if (record_ || is_refreshed) record_ = std::move(r);
    const auto got = probe_reply_from(ask(*call));
    compare("error", got.error, std::error_code());
    compare(got.value.fleet, wanted.fleet);
    compare("granted", got.value.granted, wanted.granted);
    compare("retry_after", got.value.retry_after.count(), wanted.retry_after.count());
    compare("live", got.value.live, wanted.live);
    compare("set_aside", got.value.set_aside, wanted.set_aside);
    compare_life(is_refreshed);
    learn(processes_[i], wanted.fleet);
    const auto is_it = [&](const lease& l) { return l.token == p.token; };
    if (wanted.granted && p.step == probe_step::take &&
        std::none_of(leases_.begin(), leases_.end(), is_it)) {
        leases_.push_back({i, p.token});
    }
}

void lua_history::tell(const control_request& c) {
    effects did;
    std::error_code error;
    fleet_record r = record_.value_or(fleet_record{});
    const view wanted = apply(r, c, now_, did, error);
    const auto call = call_of("test", c);
    // What is bad in itself is not sent, so the database does not even learn what time it is.
    if (!call) return compare("the control is bad", bool(error), true);
    if (record_ || !error) record_ = std::move(r);
    const auto got = view_from(ask(*call));
    compare("error", got.error, error);
    compare(got.value, wanted);
    compare_life(!error);
}

// ---- steps --------------------------------------------------------------------------------------

std::optional<std::string> lua_history::take_steps(const std::vector<lua_step>& steps) {
    for (std::size_t k = 0; k < steps.size() && !difference_; ++k) {
        take_step(steps[k]);
        if (difference_) *difference_ += "\n(after step " + std::to_string(k) + ")";
    }
    if (!difference_) compare_record();
    if (!difference_) compare_report();
    return difference_;
}

void lua_history::take_step(const lua_step& s) {
    switch (s.what % 19) {
        case 0: now_ += store_time(s.a % 400 * 1'000 + s.b % 1'000); return;
        case 1: return pass_to_a_deadline(s);
        case 2: now_ += store_time(s.a % 6'000 * 1'000); return;
        case 3:
        case 4:
        case 5:
        case 6: return exchange(s);
        case 7:
        case 8: return take(s);
        case 9:
        case 10:
        case 11: return settle(s);
        case 12: return repeat(s);
        case 13: return control(s);
        case 14: return meddle(s);
        case 15: return restart(s);
        case 17: return look(s);
        case 16: return s.a % 4 == 0 ? compare_record() : exchange(s);
        default: return s.a % 8 == 0 ? compare_report() : exchange(s);
    }
}

// To a moment at which something runs out, or a microsecond before or after it.
void lua_history::pass_to_a_deadline(const lua_step& s) {
    if (!record_) return;
    const fleet_record& r = *record_;
    const policy& p = r.rules;
    std::vector<store_time> ends{r.until,
                                 r.over_until,
                                 r.set_until,
                                 r.suspect_since + 20ms,
                                 r.since + p.open_max,
                                 r.since + p.probe_timeout,
                                 r.since + 2 * p.probe_timeout,
                                 r.set_aside_at + p.probe_timeout,
                                 r.taken_over_at + p.probe_timeout,
                                 r.forgot_at + p.live_for,
                                 r.swept_at + p.live_for / 8};
    for (const auto& l : r.leases) {
        ends.push_back(l.deadline);
        ends.push_back(l.deadline + store_time(p.probe_timeout) / 10);
    }
    for (const auto& t : r.settled) ends.push_back(t.at + p.probe_timeout);
    for (const auto& v : r.voters) {
        const auto longest = std::max(p.probe_timeout, p.live_for);
        for (const store_time d : {store_time(p.live_for), store_time(2 * p.window)}) {
            ends.push_back(v.heard + d);
        }
        for (const store_time d : {store_time(p.probe_timeout), store_time(longest)}) {
            ends.push_back(v.asked + d);
        }
        ends.push_back(v.settled_at + 2 * p.probe_timeout);
    }
    std::erase_if(ends, [&](store_time t) { return t <= r.clock; });
    if (ends.empty()) return;
    std::sort(ends.begin(), ends.end());
    const store_time to = ends[s.a % std::min<std::size_t>(ends.size(), 8)];
    now_ = to - r.skew + store_time(s.b % 3) - store_time(1);
}

void lua_history::exchange(const lua_step& s) {
    const int i = s.who % instances;
    process& p = processes_[i];
    news n;
    n.breaker = breaker;
    n.mine = p.known;
    n.mine.options_stamp = p.held_stamp;
    n.own_stamp = p.own_stamp;
    if (p.own_stamp == 0) n.options = p.configured;
    if (p.own_stamp != 0 && p.send_options) n.options = p.held;
    n.seq = s.b % 8 == 0 ? 0 : ++p.seq;
    const std::uint64_t made = s.a % 9;
    slice first;
    first.n.failure = std::min<std::uint64_t>(made, s.a / 9 % 9);
    first.n.success = made - first.n.failure;
    first.n.slow_success = s.b % 3 == 0 ? first.n.success : first.n.success / 2;
    first.n.slow_failure = s.b % 4 == 0 ? first.n.failure : 0;
    first.n.ignored = s.a % 5;
    first.n.rejected = s.b % 3;
    first.age = milliseconds(s.b / 8 % 4 == 0 ? s.b % 4'000 : 0);
    n.slices.push_back(first);
    if (s.b % 5 == 0) n.slices.push_back({calls(1, 1), milliseconds(s.a % 300)});
    n.stale.failure = s.b % 7 == 0 ? 3 : 0;
    tell(i, n);
    said_.push_back({i, n, {}});
}

void lua_history::take(const lua_step& s) {
    const int i = s.who % instances;
    probe_request p;
    p.breaker = breaker;
    p.mine = processes_[i].known;
    p.token = spread(++token_);
    p.lease = milliseconds(s.a % 3 == 0 ? s.b % 1'500 : 0);
    tell(i, p);
    said_.push_back({i, std::nullopt, p});
}

void lua_history::settle(const lua_step& s) {
    if (leases_.empty()) return take(s);
    const std::size_t at = s.a % leases_.size();
    const lease l = leases_[at];
    leases_.erase(leases_.begin() + static_cast<std::ptrdiff_t>(at));
    probe_request p;
    p.breaker = breaker;
    p.mine = processes_[l.instance].known;
    p.token = l.token;
    p.step = s.b % 8 < 4   ? probe_step::success
             : s.b % 8 < 7 ? probe_step::failure
                           : probe_step::give_back;
    tell(l.instance, p);
    said_.push_back({l.instance, std::nullopt, p});
}

// Lost replies and duplicates: something said a little earlier is said again, unchanged.
void lua_history::repeat(const lua_step& s) {
    if (said_.empty()) return;
    const std::size_t back = std::min<std::size_t>(s.a % 6 + 1, said_.size());
    const said_before x = said_[said_.size() - back];
    if (x.batch) return tell(x.instance, *x.batch);
    tell(x.instance, x.probe);
}

void lua_history::control(const lua_step& s) {
    constexpr control_verb verbs[] = {
        control_verb::trip,       control_verb::reset,   control_verb::disable,
        control_verb::force_open, control_verb::observe, control_verb::resume,
        control_verb::resume,     control_verb::trip,    control_verb::set,
        control_verb::set,        control_verb::set,     control_verb::unset,
        control_verb::forget};
    constexpr const char* options[] = {"quorum=1",
                                       "failure_rate=0.75 minimum_calls=3",
                                       "window_ms=500",
                                       "window_ms=100 window_slices=10",
                                       "window_slices=55",
                                       "sync_interval_ms=400",
                                       "open_for_ms=1500 half_open_probes=3",
                                       "open_for_ms=90000",
                                       "key_ttl_ms=5000",
                                       "live_for_ms=5000 jitter=0.001",
                                       "failure_count=0 slow_calls=1",
                                       "quorum=0",
                                       "nonsense=1",
                                       "quorum=2 quorum=2",
                                       ""};
    control_request c;
    c.breaker = breaker;
    c.id = spread(s.b % 6 == 0 && control_ > 0 ? control_ : ++control_);
    c.verb = verbs[s.a % std::size(verbs)];
    c.expires = milliseconds(s.b % 5 == 0 ? 0 : 100 + s.b % 3'500);
    if (s.b % 3 != 0) c.who = "ann";
    if (s.b % 4 != 0) c.reason = "after the fix";
    if (c.verb == control_verb::set) c.options = options[s.b % std::size(options)];
    tell(c);
}

void lua_history::meddle(const lua_step& s) {
    switch (s.a % 6) {
        case 0: now_ -= store_time(s.b * 1'000); return;
        case 1: now_ -= store_time(s.b); return;
        case 2:
            scripts_.server().call({"FLUSHALL"});
            record_.reset();
            return;
        case 3:
        case 4: return keep_dump();
        default: return bring_dump_back();
    }
}

void lua_history::keep_dump() {
    dump_.emplace();
    dump_->record = record_;
    for (const auto& key : keys_) dump_->keys.push_back(scripts_.server().call({"DUMP", key}));
}

void lua_history::bring_dump_back() {
    if (!dump_) return;
    record_ = dump_->record;
    for (std::size_t k = 0; k < keys_.size(); ++k) {
        scripts_.server().call({"DEL", keys_[k]});
        if (dump_->keys[k].is(resp_reply::kind_t::nil)) continue;
        scripts_.server().call({"RESTORE", keys_[k], "3600000", dump_->keys[k].text});
    }
}

// A process that begins anew, with the same options or with others.
void lua_history::restart(const lua_step& s) {
    process& p = processes_[s.who % instances];
    const std::uint64_t seq = p.seq;
    p = {};
    p.seq = s.b % 4 == 0 ? 0 : seq;
    p.configured = s.b % 3 == 0 ? to_text(small_policy(s.a)) : text_;
}

}  // namespace trinco::detail::test
