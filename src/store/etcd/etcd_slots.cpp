#include "store/etcd/etcd_slots.hpp"

namespace trinco::detail::etcd {

claim_id etcd_slots::choose(table& t, claim_id id) {
    if (!t.free.empty()) return t.free.extract(t.free.begin()).value();
    return t.taken.contains(id) ? claim_id{t.taken.rbegin()->first.n + 1} : id;
}

claim_id etcd_slots::enter(std::string_view lease, claim_id id) {
    auto on = leases_.find(lease);
    if (on == leases_.end()) on = leases_.emplace(lease, table{}).first;
    auto& t = on->second;
    auto at = t.claims.find(id);
    if (at == t.claims.end()) {
        at = t.claims.emplace(id, seat_of_claim{choose(t, id)}).first;
        t.taken[at->second.slot] = id;
    }
    ++at->second.unanswered;
    return at->second.slot;
}

void etcd_slots::answered(std::string_view lease, claim_id id, outcome of) {
    const auto on = leases_.find(lease);
    if (on == leases_.end() || of == outcome::unknown) return;
    const auto at = on->second.claims.find(id);
    if (at == on->second.claims.end()) return;
    --at->second.unanswered;
    if (of == outcome::absent) release_if_certain(on->second, id);
}

void etcd_slots::left(std::string_view lease, claim_id id) {
    const auto on = leases_.find(lease);
    if (on != leases_.end()) release_if_certain(on->second, id);
}

void etcd_slots::release_if_certain(table& t, claim_id id) {
    const auto at = t.claims.find(id);
    if (at == t.claims.end() || at->second.unanswered > 0) return;
    t.taken.erase(at->second.slot);
    t.free.insert(at->second.slot);
    t.claims.erase(at);
}

void etcd_slots::forget(std::string_view lease) {
    const auto on = leases_.find(lease);
    if (on != leases_.end()) leases_.erase(on);
}

bool etcd_slots::may_arrive(std::string_view lease, claim_id slot) const {
    const auto on = leases_.find(lease);
    if (on == leases_.end()) return false;
    const auto at = on->second.taken.find(slot);
    return at != on->second.taken.end() && on->second.claims.at(at->second).unanswered > 0;
}

std::optional<claim_id> etcd_slots::find(std::string_view lease, claim_id id) const {
    const auto on = leases_.find(lease);
    if (on == leases_.end()) return id;
    const auto& t = on->second;
    if (const auto at = t.claims.find(id); at != t.claims.end()) return at->second.slot;
    if (t.taken.contains(id) || t.free.contains(id)) return std::nullopt;
    return id;
}

claim_id etcd_slots::owner(std::string_view lease, claim_id slot) const {
    const auto on = leases_.find(lease);
    if (on == leases_.end()) return slot;
    const auto at = on->second.taken.find(slot);
    return at == on->second.taken.end() ? slot : at->second;
}

}  // namespace trinco::detail::etcd
