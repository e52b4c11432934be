#include <utility>

#include "sim/lock_ground.hpp"
#include "sim/simulated_consul_client.hpp"
#include "store/consul/consul_layout.hpp"
#include "store/consul/consul_locks.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::sim {
namespace {

using namespace std::chrono_literals;
using namespace detail::consul;

class consul_ground final : public lock_ground {
public:
    consul_ground(world& w, network& net) : world_(w), consul_(w, net, 3) {}

    std::unique_ptr<detail::lock_store> store_for(node& client) override {
        detail::consul_locks_settings settings;
        settings.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        return std::make_unique<detail::consul_locks>(
            client, std::make_unique<simulated_consul_client>(client, consul_),
            std::move(settings));
    }

    // Who waits is known to its own process alone.
    std::vector<lock_row> rows() const override {
        std::vector<lock_row> out;
        for (const auto& [key, kv] : consul_.all()) {
            const auto name = name_of_key("", key, false);
            const auto permit = contender_of_key("", key);
            if ((!name && !permit) || kv.session.empty()) continue;
            if (permit && !has_permit(*permit)) continue;
            lock_row row;
            row.name = permit ? permit->name : *name;
            row.lease = kv.session;
            if (const auto note = note_of(kv.value)) {
                row.id = note->id;
                if (permit) row.lease = note->lease;
            }
            row.holds = true;
            row.left = consul_.left(kv.session);
            out.push_back(std::move(row));
        }
        return out;
    }
    std::vector<std::string> leases() const override {
        std::vector<std::string> out;
        for (const auto& one : consul_.sessions()) out.push_back(one.id);
        return out;
    }
    const std::vector<node*>& servers() const override { return consul_.servers(); }
    std::chrono::seconds least_ttl() const override { return 10s; }
    bool keeps_order() const override { return false; }
    std::uint32_t permits() const override { return 2; }

    std::uint64_t own_faults() const override { return 5; }
    void fault(std::uint64_t kind, boot_clock::time_point over) override {
        // A leader that was deposed learns it before any lease could run out.
        const auto longest = std::min<boot_clock::duration>(over - world_.now(), 8s);
        if (longest <= 1ms) return;
        switch (kind) {
            case 0:
                world_.note("the leader is gone");
                return consul_.lose_leader(world_.between(1ms, longest));
            case 1:
                world_.note("the leader begins again, and lock-delays with it");
                return consul_.restart_leader();
            case 2:
                world_.note("watches are not told, or told nothing new");
                consul_.lose_news(world_.below(3));
                return consul_.tell_nothing_new();
            case 3:
                world_.note("watches are deaf");
                return consul_.deafen(world_.between(1s, 60s), 0.5);
            default:
                world_.note("a leader is deposed and does not know it");
                return consul_.depose_leader(world_.between(1ms, longest));
        }
    }
    // A new leader gives all sessions twice their TTL anew; then come the lock-delay and a look.
    boot_clock::duration slack(std::chrono::seconds ttl) const override { return 2 * ttl + 15s; }

private:
    [[nodiscard]] bool has_permit(const contender& who) const {
        const auto list = consul_.all().find(semaphore_key("", who.name));
        return list != consul_.all().end() && has_place(list->second, who.session);
    }

    world& world_;
    simulated_consul consul_;
};

}  // namespace

std::unique_ptr<lock_ground> make_consul_ground(world& w, network& net) {
    return std::make_unique<consul_ground>(w, net);
}

}  // namespace trinco::sim
