// The contract of lock_store on Consul, on a simulated cluster: near, far away, and over a network
// that loses messages.
#include "lock_store_suite.hpp"
#include "sim/simulated_consul_client.hpp"
#include "store/consul/consul_locks.hpp"

namespace trinco::test {
namespace {

using detail::consul_locks;

class twin_world final : public lock_store_world {
public:
    explicit twin_world(const sim::net_faults& faults) { net_.set_faults(faults); }
    detail::loop& on() override { return node_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    void run_for(boot_clock::duration d) override { world_.run_for(d); }
    boot_clock::duration settle_time() const override { return net_.faults().p_drop > 0 ? 5s : 1s; }
    bool applies_once() const override { return net_.faults().p_drop == 0; }
    bool lists_who_waits() const override { return false; }
    // A session ends up to a TTL late; then comes the lock-delay, and whoever waits tries again.
    boot_clock::duration expiry_slack() const override { return short_ttl() + hold_back() + 2s; }
    boot_clock::duration hold_back() const override { return 5s; }

private:
    std::unique_ptr<detail::consul::rpc> link() {
        return std::make_unique<sim::simulated_consul_client>(node_, consul_);
    }
    detail::consul_locks_settings settings() {
        detail::consul_locks_settings out;
        out.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        return out;
    }

    sim::world world_{1};
    sim::network net_{world_};
    sim::simulated_consul consul_{world_, net_, 3};
    sim::node& node_ = world_.add_node("client");
    consul_locks a_{node_, link(), settings()};
    consul_locks b_{node_, link(), settings()};
};

INSTANTIATE_TEST_SUITE_P(
    ConsulTwin, LockStore,
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
