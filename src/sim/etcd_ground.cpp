#include <algorithm>
#include <map>
#include <utility>

#include "core/lock/claim.hpp"
#include "sim/lock_ground.hpp"
#include "sim/simulated_etcd_client.hpp"
#include "store/etcd/etcd_layout.hpp"
#include "store/etcd/etcd_locks.hpp"

namespace trinco::sim {
namespace {

using namespace std::chrono_literals;
using namespace detail::etcd;

class etcd_ground final : public lock_ground {
public:
    etcd_ground(world& w, network& net) : world_(w), etcd_(w, net, 3) {}

    std::unique_ptr<detail::lock_store> store_for(node& client) override {
        detail::etcd_locks_settings settings;
        settings.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        settings.numbered = [this](std::string_view lease, detail::claim_id id,
                                   detail::claim_id number) {
            ids_[{std::string(lease), number}] = id;
        };
        return std::make_unique<detail::etcd_locks>(
            client, std::make_unique<simulated_etcd_client>(client, etcd_), std::move(settings));
    }

    std::vector<lock_row> rows() const override {
        std::map<std::string, std::vector<key_value>> queues;
        for (const auto& [key, kv] : etcd_.keys()) {
            if (const auto place = entry_of(kv)) queues[place->name].push_back(kv);
        }
        std::vector<lock_row> out;
        for (auto& [name, queue] : queues) {
            std::sort(queue.begin(), queue.end(), [](const auto& a, const auto& b) {
                return a.create_revision < b.create_revision;
            });
            detail::turn_rule rule;
            for (const auto& kv : queue) {
                lock_row row;
                row.name = name;
                row.lease = lease_text(kv.lease);
                row.id = entry_of(kv)->id;
                const auto known = ids_.find({row.lease, row.id});
                if (known != ids_.end()) row.id = known->second;
                row.holds = rule.has_turn(seat_of(kv.value));
                row.left = etcd_.left(kv.lease);
                rule.pass(seat_of(kv.value));
                out.push_back(std::move(row));
            }
        }
        return out;
    }
    std::vector<std::string> leases() const override {
        std::vector<std::string> out;
        for (const auto id : etcd_.leases()) out.push_back(lease_text(id));
        return out;
    }
    const std::vector<node*>& servers() const override { return etcd_.members(); }
    std::chrono::seconds least_ttl() const override { return 2s; }

    std::uint64_t own_faults() const override { return 4; }
    void fault(std::uint64_t kind, boot_clock::time_point over) override {
        const auto longest = std::min<boot_clock::duration>(over - world_.now(), 8s);
        if (longest <= 1ms) return;
        switch (kind) {
            case 0:
                world_.note("the leader is gone");
                return etcd_.lose_leader(world_.between(1ms, longest));
            case 1: world_.note("compaction"); return etcd_.compact();
            case 2: world_.note("events are lost"); return etcd_.lose_events(1 + world_.below(2));
            default:
                world_.note("a leader is deposed and does not know it");
                return etcd_.depose_leader(world_.between(1ms, longest));
        }
    }
    // A new leader begins all leases anew; an event that was lost is made up for by a look.
    boot_clock::duration slack(std::chrono::seconds ttl) const override { return 2 * ttl + 5s; }

private:
    world& world_;
    simulated_etcd etcd_;
    // By lease and number in keys.
    std::map<std::pair<std::string, detail::claim_id>, detail::claim_id> ids_;
};

}  // namespace

std::unique_ptr<lock_ground> make_etcd_ground(world& w, network& net) {
    return std::make_unique<etcd_ground>(w, net);
}

}  // namespace trinco::sim
