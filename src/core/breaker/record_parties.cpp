// Voters and instances: who was heard, who counts, who is forgotten.
#include <algorithm>

#include "core/breaker/record_steps.hpp"
#include "core/mutant.hpp"

namespace trinco::detail::steps {

namespace {

template <class Party>
[[nodiscard]] auto place_of(std::vector<Party>& parties, std::string_view name) {
    return std::lower_bound(parties.begin(), parties.end(), name,
                            [](const Party& p, std::string_view n) { return p.name < n; });
}

// Finds or inserts by name.
template <class Party>
Party& party_of(std::vector<Party>& parties, std::string_view name, std::size_t most) {
    auto at = place_of(parties, name);
    if (at != parties.end() && at->name == name) return *at;
    if (parties.size() >= most) {
        const auto oldest =
            std::min_element(parties.begin(), parties.end(),
                             [](const Party& a, const Party& b) { return a.heard < b.heard; });
        parties.erase(oldest);
        at = place_of(parties, name);
    }
    at = parties.emplace(at);
    at->name.assign(name);
    return *at;
}

// How long a party is remembered after it was heard: a batch is repeated for at most one window,
// and must be known as counted for longer.
[[nodiscard]] store_time memory_of(const fleet_record& r) noexcept {
    return std::max<store_time>(r.rules.live_for, 2 * r.rules.window);
}

}  // namespace

fleet_record::voter& voter_of(fleet_record& r, std::string_view name, store_time t) {
    sweep(r, t);
    return party_of(r.voters, name, max_voters);
}

fleet_record::instance& instance_of(fleet_record& r, const breaker_identity& who, store_time t) {
    sweep(r, t);
    fleet_record::instance& i = party_of(r.instances, who.instance, max_instances);
    if (i.heard.count() == 0 || t - i.heard > r.rules.live_for) ++r.live_instances;
    i.heard = t;
    if (i.voter != who.voter) i.voter = who.voter;
    return i;
}

const fleet_record::voter* find_voter(const fleet_record& r, std::string_view name) noexcept {
    const auto at = std::lower_bound(
        r.voters.begin(), r.voters.end(), name,
        [](const fleet_record::voter& v, std::string_view n) { return v.name < n; });
    return at != r.voters.end() && at->name == name ? &*at : nullptr;
}

std::uint32_t live_voters(const fleet_record& r, store_time t) noexcept {
    return static_cast<std::uint32_t>(
        std::count_if(r.voters.begin(), r.voters.end(),
                      [&](const fleet_record::voter& v) { return is_live(r, v, t); }));
}

const fleet_record::instance* find_instance(const fleet_record& r, std::string_view name) noexcept {
    const auto at = std::lower_bound(
        r.instances.begin(), r.instances.end(), name,
        [](const fleet_record::instance& i, std::string_view n) { return i.name < n; });
    return at != r.instances.end() && at->name == name ? &*at : nullptr;
}

std::uint32_t quorum_of(const fleet_record& r, std::uint32_t live, store_time t) noexcept {
    const bool forgetful = r.forgot_at.count() != 0 && t - r.forgot_at < r.rules.live_for;
    if (forgetful && !TRINCO_MUTANT("record_quorum_of_those_who_came_first")) {
        live = std::max(live, r.rules.quorum);
    }
    return std::max<std::uint32_t>(1, std::min(r.rules.quorum, live));
}

void sweep(fleet_record& r, store_time t) {
    if (t - r.swept_at < r.rules.live_for / 8) return;
    r.swept_at = t;
    const store_time memory = memory_of(r);
    std::erase_if(r.instances,
                  [&](const fleet_record::instance& i) { return t - i.heard > memory; });
    // A voter whose probes count in this era stays, or others could settle more than N.
    std::erase_if(r.voters, [&](const fleet_record::voter& v) {
        return t - std::max(v.heard, v.asked) > memory && !v.set_aside &&
               v.probes_succeeded + v.probes_failed == 0;
    });
    r.live_instances = static_cast<std::uint32_t>(std::count_if(
        r.instances.begin(), r.instances.end(),
        [&](const fleet_record::instance& i) { return t - i.heard <= r.rules.live_for; }));
}

milliseconds spread_of(const fleet_record& r) noexcept {
    return milliseconds{std::int64_t{r.live_instances} * 1000 / r.rules.exchange_budget};
}

milliseconds pace(const fleet_record& r) noexcept {
    return std::max(r.rules.sync_interval, spread_of(r));
}

}  // namespace trinco::detail::steps
