#include "sim/simulated_consul.hpp"

#include <algorithm>
#include <utility>

#include "trinco/error.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;
using namespace detail::consul;
using verb_t = operation::verb_t;

namespace {

constexpr auto leader_looks_every = 500ms;
constexpr std::size_t most_operations = 128;
constexpr std::size_t most_bytes = 524'288;  // of a transaction
constexpr auto deaf_most = 60s;
constexpr std::chrono::seconds ttl_min{10};
constexpr std::chrono::seconds ttl_max{86'400};
constexpr std::chrono::milliseconds delay_max{60'000};

refused because(refusal_t why, const operation& what) {
    return {0, why, "failed on key \"" + what.key + "\""};
}

key_value without_value(key_value kv) {
    kv.value.clear();
    return kv;
}

// As JSON with values in base64, roughly.
std::size_t size_of(const txn_request& what) {
    constexpr std::size_t names = 100;
    std::size_t n = 0;
    for (const auto& one : what.operations) n += names + one.key.size() + one.value.size() * 4 / 3;
    return n;
}

// Whether the server would redirect from the path of that key, to one without such segments.
bool is_cleaned(std::string_view key) {
    while (!key.empty()) {
        const auto segment = key.substr(0, key.find('/'));
        if (segment.empty() || segment == "." || segment == "..") return true;
        key.remove_prefix(std::min(key.size(), segment.size() + 1));
    }
    return false;
}

}  // namespace

simulated_consul::simulated_consul(world& w, network& net, std::size_t servers)
    : world_(w), net_(net), delays_(servers) {
    for (std::size_t i = 0; i < servers; ++i) {
        nodes_.push_back(&w.add_node("consul" + std::to_string(i)));
    }
    look_at_sessions();
}

// As Consul does: a key that is held loses its LockIndex, and nothing is written when nothing would
// change but the index.
void simulated_consul::set(const operation& what, state& on, std::uint64_t at,
                           std::vector<key_value>& rows, bool keeps_lock_index) {
    auto& kv = on.keys[what.key];
    const bool is_new = kv.create_index == 0;
    const bool keeps = keeps_lock_index || kv.lock_index == 0;
    const bool same = !is_new && keeps && kv.value == what.value && kv.flags == what.flags;
    if (!keeps) kv.lock_index = 0;
    kv.key = what.key;
    kv.value = what.value;
    kv.flags = what.flags;
    if (is_new) kv.create_index = at;
    if (!same) kv.modify_index = at;
    rows.push_back(without_value(kv));
}

simulated_consul::refusal simulated_consul::lock(const operation& what, state& on, std::uint64_t at,
                                                 std::vector<key_value>& rows) {
    if (!on.sessions.contains(what.session)) return because(refusal_t::no_session, what);
    const auto there = on.keys.find(what.key);
    if (there != on.keys.end() && !there->second.session.empty() &&
        there->second.session != what.session) {
        return because(refusal_t::held, what);
    }
    set(what, on, at, rows, true);
    auto& kv = on.keys[what.key];
    if (kv.session != what.session) {
        kv.session = what.session;
        ++kv.lock_index;
        kv.modify_index = at;
    }
    rows.back() = without_value(kv);
    return std::nullopt;
}

simulated_consul::refusal simulated_consul::check(const operation& what, const state& on,
                                                  std::vector<key_value>& rows) const {
    const auto at = on.keys.find(what.key);
    const bool there = at != on.keys.end();
    switch (what.verb) {
        case verb_t::check_not_exists:
            return there ? refusal(because(refusal_t::index, what)) : std::nullopt;
        case verb_t::check_index:
            if (!there || at->second.modify_index != what.index) {
                return because(refusal_t::index, what);
            }
            break;
        case verb_t::check_session:
            if (!there || at->second.session != what.session) {
                return because(refusal_t::session, what);
            }
            break;
        default: {  // get
            if (!there) return because(refusal_t::absent, what);
            rows.push_back(at->second);
            return std::nullopt;
        }
    }
    rows.push_back(without_value(at->second));
    return std::nullopt;
}

simulated_consul::refusal simulated_consul::carry_out(const operation& what, state& on,
                                                      std::uint64_t at,
                                                      std::vector<key_value>& rows) {
    const auto there = on.keys.find(what.key);
    const auto index = there == on.keys.end() ? 0 : there->second.modify_index;
    switch (what.verb) {
        case verb_t::set: set(what, on, at, rows); return std::nullopt;
        case verb_t::cas:
            if (index != what.index) return because(refusal_t::index, what);
            set(what, on, at, rows);
            return std::nullopt;
        case verb_t::lock: return lock(what, on, at, rows);
        case verb_t::unlock:
            if (what.session.empty() || index == 0 || there->second.session != what.session) {
                return because(refusal_t::session, what);
            }
            set(what, on, at, rows, true);
            there->second.session.clear();
            there->second.modify_index = at;
            rows.back() = without_value(there->second);
            return std::nullopt;
        case verb_t::get_tree:
            for (auto kv = on.keys.lower_bound(what.key);
                 kv != on.keys.end() && kv->first.starts_with(what.key); ++kv) {
                rows.push_back(kv->second);
            }
            return std::nullopt;
        case verb_t::erase_cas:
            if (index != 0 && index != what.index) return because(refusal_t::index, what);
            [[fallthrough]];
        case verb_t::erase: on.keys.erase(what.key); return std::nullopt;
        default: return check(what, on, rows);
    }
}

simulated_consul::answer<txn_reply> simulated_consul::txn(const txn_request& what) {
    if (what.operations.empty()) return {errc::invalid, {}};
    // 413
    if (what.operations.size() > most_operations || size_of(what) > most_bytes) {
        return {errc::busy, {}};
    }
    answer<txn_reply> out;
    auto& refusals = out.value.refusals;
    for (std::size_t i = 0; i < what.operations.size(); ++i) {
        if (auto no = refused_before(what.operations[i])) {
            no->operation = i;
            refusals.push_back(std::move(*no));
        }
    }
    if (!refusals.empty()) return out;  // told alone
    auto next = state_;
    const auto at = state_.index + 1;
    for (std::size_t i = 0; i < what.operations.size(); ++i) {
        if (auto no = carry_out(what.operations[i], next, at, out.value.rows)) {
            no->operation = i;
            refusals.push_back(std::move(*no));
        }
    }
    const bool writes = !what.reads_only();
    ++(writes ? writes_ : reads_);
    if (writes) ++state_.index;  // of Raft, also where it is refused
    if (!refusals.empty()) {
        out.value.rows.clear();
        return out;
    }
    out.value.applied = true;
    std::erase_if(out.value.rows, [this](const auto& kv) { return !may_read(kv.key); });
    if (!writes) return out;
    next.index = state_.index;
    state_ = std::move(next);
    tell();
    return out;
}

// Rights and lock-delays are looked at before the transaction is begun.
simulated_consul::refusal simulated_consul::refused_before(const operation& what) const {
    switch (what.verb) {
        case verb_t::get:
        case verb_t::get_tree: return std::nullopt;
        case verb_t::check_index:
        case verb_t::check_session:
            if (!may_read(what.key)) return because(refusal_t::denied, what);
            return std::nullopt;
        default:
            if (forbidden_.write && what.key.starts_with(*forbidden_.write)) {
                return because(refusal_t::denied, what);
            }
    }
    if (what.verb != verb_t::lock || !delays(what.key)) return std::nullopt;
    return because(refusal_t::lock_delay, what);
}

simulated_consul::answer<read_reply> simulated_consul::read(const read_request& what) const {
    ++reads_;
    if (is_cleaned(what.key)) return {errc::invalid, {}};
    if (!what.under && !may_read(what.key)) return {errc::denied, {}};
    const auto& from = what.consistent ? state_ : told_by_leader();
    answer<read_reply> out;
    out.value.index = from.index;
    for (auto kv = from.keys.lower_bound(what.key);
         kv != from.keys.end() && kv->first.starts_with(what.key); ++kv) {
        const bool asked = what.under || kv->first == what.key;
        if (asked && may_read(kv->first)) out.value.rows.push_back(kv->second);
    }
    return out;
}

std::vector<std::string> simulated_consul::keys(const std::string& prefix) const {
    ++reads_;
    std::vector<std::string> out;
    const auto& all = told_by_leader().keys;
    for (auto kv = all.lower_bound(prefix); kv != all.end() && kv->first.starts_with(prefix);
         ++kv) {
        if (may_read(kv->first)) out.push_back(kv->first);
    }
    return out;
}

simulated_consul::answer<std::string> simulated_consul::create(const session_request& what) {
    if (forbidden_.sessions) return {errc::denied, {}};
    if (what.ttl < ttl_min || what.ttl > ttl_max) return {errc::invalid, {}};
    session s;
    // As long as those of Consul, and in their order.
    auto number = std::to_string(next_session_++);
    s.facts.id = "00000000-0000-0000-0000-" + std::string(12 - number.size(), '0') + number;
    s.facts.name = what.name;
    s.facts.node = "agent";
    s.facts.ttl = what.ttl;
    s.facts.lock_delay = what.lock_delay;
    s.facts.erases = what.erases;
    s.ends = world_.now() + world_.between(what.ttl, 2 * what.ttl);
    ++state_.index;
    ++writes_;
    const auto id = s.facts.id;
    state_.sessions.emplace(id, std::move(s));
    return {{}, id};
}

simulated_consul::answer<std::chrono::seconds> simulated_consul::renew(const std::string& id) {
    if (forbidden_.sessions) return {errc::denied, {}};
    if (world_.now() < deposed_until_) {
        const auto at = deposed_knows_.sessions.find(id);
        if (at == deposed_knows_.sessions.end()) return {errc::lost, {}};
        return {{}, at->second.facts.ttl};
    }
    const auto at = state_.sessions.find(id);
    if (at == state_.sessions.end()) return {errc::lost, {}};
    const auto ttl = at->second.facts.ttl;
    at->second.ends = world_.now() + world_.between(ttl, 2 * ttl);
    return {{}, ttl};
}

void simulated_consul::destroy(const std::string& id) {
    if (state_.sessions.contains(id)) end(id);
}

void simulated_consul::end(const std::string& id) {
    const auto facts = state_.sessions.at(id).facts;
    const auto at = ++state_.index;
    const auto delay = std::min(facts.lock_delay, delay_max);
    const auto until = world_.now() + delay;
    ++writes_;
    state_.sessions.erase(id);
    for (auto kv = state_.keys.begin(); kv != state_.keys.end();) {
        if (kv->second.session != id) {
            ++kv;
            continue;
        }
        for (auto& of_server : delays_) of_server[kv->first] = until;
        logged_delays_[kv->first] = delay;
        if (facts.erases) {
            kv = state_.keys.erase(kv);
            continue;
        }
        kv->second.session.clear();
        kv->second.modify_index = at;
        ++kv;
    }
    tell();
}

std::optional<session_facts> simulated_consul::facts(const std::string& id) const {
    const auto at = state_.sessions.find(id);
    if (at == state_.sessions.end()) return std::nullopt;
    return at->second.facts;
}

std::vector<session_facts> simulated_consul::sessions() const {
    std::vector<session_facts> out;
    for (const auto& [id, one] : state_.sessions) out.push_back(one.facts);
    return out;
}

void simulated_consul::lose_leader(boot_clock::duration how_long) {
    leader_again_ = world_.now() + how_long;
    world_.schedule(how_long, [this] { lead_anew(); });
}

void simulated_consul::depose_leader(boot_clock::duration unknown_for) {
    deposed_knows_ = state_;
    deposed_until_ = world_.now() + unknown_for;
    lead_anew();
}

void simulated_consul::lead_anew() {
    leader_ = (leader_ + 1) % nodes_.size();
    begin_sessions_anew();
}

void simulated_consul::begin_sessions_anew() {
    for (auto& [id, one] : state_.sessions) one.ends = world_.now() + 2 * one.facts.ttl;
}

void simulated_consul::restart_leader() {
    for (const auto& [key, delay] : logged_delays_) delays_[leader_][key] = world_.now() + delay;
    begin_sessions_anew();
}

void simulated_consul::deafen(boot_clock::duration how_long, double share) {
    for (auto* one : listeners_) {
        if (world_.chance(share)) one->deafen(world_.now() + how_long);
    }
}

void simulated_consul::restore_snapshot() {
    state_ = snapshot_;
    for (auto& one : delays_) one.clear();
    logged_delays_.clear();
    deafen(world_.between(0s, deaf_most), 0.5);
    lead_anew();
    for (auto* s : nodes_) net_.break_connections(*s);
    tell();
}

boot_clock::duration simulated_consul::left(const std::string& id) const {
    const auto at = state_.sessions.find(id);
    return at == state_.sessions.end() ? boot_clock::duration() : at->second.ends - world_.now();
}

bool simulated_consul::delays(const std::string& key) const {
    const auto& of_leader = delays_[leader_];
    const auto at = of_leader.find(key);
    return at != of_leader.end() && world_.now() < at->second;
}

void simulated_consul::tell() {
    const bool loses = losing_ > 0;
    if (loses) --losing_;
    // They only post, so that none comes or goes meanwhile.
    for (auto* one : listeners_) loses ? one->missed() : one->changed();
}

void simulated_consul::look_at_sessions() {
    if (has_leader()) {
        std::vector<std::string> over;
        for (const auto& [id, one] : state_.sessions) {
            if (one.ends <= world_.now()) over.push_back(id);
        }
        for (const auto& id : over) end(id);
    }
    world_.schedule(leader_looks_every, [this] { look_at_sessions(); });
}

}  // namespace trinco::sim
