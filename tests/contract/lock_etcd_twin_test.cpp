// The contract of lock_store on etcd, on a simulated cluster: near, far away, and over a network
// that loses messages.
#include "lock_store_suite.hpp"
#include "sim/simulated_etcd_client.hpp"
#include "store/etcd/etcd_locks.hpp"

namespace trinco::test {
namespace {

using detail::etcd_locks;

class twin_world final : public lock_store_world {
public:
    explicit twin_world(const sim::net_faults& faults) { net_.set_faults(faults); }
    detail::loop& on() override { return node_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    void run_for(boot_clock::duration d) override { world_.run_for(d); }
    boot_clock::duration settle_time() const override { return net_.faults().p_drop > 0 ? 5s : 1s; }
    bool applies_once() const override { return net_.faults().p_drop == 0; }
    bool tells_held_at_once() const override { return false; }

private:
    std::unique_ptr<detail::etcd::rpc> link() {
        return std::make_unique<sim::simulated_etcd_client>(node_, etcd_);
    }
    detail::etcd_locks_settings settings() {
        detail::etcd_locks_settings out;
        out.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        return out;
    }

    sim::world world_{1};
    sim::network net_{world_};
    sim::simulated_etcd etcd_{world_, net_, 3};
    sim::node& node_ = world_.add_node("client");
    etcd_locks a_{node_, link(), settings()};
    etcd_locks b_{node_, link(), settings()};
};

INSTANTIATE_TEST_SUITE_P(
    EtcdTwin, LockStore,
    ::testing::Values(
        lock_store_case{"Near", [] { return std::make_unique<twin_world>(sim::net_faults{}); }},
        lock_store_case{"Delayed",
                        [] {
                            return std::make_unique<twin_world>(
                                sim::net_faults{.delay_min = 1ms, .delay_max = 60ms});
                        }},
        lock_store_case{"Lossy",
                        [] {
                            return std::make_unique<twin_world>(sim::net_faults{
                                .p_drop = 0.1, .delay_min = 1ms, .delay_max = 20ms});
                        }}),
    lock_case_name);

}  // namespace
}  // namespace trinco::test
