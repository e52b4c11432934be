// The contract of lock_store on Consul, on a simulated cluster.
#include "lock_twin_world.hpp"
#include "sim/simulated_consul_client.hpp"
#include "store/consul/consul_locks.hpp"

namespace trinco::test {
namespace {

struct consul_twin {
    using locks = detail::consul_locks;
    using settings = detail::consul_locks_settings;
    using servers = sim::simulated_consul;
    using client = sim::simulated_consul_client;
};

class twin_world final : public lock_twin_world<consul_twin> {
public:
    using lock_twin_world::lock_twin_world;
    bool lists_who_waits() const override { return false; }
    bool grants_with_the_place() const override { return false; }
    // A session ends up to a TTL late; then comes the lock-delay, and whoever waits tries again.
    boot_clock::duration expiry_slack() const override { return short_ttl() + hold_back() + 2s; }
    boot_clock::duration hold_back() const override { return 5s; }
};

INSTANTIATE_TEST_SUITE_P(ConsulTwin, LockStore, cases_of_networks<twin_world>(), lock_case_name);

}  // namespace
}  // namespace trinco::test
