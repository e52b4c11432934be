// The contract of lock_store on etcd, on a simulated cluster.
#include "lock_twin_world.hpp"
#include "sim/simulated_etcd_client.hpp"
#include "store/etcd/etcd_locks.hpp"

namespace trinco::test {
namespace {

struct etcd_twin {
    using locks = detail::etcd_locks;
    using settings = detail::etcd_locks_settings;
    using servers = sim::simulated_etcd;
    using client = sim::simulated_etcd_client;
};

class twin_world final : public lock_twin_world<etcd_twin> {
public:
    using lock_twin_world::lock_twin_world;
    bool tells_held_at_once() const override { return false; }
};

INSTANTIATE_TEST_SUITE_P(EtcdTwin, LockStore, cases_of_networks<twin_world>(), lock_case_name);

}  // namespace
}  // namespace trinco::test
