// The world of the contract of lock_store on a simulated cluster: two stores on one loop, near to
// its servers, far away, or over a network that loses messages. `Twin` names the store's types:
// locks, settings, servers and client.
#pragma once

#include <chrono>
#include <memory>

#include "lock_store_suite.hpp"
#include "sim/network.hpp"
#include "sim/world.hpp"

namespace trinco::test {

template <class Twin>
class lock_twin_world : public lock_store_world {
public:
    explicit lock_twin_world(const sim::net_faults& faults) { net_.set_faults(faults); }
    detail::loop& on() override { return node_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    void run_for(boot_clock::duration d) override { world_.run_for(d); }
    boot_clock::duration settle_time() const override { return net_.faults().p_drop > 0 ? 5s : 1s; }
    bool applies_once() const override { return net_.faults().p_drop == 0; }

private:
    std::unique_ptr<typename Twin::client> link() {
        return std::make_unique<typename Twin::client>(node_, servers_);
    }
    typename Twin::settings settings() {
        typename Twin::settings out;
        out.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        return out;
    }

    sim::world world_{1};
    sim::network net_{world_};
    typename Twin::servers servers_{world_, net_, 3};
    sim::node& node_ = world_.add_node("client");
    typename Twin::locks a_{node_, link(), settings()};
    typename Twin::locks b_{node_, link(), settings()};
};

template <class World>
auto cases_of_networks() {
    const auto on = [](const sim::net_faults& faults) {
        return [faults] { return std::make_unique<World>(faults); };
    };
    return ::testing::Values(
        lock_store_case{"Near", on({})},
        lock_store_case{"Delayed", on({.delay_min = 1ms, .delay_max = 60ms})},
        lock_store_case{"Lossy", on({.p_drop = 0.1, .delay_min = 1ms, .delay_max = 20ms})});
}

}  // namespace trinco::test
