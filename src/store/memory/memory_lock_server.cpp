#include "store/memory/memory_lock_server.hpp"

#include <algorithm>
#include <charconv>

#include "core/mutant.hpp"
#include "core/names.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t max_info = 4'096;
constexpr std::size_t max_permits = 1'000'000;

std::chrono::milliseconds ms(boot_clock::duration d) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(d);
}

}  // namespace

memory_lock_server::memory_lock_server(now_function now)
    : memory_lock_server(std::move(now), limits{}) {}

memory_lock_server::memory_lock_server(now_function now, const limits& bounds)
    : now_(std::move(now)), bounds_(bounds) {}

const lock_traits& memory_lock_server::traits() noexcept {
    static const lock_traits all{
        .fifo = true, .shared = true, .permits = true, .values = true, .guarded_writes = true};
    return all;
}

lock_answer<lease> memory_lock_server::open(std::chrono::seconds ttl, std::string_view label) {
    const std::lock_guard hold(mutex_);
    const auto now = sweep_locked();
    if (ttl < traits().ttl_min || ttl > traits().ttl_max || label.size() > max_info) {
        return {errc::invalid};
    }
    if (leases_.size() >= bounds_.leases) return {errc::busy};
    auto id = std::to_string(next_lease_++);
    lease_record fresh;
    fresh.label = label;
    fresh.ttl = ttl;
    fresh.ends = now + ttl;
    leases_by_end_.emplace(fresh.ends, id);
    leases_.emplace(id, std::move(fresh));
    return {{}, {std::move(id), ttl}};
}

lock_answer<std::chrono::seconds> memory_lock_server::renew(std::string_view lease) {
    const std::lock_guard hold(mutex_);
    const auto now = sweep_locked();
    const auto at = leases_.find(lease);
    if (at == leases_.end()) return {errc::lost};
    leases_by_end_.erase({at->second.ends, at->first});
    at->second.ends = now + at->second.ttl;
    leases_by_end_.emplace(at->second.ends, at->first);
    return {{}, at->second.ttl};
}

ended_claims memory_lock_server::revoke(std::string_view lease) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto at = leases_.find(lease);
    if (at == leases_.end()) return 0;
    const auto claims = at->second.claims.size();
    end_lease(at);
    return claims;
}

lock_answer<std::vector<claim_id>> memory_lock_server::owned(std::string_view lease) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto at = leases_.find(lease);
    if (at == leases_.end()) return {errc::lost};
    lock_answer<std::vector<claim_id>> out;
    out.value.reserve(at->second.claims.size());
    for (const auto& one : at->second.claims) out.value.push_back(one.first);
    return out;
}

std::error_code memory_lock_server::check(const claim& what, const lease_record& on) const {
    const auto& t = traits();
    if (what.parts.empty() || what.parts.size() > t.parts_max || what.info.size() > max_info) {
        return errc::invalid;
    }
    const part* before = nullptr;
    for (const auto& p : what.parts) {
        const bool counts = p.kind == claim_kind::permit;
        const bool sound = counts ? p.n >= 1 && p.n <= max_permits : p.n == 0;
        if (!sound || check_lock_name(p.name) || (before && before->name >= p.name)) {
            return errc::invalid;
        }
        before = &p;
    }
    if (claims_ >= bounds_.claims && !on.claims.contains(what.id)) return errc::busy;
    for (const auto& p : what.parts) {
        const auto q = queues_.find(p.name);
        if (p.kind != claim_kind::permit || q == queues_.end()) continue;
        for (const auto& one : q->second.slots) {
            const auto& other = one.second.who->parts[one.second.part];
            if (limits_differ(other.asks, {p.kind, p.n})) return errc::limit_mismatch;
            // The permits of one queue agree, so the first one speaks for all.
            if (other.asks.kind == claim_kind::permit) break;
        }
    }
    return {};
}

bool memory_lock_server::fits_only_if_free(const claim& what) const {
    return std::all_of(what.parts.begin(), what.parts.end(), [&](const part& p) {
        const auto q = queues_.find(p.name);
        if (q == queues_.end()) return true;
        turn_rule rule;
        for (const auto& one : q->second.slots) {
            rule.pass(one.second.who->parts[one.second.part].asks);
            if (rule.closed()) return false;
        }
        return rule.has_turn({p.kind, p.n});
    });
}

lock_answer<place> memory_lock_server::enter(const claim& what) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto on = leases_.find(what.lease);
    if (on == leases_.end()) return {errc::lost};
    if (const auto* known = find(what.lease, what.id)) return {{}, place_of(*known)};
    if (const auto bad = check(what, on->second)) return {bad};
    if (what.only_if_free && !fits_only_if_free(what)) return {errc::conflict};
    insert(what, on->second);
    const auto& made = *find(what.lease, what.id);
    auto at = place_of(made);
    if (made.missing == 0) at.granted = grant_of(made);
    return {{}, std::move(at)};
}

void memory_lock_server::insert(const claim& what, lease_record& on) {
    auto made = std::make_unique<claim_record>();
    auto& c = *made;
    c.who = {what.lease, what.id};
    c.revision = ++revision_;
    c.info = what.info;
    c.since = now_();
    c.missing = what.parts.size();
    for (std::size_t i = 0; i < what.parts.size(); ++i) {
        const auto& p = what.parts[i];
        auto& q = queues_[p.name];
        q.name = p.name;
        q.slots.emplace(c.revision, slot{&c, i});
        c.parts.push_back({{p.kind, p.n}, &q});
    }
    on.claims.emplace(what.id, std::move(made));
    ++claims_;
    touched queues;
    for (auto& m : c.parts) queues.insert(m.in);
    settle(queues);
}

memory_lock_server::claim_record* memory_lock_server::find(std::string_view lease, claim_id id) {
    const auto on = leases_.find(lease);
    if (on == leases_.end()) return nullptr;
    const auto at = on->second.claims.find(id);
    return at == on->second.claims.end() ? nullptr : at->second.get();
}

void memory_lock_server::advance(queue& q, touched& granted) {
    turn_rule rule;
    for (auto& [revision, s] : q.slots) {
        auto& m = s.who->parts[s.part];
        if (!m.has_turn && rule.has_turn(m.asks)) {
            m.has_turn = true;
            if (--s.who->missing == 0) give(*s.who, granted);
        }
        rule.pass(m.asks);
        if (rule.closed()) break;
    }
}

void memory_lock_server::give(claim_record& c, touched& granted) {
    // A token of its own for each grant: a waiter that is granted by another's release must stand
    // above whatever was granted since it entered.
    if (!TRINCO_MUTANT("lock_token_reused")) ++revision_;
    c.granted = now_();
    for (auto& m : c.parts) {
        if (m.asks.kind == claim_kind::exclusive) m.token = revision_;
        granted.insert(m.in);
    }
    c.parts.front().in->movers.erase(c.revision);
    const auto waiters = std::exchange(c.waiters, {});
    for (const auto& [id, w] : waiters) {
        ++wakeups_;
        listeners_.erase(id);
        w.granted({}, grant_of(c));
    }
}

void memory_lock_server::detach(claim_record& c, touched& queues) {
    for (auto& m : c.parts) {
        m.in->slots.erase(c.revision);
        m.in->movers.erase(c.revision);
        queues.insert(m.in);
    }
    --claims_;
}

void memory_lock_server::tell_lost(claim_record& c) {
    for (const auto& [id, w] : c.waiters) {
        ++wakeups_;
        listeners_.erase(id);
        w.granted(errc::lost, {});
    }
    for (const auto& [id, gone] : c.watchers) {
        listeners_.erase(id);
        gone(errc::lost);
    }
}

void memory_lock_server::settle(touched& queues) {
    touched granted;  // a claim's last turn concerns its other queues too
    for (auto* q : queues) advance(*q, granted);
    queues.merge(granted);
    for (auto* q : queues) {
        tell_places(*q);
        tell_holder(*q);
        if (q->slots.empty() && q->observers.empty()) queues_.erase(queues_.find(q->name));
    }
}

void memory_lock_server::leave(std::string_view lease, claim_id id) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto on = leases_.find(lease);
    if (on == leases_.end()) return;
    auto at = on->second.claims.find(id);
    if (TRINCO_MUTANT("lock_release_unconditional") && at == on->second.claims.end()) {
        at = on->second.claims.begin();
    }
    if (at == on->second.claims.end()) return;
    remove(on->second, at->first);
}

void memory_lock_server::remove(lease_record& on, claim_id id) {
    const auto at = on.claims.find(id);
    const auto gone = std::move(at->second);
    on.claims.erase(at);
    touched queues;
    detach(*gone, queues);
    tell_lost(*gone);
    settle(queues);
}

void memory_lock_server::end_lease(std::map<std::string, lease_record, std::less<>>::iterator at) {
    leases_by_end_.erase({at->second.ends, at->first});
    const auto claims = std::move(at->second.claims);
    leases_.erase(at);
    // All its entries go before anybody is granted: nothing is granted to a lease that has ended.
    touched queues;
    for (const auto& [id, c] : claims) detach(*c, queues);
    for (const auto& [id, c] : claims) tell_lost(*c);
    settle(queues);
}

lock_answer<grant> memory_lock_server::verify(std::string_view lease, claim_id id) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto* c = find(lease, id);
    if (c == nullptr) return {errc::lost};
    if (c->missing > 0) return {errc::conflict};
    return {{}, grant_of(*c)};
}

lock_answer<std::vector<bool>> memory_lock_server::turns(std::string_view lease, claim_id id) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto* c = find(lease, id);
    if (c == nullptr) return {errc::lost};
    lock_answer<std::vector<bool>> out;
    for (const auto& m : c->parts) out.value.push_back(m.has_turn);
    return out;
}

std::error_code memory_lock_server::publish(std::string_view lease, claim_id id,
                                            std::string_view info) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    if (info.size() > max_info) return errc::invalid;
    auto* c = find(lease, id);
    if (c == nullptr) return errc::lost;
    c->info = info;
    ++c->info_version;
    for (const auto& m : c->parts) tell_holder(*m.in);
    return {};
}

std::error_code memory_lock_server::evict(const entry& seen, bool now, eviction by) {
    if (!by.is_sound()) return errc::invalid;
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto first = seen.handle.find('/');
    const auto second = seen.handle.find('/', first + 1);
    std::uint64_t id = 0;
    const auto* const text = seen.handle.data();
    if (first == std::string::npos || second == std::string::npos ||
        std::from_chars(text + first + 1, text + second, id).ptr != text + second) {
        return errc::invalid;
    }
    const auto lease = seen.handle.substr(0, first);
    auto* c = find(lease, {id});
    if (c == nullptr) return errc::lost;
    if (std::to_string(c->revision) != seen.handle.substr(second + 1)) return errc::conflict;
    if (!now) {
        c->evicted = std::move(by);
        const auto watchers = std::exchange(c->watchers, {});
        for (const auto& [watcher, gone] : watchers) {
            listeners_.erase(watcher);
            gone(errc::evicted);
        }
        return {};
    }
    remove(leases_.find(lease)->second, {id});
    return {};
}

void memory_lock_server::tell_places(queue& q) {
    if (q.movers.empty()) return;
    const auto last = *q.movers.rbegin();
    std::uint32_t ahead = 0;
    for (const auto& [revision, s] : q.slots) {
        if (revision > last) break;
        if (q.movers.contains(revision)) {
            for (auto& [id, w] : s.who->waiters) {
                if (w.moved && std::exchange(w.told, ahead) != ahead) w.moved({ahead});
            }
        }
        ++ahead;
    }
}

void memory_lock_server::tell_holder(queue& q) {
    const auto head = q.slots.begin();
    const bool held = head != q.slots.end() && head->second.who->missing == 0;
    const auto shows = held ? std::pair(head->second.who->revision, head->second.who->info_version)
                            : std::pair<std::uint64_t, std::uint64_t>();
    if (std::exchange(q.shown, shows) == shows || q.observers.empty()) return;
    const auto now = held ? std::optional(entry_of(q, head->second)) : std::nullopt;
    for (const auto& [id, seen] : q.observers) seen(now);
}

place memory_lock_server::place_of(const claim_record& c) const {
    const auto& slots = c.parts.front().in->slots;
    if (slots.rbegin()->first == c.revision) {
        return {static_cast<std::uint32_t>(slots.size() - 1)};
    }
    return {static_cast<std::uint32_t>(std::distance(slots.begin(), slots.find(c.revision)))};
}

grant memory_lock_server::grant_of(const claim_record& c) const {
    grant g;
    for (const auto& m : c.parts) g.tokens.push_back(m.token);
    return g;
}

entry memory_lock_server::entry_of(const queue& q, const slot& s) const {
    const auto& c = *s.who;
    const auto& on = leases_.find(c.who.first)->second;
    const auto now = now_();
    entry e;
    e.name = q.name;
    e.info = c.info.empty() ? on.label : c.info;
    e.handle =
        c.who.first + "/" + std::to_string(c.who.second.n) + "/" + std::to_string(c.revision);
    e.kind = c.parts[s.part].asks.kind;
    e.holds = c.missing == 0;
    e.token = c.parts[s.part].token;
    e.since = ms(now - c.since);
    e.left = std::max(ms(on.ends - now), std::chrono::milliseconds(0));
    e.n = c.parts[s.part].asks.n;
    if (e.holds) e.held = ms(now - c.granted);
    e.evicted = c.evicted;
    return e;
}

}  // namespace trinco::detail
