// The options that govern: stamps, what an operator set, and what is beneath.
#include <algorithm>
#include <string>

#include "core/breaker/record_steps.hpp"

namespace trinco::detail::steps {

namespace {

// Greater than any the record has seen; odd for those that an operator set.
[[nodiscard]] std::uint64_t next_stamp(const fleet_record& r, store_time t, bool is_set) noexcept {
    const std::uint64_t floor = std::max(r.options_stamp, r.configured_stamp) + 1;
    const std::uint64_t stamp = std::max(static_cast<std::uint64_t>(t.count()), floor);
    return (stamp + 1) / 2 * 2 + (is_set ? 1 : 0);
}

[[nodiscard]] bool is_set_stamp(std::uint64_t stamp) noexcept {
    return stamp % 2 == 1;
}

void govern(fleet_record& r, std::string text, const policy& rules, std::uint64_t stamp) {
    if (rules.window != r.rules.window || rules.window_slices != r.rules.window_slices) {
        clear_windows(r);
    } else if (rules.sync_interval != r.rules.sync_interval) {
        r.recent.clear();
    }
    r.options = std::move(text);
    r.rules = rules;
    r.options_stamp = stamp;
}

// Options that a process was configured with, beneath what an operator set.
void configure(fleet_record& r, const std::string& text, const policy& rules, std::uint64_t stamp,
               store_time t) {
    r.configured_options = text;
    r.configured_stamp = stamp;
    if (r.set_until.count() == 0) {
        govern(r, text, rules, stamp);
        return;
    }
    // What was set goes on top of the new ones; where the two contradict each other, what governs
    // goes on as it is.
    const auto merged = parse_policy(r.set_options, rules);
    if (const auto* p = std::get_if<policy>(&merged)) {
        govern(r, to_text(*p), *p, next_stamp(r, t, true));
    }
}

// Governing options that the sender brings back to a record that has lost them.
void restore(fleet_record& r, const std::string& text, const policy& rules, std::uint64_t stamp,
             store_time t) {
    if (stamp == 0) stamp = next_stamp(r, t, false);
    if (is_set_stamp(stamp)) {
        r.set_options = text;
        r.set_until = t + default_set;
    } else {
        r.configured_options = text;
        r.configured_stamp = stamp;
        r.set_options.clear();
        r.set_until = store_time(0);
    }
    govern(r, text, rules, stamp);
}

// A text of the same stamp is taken by a record that has none. One that an operator has unset since
// is older than the record's stamp, and stays away.
void bring_back(fleet_record& r, const news& n, const policy& rules, store_time t, effects& out) {
    const bool lost = r.options.empty();
    if (!lost && n.mine.options_stamp == r.options_stamp) return;
    restore(r, n.options, rules, n.mine.options_stamp, t);
    if (!lost) bump(r, out);
}

[[nodiscard]] std::string_view next_pair(std::string_view& text) noexcept {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view pair = text.substr(begin, end - begin);
    text.remove_prefix(end);
    return pair;
}

[[nodiscard]] std::string_view key_of(std::string_view pair) noexcept {
    return pair.substr(0, pair.find('='));
}

[[nodiscard]] bool names(std::string_view pairs, std::string_view key) noexcept {
    for (auto p = next_pair(pairs); !p.empty(); p = next_pair(pairs)) {
        if (key_of(p) == key) return true;
    }
    return false;
}

// The pairs of both, those of `over` where a key is in both.
[[nodiscard]] std::string merged_pairs(std::string_view under, std::string_view over) {
    std::string all;
    for (auto p = next_pair(under); !p.empty(); p = next_pair(under)) {
        if (!names(over, key_of(p))) all.append(p).append(" ");
    }
    for (auto p = next_pair(over); !p.empty(); p = next_pair(over)) all.append(p).append(" ");
    if (!all.empty()) all.pop_back();
    return all;
}

}  // namespace

offered_options parse_offered(const fleet_record& r, const news& n) {
    if (n.options.empty()) return {};
    if (n.options.size() > max_options_text || n.own_stamp >= max_era) return {{}, true};
    if (n.options == r.options) return {r.rules, false};
    const auto parsed = parse_policy(n.options, policy{});
    if (const auto* p = std::get_if<policy>(&parsed)) return {*p, false};
    return {{}, true};
}

std::uint64_t accept_options(fleet_record& r, fleet_record::instance& i, const news& n,
                             const offered_options& offered, bool repeated, store_time t,
                             effects& out) {
    if (n.own_stamp != 0) {
        i.own_stamp = n.own_stamp;
        if (offered.rules && n.mine.options_stamp >= r.options_stamp) {
            bring_back(r, n, *offered.rules, t, out);
        }
    } else if (offered.rules && (!repeated || i.own_stamp == 0)) {
        if (n.options != r.configured_options) {
            const std::uint64_t before = r.options_stamp;
            configure(r, n.options, *offered.rules, next_stamp(r, t, false), t);
            if (r.options_stamp != before) bump(r, out);
        }
        i.own_stamp = r.configured_stamp;
    }
    if (r.configured_stamp == 0 && r.options_stamp != 0) return 0;
    return i.own_stamp != 0 ? i.own_stamp : r.configured_stamp;
}

std::optional<policy> parse_set(const fleet_record& r, std::string_view pairs) {
    if (pairs.empty() || pairs.size() > max_options_text) return std::nullopt;
    const std::string all = merged_pairs(r.set_options, pairs);
    if (all.size() > max_options_text) return std::nullopt;
    const auto parsed = parse_policy(all, r.rules);
    const auto* p = std::get_if<policy>(&parsed);
    return p != nullptr ? std::optional(*p) : std::nullopt;
}

void set_options(fleet_record& r, std::string_view pairs, const policy& rules, milliseconds expires,
                 store_time t, effects& out) {
    r.set_options = merged_pairs(r.set_options, pairs);
    r.set_until = t + (expires.count() != 0 ? store_time(expires) : store_time(default_set));
    govern(r, to_text(rules), rules, next_stamp(r, t, true));
    bump_by_operator(r, t, out);
}

void unset_options(fleet_record& r, store_time t, effects& out) {
    if (r.set_until.count() == 0) return;
    r.set_options.clear();
    r.set_until = store_time(0);
    // What is beneath may be unknown (set before any process came, or lost with an older record):
    // then nothing governs until the next process has told its own, which is asked for.
    const auto parsed = parse_policy(r.configured_options, policy{});
    const auto* p = std::get_if<policy>(&parsed);
    const std::uint64_t stamp = next_stamp(r, t, false);
    if (!r.configured_options.empty()) r.configured_stamp = stamp;
    govern(r, r.configured_options, p != nullptr ? *p : r.rules, stamp);
    bump_by_operator(r, t, out);
}

}  // namespace trinco::detail::steps
