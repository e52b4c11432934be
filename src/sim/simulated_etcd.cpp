#include "sim/simulated_etcd.hpp"

#include <algorithm>
#include <utility>

#include "trinco/error.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;
using namespace detail::etcd;

namespace {

constexpr auto leader_looks_every = 500ms;
constexpr auto election = 1s;
constexpr std::chrono::seconds least_ttl{2};

std::int64_t number_of(const key_value& kv, comparison::target_t target) {
    switch (target) {
        case comparison::target_t::version: return kv.version;
        case comparison::target_t::create_revision: return kv.create_revision;
        case comparison::target_t::mod_revision: return kv.mod_revision;
        default: return kv.lease;
    }
}

bool compares(std::int64_t number, const comparison& c) {
    switch (c.is) {
        case comparison::is_t::equal: return number == c.number;
        case comparison::is_t::greater: return number > c.number;
        case comparison::is_t::less: return number < c.number;
        default: return number != c.number;
    }
}

bool puts_something(const txn_request& what) {
    const auto puts = [](const operation& one) { return std::holds_alternative<put_request>(one); };
    return std::any_of(what.success.begin(), what.success.end(), puts) ||
           std::any_of(what.failure.begin(), what.failure.end(), puts);
}

bool covers(const key_range& range, const std::string& key) {
    if (range.end.empty()) return key == range.begin;
    return key >= range.begin && (range.end == std::string(1, '\0') || key < range.end);
}

}  // namespace

simulated_etcd::simulated_etcd(world& w, network& net, std::size_t members) : world_(w), net_(net) {
    for (std::size_t i = 0; i < members; ++i) {
        members_.push_back(&w.add_node("etcd" + std::to_string(i)));
    }
    look_at_leases();
}

std::pair<simulated_etcd::kv_iterator, simulated_etcd::kv_iterator> simulated_etcd::find(
    const key_range& keys) const {
    const auto first = state_.keys.lower_bound(keys.begin);
    if (!keys.end.empty()) {
        const bool all = keys.end == std::string(1, '\0');
        return {first, all ? state_.keys.end() : state_.keys.lower_bound(keys.end)};
    }
    const bool there = first != state_.keys.end() && first->first == keys.begin;
    return {first, there ? std::next(first) : first};
}

bool simulated_etcd::holds(const comparison& c) const {
    const auto [first, last] = find(c.keys);
    if (first == last) return compares(0, c);
    return std::all_of(
        first, last, [&](const auto& one) { return compares(number_of(one.second, c.target), c); });
}

operation_reply simulated_etcd::range(const range_request& what) {
    ++reads_;
    operation_reply out;
    const auto [first, last] = find(what.keys);
    for (auto at = first; at != last; ++at) {
        ++out.count;
        const auto created = at->second.create_revision;
        if (created < what.min_create_revision) continue;
        if (what.max_create_revision != 0 && created > what.max_create_revision) continue;
        out.kvs.push_back(at->second);
    }
    if (what.order != range_request::order_t::none && what.by != range_request::by_t::key) {
        const auto number = [&](const key_value& kv) {
            switch (what.by) {
                case range_request::by_t::version: return kv.version;
                case range_request::by_t::mod_revision: return kv.mod_revision;
                default: return kv.create_revision;
            }
        };
        std::stable_sort(out.kvs.begin(), out.kvs.end(),
                         [&](const auto& a, const auto& b) { return number(a) < number(b); });
    }
    if (what.order == range_request::order_t::descend) {
        std::reverse(out.kvs.begin(), out.kvs.end());
    }
    if (what.limit > 0 && out.kvs.size() > static_cast<std::size_t>(what.limit)) {
        out.kvs.resize(static_cast<std::size_t>(what.limit));
        out.more = true;
    }
    if (what.keys_only) {
        for (auto& kv : out.kvs) kv.value.clear();
    }
    if (what.count_only) out.kvs.clear();
    return out;
}

void simulated_etcd::put(const put_request& what, std::int64_t at) {
    auto& kv = state_.keys[what.key];
    if (kv.version == 0) kv.create_revision = at;
    if (kv.lease != 0) state_.leases[kv.lease].keys.erase(what.key);
    kv.key = what.key;
    kv.value = what.value;
    kv.mod_revision = at;
    ++kv.version;
    kv.lease = what.lease;
    if (kv.lease != 0) state_.leases[kv.lease].keys.insert(what.key);
    note({false, kv});
}

std::int64_t simulated_etcd::erase(const key_range& keys, std::int64_t at) {
    std::vector<std::string> gone;
    const auto [first, last] = find(keys);
    for (auto i = first; i != last; ++i) gone.push_back(i->first);
    for (const auto& key : gone) {
        const auto found = state_.keys.find(key);
        if (found->second.lease != 0) state_.leases[found->second.lease].keys.erase(key);
        state_.keys.erase(found);
        key_value was;
        was.key = key;
        was.mod_revision = at;
        note({true, was});
    }
    return static_cast<std::int64_t>(gone.size());
}

void simulated_etcd::note(watch_event event) {
    state_.revision = event.now.mod_revision;
    if (losing_ > 0) {
        --losing_;
        lost_events_.insert(event.now.mod_revision);
    }
    state_.history.push_back(std::move(event));
}

simulated_etcd::answer<txn_reply> simulated_etcd::txn(const txn_request& what) {
    if (space_ == space::enough || !puts_something(what)) return carry_out(what);
    if (std::exchange(space_, space::none) == space::filling) carry_out(what);
    answer<txn_reply> out{errc::unknown_outcome, {}};
    out.value.settled = true;
    return out;
}

simulated_etcd::answer<txn_reply> simulated_etcd::carry_out(const txn_request& what) {
    answer<txn_reply> out;
    out.value.succeeded = std::all_of(what.compare.begin(), what.compare.end(),
                                      [&](const comparison& c) { return holds(c); });
    const auto& todo = out.value.succeeded ? what.success : what.failure;
    for (const auto& one : todo) {
        const auto* p = std::get_if<put_request>(&one);
        if (p != nullptr && p->lease != 0 && !state_.leases.contains(p->lease)) {
            return {errc::lost, {}};
        }
    }
    const auto before = state_.revision;
    const auto at = before + 1;
    for (const auto& one : todo) {
        operation_reply reply;
        if (const auto* r = std::get_if<range_request>(&one)) {
            reply = range(*r);
        } else if (const auto* p = std::get_if<put_request>(&one)) {
            put(*p, at);
        } else {
            reply.erased = erase(std::get<erase_request>(one).keys, at);
        }
        out.value.replies.push_back(std::move(reply));
    }
    out.value.revision = state_.revision;
    if (state_.revision != before) {
        ++writes_;
        tell();
    }
    return out;
}

simulated_etcd::answer<lease_reply> simulated_etcd::grant(std::chrono::seconds ttl) {
    if (space_ == space::none) return {errc::busy, {}};
    const auto granted = std::max(ttl, least_ttl);
    const auto id = next_lease_++;
    state_.leases[id] = {granted, world_.now() + granted, {}};
    return {{}, {id, granted}};
}

void simulated_etcd::revoke(std::int64_t id) {
    const auto at = state_.leases.find(id);
    if (at == state_.leases.end()) return;
    const auto keys = at->second.keys;
    const auto revision = state_.revision + 1;
    for (const auto& key : keys) erase({key, {}}, revision);
    state_.leases.erase(id);
    tell();
}

simulated_etcd::answer<std::chrono::seconds> simulated_etcd::keep_alive(std::int64_t id) {
    const auto at = state_.leases.find(id);
    if (at == state_.leases.end()) return {errc::lost, {}};
    at->second.ends = world_.now() + at->second.ttl;
    return {{}, at->second.ttl};
}

lease_facts simulated_etcd::facts(std::int64_t id, bool with_keys) {
    const auto& known = world_.now() < deposed_until_ ? deposed_knows_ : state_.leases;
    const auto at = known.find(id);
    if (at == known.end()) return {std::chrono::seconds(-1), {}, {}};
    lease_facts out;
    const auto left = std::max<boot_clock::duration>(at->second.ends - world_.now(), 0s);
    out.ttl = std::chrono::duration_cast<std::chrono::seconds>(left);
    out.granted_ttl = at->second.ttl;
    if (with_keys) out.keys.assign(at->second.keys.begin(), at->second.keys.end());
    return out;
}

std::optional<watch_news> simulated_etcd::news(const watch_request& what, std::int64_t next) {
    if (next <= state_.compacted) return std::nullopt;
    watch_news out;
    out.revision = state_.revision;
    auto event = std::lower_bound(
        state_.history.begin(), state_.history.end(), next,
        [](const watch_event& one, std::int64_t at) { return one.now.mod_revision < at; });
    for (; event != state_.history.end(); ++event) {
        if (!covers(what.keys, event->now.key)) continue;
        if (event->erased ? !what.erasures : !what.puts) continue;
        if (!lost_events_.contains(event->now.mod_revision)) out.events.push_back(*event);
    }
    return out;
}

void simulated_etcd::compact() {
    state_.compacted = state_.revision;
    state_.history.clear();
}

void simulated_etcd::lose_leader(boot_clock::duration how_long) {
    leader_again_ = world_.now() + how_long;
    world_.schedule(how_long, [this] { renew_all(); });
}

void simulated_etcd::depose_leader(boot_clock::duration unknown_for) {
    deposed_knows_ = state_.leases;
    deposed_until_ = world_.now() + unknown_for;
    renew_all();
}

boot_clock::duration simulated_etcd::left(std::int64_t id) const {
    const auto at = state_.leases.find(id);
    return at == state_.leases.end() ? boot_clock::duration() : at->second.ends - world_.now();
}

void simulated_etcd::renew_all() {
    for (auto& [id, one] : state_.leases) one.ends = world_.now() + one.ttl + election;
}

void simulated_etcd::restore_snapshot() {
    state_ = snapshot_;
    lost_events_.clear();
    renew_all();
    for (auto* m : members_) net_.break_connections(*m);
}

std::vector<std::int64_t> simulated_etcd::leases() const {
    std::vector<std::int64_t> out;
    for (const auto& one : state_.leases) out.push_back(one.first);
    return out;
}

void simulated_etcd::tell() {
    // They only post, so that none comes or goes meanwhile.
    for (auto* one : listeners_) one->changed();
}

void simulated_etcd::look_at_leases() {
    if (has_leader()) {
        std::vector<std::int64_t> over;
        for (const auto& [id, one] : state_.leases) {
            if (one.ends <= world_.now()) over.push_back(id);
        }
        for (const auto id : over) revoke(id);
    }
    world_.schedule(leader_looks_every, [this] { look_at_leases(); });
}

}  // namespace trinco::sim
