#include "store/redis/script_protocol.hpp"

#include <algorithm>
#include <variant>

#include "core/breaker/policy.hpp"
#include "core/breaker/record.hpp"

namespace trinco::detail {
namespace {

using std::chrono::milliseconds;
using arguments = std::vector<std::string>;

constexpr store_time some_time = std::chrono::seconds(1);

[[nodiscard]] std::string text_of(std::uint64_t n) {
    return std::to_string(n);
}

[[nodiscard]] std::string text_of(milliseconds d) {
    return std::to_string(d.count());
}

void put(arguments& to, const counts& n) {
    for (const std::uint64_t x :
         {n.success, n.failure, n.slow_success, n.slow_failure, n.ignored, n.rejected}) {
        to.push_back(text_of(x));
    }
}

void put(arguments& to, const view& v) {
    to.push_back(text_of(v.era));
    to.push_back(text_of(v.rev));
    to.push_back(text_of(static_cast<std::uint64_t>(v.state)));
    to.push_back(text_of(v.remaining));
    to.push_back(text_of(std::uint64_t{v.backoff_level}));
    to.push_back(text_of(static_cast<std::uint64_t>(v.over)));
    to.push_back(text_of(v.over_remaining));
    to.push_back(text_of(v.options_stamp));
    to.push_back(v.reason);
}

// ---- what the record would refuse ---------------------------------------------------------------

[[nodiscard]] std::string record_key(std::string_view name_space, std::string_view breaker) {
    constexpr std::string_view begin = "trinco:1:";
    std::string key;
    key.reserve(begin.size() + name_space.size() + breaker.size() + 3);
    key.append(begin).append(name_space).append(":{").append(breaker).append("}");
    return key;
}

// An empty record refuses exactly what every record does.
[[nodiscard]] bool is_refused(const breaker_identity& who, const news& n) {
    fleet_record nothing;
    effects did;
    return bool(apply(nothing, who, n, some_time, did).error);
}

// A policy under which no value of another option contradicts any value of one.
[[nodiscard]] policy permissive() {
    policy p;
    p.window = std::chrono::hours(1);
    p.window_slices = 2;
    p.open_for = milliseconds(10);
    p.open_max = std::chrono::hours(24);
    p.live_for = std::chrono::seconds(1);
    p.key_ttl = std::chrono::hours(24 * 30);
    return p;
}

[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    while (true) {
        const auto begin = text.find_first_not_of(' ');
        if (begin == std::string_view::npos) return words;
        const auto end = std::min(text.find(' ', begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        text.remove_prefix(end);
    }
}

// One pair as to_text() writes it; empty when it is none, or its value is out of range.
[[nodiscard]] std::string canonical_pair(std::string_view pair) {
    const auto parsed = parse_policy(pair, permissive());
    const auto* const p = std::get_if<policy>(&parsed);
    if (p == nullptr) return {};
    const std::string all = to_text(*p);
    const auto key = pair.substr(0, pair.find('=') + 1);
    for (const std::string_view word : words_of(all)) {
        if (word.starts_with(key)) return std::string(word);
    }
    return {};
}

// Nothing when a pair is bad or comes twice, or there is none.
[[nodiscard]] std::optional<std::string> canonical_pairs(std::string_view text) {
    if (text.size() > max_options_text) return std::nullopt;
    std::string all;
    std::vector<std::string> keys;
    for (const std::string_view word : words_of(text)) {
        const std::string pair = canonical_pair(word);
        if (pair.empty()) return std::nullopt;
        const std::string key = pair.substr(0, pair.find('='));
        if (std::find(keys.begin(), keys.end(), key) != keys.end()) return std::nullopt;
        keys.push_back(key);
        if (!all.empty()) all += ' ';
        all += pair;
    }
    return all.empty() ? std::nullopt : std::optional(std::move(all));
}

[[nodiscard]] std::string_view name_of(control_verb v) noexcept {
    switch (v) {
        case control_verb::trip: return "trip";
        case control_verb::reset: return "reset";
        case control_verb::force_open: return "force_open";
        case control_verb::disable: return "disable";
        case control_verb::observe: return "observe";
        case control_verb::resume: return "resume";
        case control_verb::set: return "set";
        case control_verb::unset: return "unset";
        case control_verb::forget: return "forget";
    }
    return {};
}

[[nodiscard]] std::string_view name_of(probe_step s) noexcept {
    switch (s) {
        case probe_step::take: return "take";
        case probe_step::success: return "success";
        case probe_step::failure: return "failure";
        case probe_step::give_back: return "give_back";
    }
    return {};
}

}  // namespace

// ---- requests -----------------------------------------------------------------------------------

std::vector<std::string> breaker_keys(std::string_view name_space, std::string_view breaker) {
    const std::string key = record_key(name_space, breaker);
    return {key, key + ":voters", key + ":instances"};
}

std::string breaker_index_key(std::string_view name_space) {
    return "trinco:1:" + std::string(name_space) + ":index";
}

std::string breaker_channel(std::string_view name_space, unsigned database) {
    const std::string channel = "trinco:1:" + std::string(name_space) + ":changes";
    return database == 0 ? channel : channel + "@" + std::to_string(database);
}

std::optional<script_call> call_of(std::string_view name_space, const breaker_identity& who,
                                   const news& n, unsigned database) {
    if (is_refused(who, n)) return std::nullopt;
    script_call c{redis_script::exchange, breaker_keys(name_space, n.breaker), {}};
    arguments& a = c.arguments;
    a.reserve(24 + 7 * n.slices.size());
    a = {who.instance, who.voter, breaker_channel(name_space, database), n.breaker};
    put(a, n.mine);
    a.push_back(text_of(n.seq));
    a.push_back(text_of(n.own_stamp));
    const auto parsed = parse_policy(n.options, policy{});
    const auto* const p = std::get_if<policy>(&parsed);
    a.push_back(n.options.empty() || p == nullptr ? std::string() : to_text(*p));
    put(a, n.stale);
    a.push_back(text_of(std::uint64_t{n.slices.size()}));
    for (const slice& s : n.slices) {
        a.push_back(text_of(s.age));
        put(a, s.n);
    }
    return c;
}

script_call call_of(std::string_view name_space, const look_request& q) {
    // A strict call waits for this: no braces, which would copy each text.
    static const view nothing;
    const view& mine = is_acceptable(q.mine) ? q.mine : nothing;
    script_call c;
    c.script = redis_script::look;
    c.keys.push_back(record_key(name_space, q.breaker));
    c.arguments.reserve(3);
    for (const auto n : {mine.era, mine.rev, mine.options_stamp}) {
        c.arguments.push_back(text_of(n));
    }
    return c;
}

std::optional<script_call> call_of(std::string_view name_space, const breaker_identity& who,
                                   const probe_request& p, unsigned database) {
    if (p.token == 0) return std::nullopt;
    script_call c{redis_script::probe, breaker_keys(name_space, p.breaker), {}};
    c.arguments = {who.instance, who.voter, breaker_channel(name_space, database), p.breaker};
    put(c.arguments, is_acceptable(p.mine) ? p.mine : view{});
    c.arguments.emplace_back(name_of(p.step));
    c.arguments.push_back(text_of(p.token));
    c.arguments.push_back(text_of(p.lease));
    return c;
}

std::optional<script_call> call_of(std::string_view name_space, const control_request& c,
                                   unsigned database) {
    const bool is_set = c.verb == control_verb::set;
    const auto pairs = is_set ? canonical_pairs(c.options) : std::string();
    if (!pairs) return std::nullopt;
    // An empty record answers what the verb is attributed to as well.
    control_request plain = c;
    if (is_set) plain.verb = control_verb::trip;
    fleet_record nothing;
    effects did;
    std::error_code error;
    const view after = apply(nothing, plain, some_time, did, error);
    if (error) return std::nullopt;
    return script_call{redis_script::control,
                       breaker_keys(name_space, c.breaker),
                       {breaker_channel(name_space, database), c.breaker, text_of(c.id),
                        std::string(name_of(c.verb)), after.reason, text_of(c.expires), *pairs}};
}

script_call inspect_call(std::string_view name_space, std::string_view breaker) {
    return {redis_script::inspect, breaker_keys(name_space, breaker), {}};
}

script_call index_call(std::string_view name_space, std::string_view breaker, milliseconds lives) {
    return {redis_script::index,
            {breaker_index_key(name_space)},
            {std::string(breaker), text_of(lives)}};
}

}  // namespace trinco::detail
