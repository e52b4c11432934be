// The way to the nodes of a cluster under random schedules: slots that move, nodes that die, lag
// behind and come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "simulated_cluster.hpp"
#include "store/redis/cluster_route.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using door = scripted_server::door;

struct row {
    int times = 0;
    bool answered = false;
    bool right = true;
    bool unsent = false;
};

class random_cluster_run {
public:
    explicit random_cluster_run(std::uint64_t seed) : world_(seed) {
        redis_target target;
        for (const auto* one : {"a", "b", "c", "d"}) {
            target.nodes.push_back(stream_address::tcp(one, 1));
        }
        route_ = make_cluster_route(node_, cluster_.fleet, target, [](const route_event&) {});
        route_->listen("c", [](std::string_view) {});
        for (int i = 0; i < 8; ++i) keys_.push_back("key" + std::to_string(i));
    }

    void ask(std::size_t i) {
        const auto& key = keys_[world_.below(keys_.size())];
        const auto number = std::to_string(i);
        const auto by = node_.now() + world_.between(1ms, 900ms);
        interests_.push_back(route_->request(
            key, resp_command(std::vector<std::string>{"DO", key, number}), by,
            [this, i, key, number, by](std::error_code error, const resp_reply& reply) {
                auto& one = rows[i];
                ++one.times;
                one.answered = !error && reply.text.ends_with(" " + number);
                one.unsent = error == errc::unavailable && node_.now() >= by;
                const bool down = reply.error_word() == "CLUSTERDOWN";
                one.right = one.answered || one.unsent || down || error == errc::unknown_outcome;
                if (down) route_->mistrust(key, {errc::unavailable, "CLUSTERDOWN"});
            }));
    }

    void trouble() {
        const auto any = [this](const auto& all) { return all[world_.below(all.size())]; };
        const auto key = any(keys_);
        const auto slot = slot_of_key(key);
        const auto node = any(cluster_.nodes);
        if (world_.chance(0.1)) {  // a slot moves, by steps or at once
            if (cluster_.importing.contains(slot)) {
                cluster_.hand_over(slot, cluster_.importing[slot]);
            } else if (cluster_.owner[slot] != node) {
                cluster_.importing[slot] = node;
            }
        }
        if (world_.chance(0.1)) cluster_.there.insert(key);
        if (world_.chance(0.05)) cluster_.torn.insert(key);
        if (world_.chance(0.1)) cluster_.torn.erase(key);
        if (world_.chance(0.1)) cluster_.there.erase(key);
        if (world_.chance(0.05)) cluster_.believes[node] = cluster_.owner;
        if (world_.chance(0.03)) cluster_.fleet.kill(node);
        if (world_.chance(0.15)) cluster_.fleet.wake(node);
        if (world_.chance(0.03)) cluster_.fleet.at(node).otherwise = door::hang;
        if (world_.chance(0.04)) cluster_.fleet.cut(node);
        // What is written stays in our own system, and what comes then is not sent.
        if (world_.chance(0.04)) {
            for (const auto& wire : cluster_.fleet.at(node).wires) wire->takes = false;
        }
        if (world_.chance(0.04)) cluster_.errors[node] = "CLUSTERDOWN The cluster is down";
        if (world_.chance(0.2)) cluster_.errors[node] = "";
    }

    void calm() {
        cluster_.errors.clear();
        cluster_.importing.clear();
        cluster_.agree();
        for (const auto& one : cluster_.nodes) cluster_.fleet.wake(one);
        world_.run_for(12s);
    }

    // Each key is served by its owner again, without a detour.
    [[nodiscard]] bool is_well() {
        std::size_t well = 0;
        for (int round = 0; round < 2; ++round) {
            well = 0;
            const auto before = route_->traffic().redirections;
            std::vector<op> ops;
            for (const auto& key : keys_) {
                ops.push_back(route_->request(
                    key, resp_command(std::vector<std::string>{"DO", key, "end"}), node_.now() + 3s,
                    [&, key](std::error_code, const resp_reply& r) {
                        well += r.text == cluster_.owner[slot_of_key(key)] + " end" ? 1 : 0;
                    }));
            }
            world_.run_for(4s);
            if (round == 1 && route_->traffic().redirections != before) return false;
        }
        return well == keys_.size();
    }
    [[nodiscard]] std::ptrdiff_t times_done(std::size_t i) const {
        const auto end = " " + std::to_string(i);
        return std::count_if(cluster_.done.begin(), cluster_.done.end(),
                             [&](const std::string& one) { return one.ends_with(end); });
    }
    void run(boot_clock::duration from, boot_clock::duration to) {
        world_.run_for(world_.between(from, to));
    }

    std::vector<row> rows = std::vector<row>(250);

private:
    sim::world world_;
    sim::node& node_ = world_.add_node("client");
    simulated_cluster cluster_{node_, {"a:1", "b:1", "c:1", "d:1"}};
    std::vector<std::string> keys_;
    std::unique_ptr<redis_route> route_;
    std::vector<op> interests_;
};

TEST(ClusterRouteRandom, each_is_answered_once_and_rightly_and_done_once_at_most) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        random_cluster_run one(seed);
        for (std::size_t i = 0; i < one.rows.size(); ++i) {
            one.ask(i);
            one.trouble();
            one.run(1ms, 20ms);
        }
        one.calm();
        for (std::size_t i = 0; i < one.rows.size(); ++i) {
            const auto done = one.times_done(i);
            const auto& row = one.rows[i];
            ASSERT_EQ(row.times, 1) << "seed " << seed << " request " << i;
            ASSERT_TRUE(row.right) << "seed " << seed << " request " << i;
            ASSERT_LE(done, 1) << "seed " << seed << " request " << i;
            if (row.answered) {
                ASSERT_EQ(done, 1) << "seed " << seed << " request " << i;
            }
            if (row.unsent) {
                ASSERT_EQ(done, 0) << "seed " << seed << " request " << i;
            }
        }
        ASSERT_TRUE(one.is_well()) << "seed " << seed;
    }
}

// Without faults but those of moving, every request is answered.
TEST(ClusterRouteRandom, while_slots_move_nothing_is_lost) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        sim::world world(seed);
        auto& node = world.add_node("client");
        simulated_cluster cluster(node, {"a:1", "b:1", "c:1"});
        redis_target target;
        target.nodes.push_back(stream_address::tcp("a", 1));
        const auto route =
            make_cluster_route(node, cluster.fleet, target, [](const route_event&) {});
        std::size_t well = 0;
        std::vector<op> ops;
        for (std::size_t i = 0; i < 200; ++i) {
            const auto key = "key" + std::to_string(world.below(5));
            const auto number = std::to_string(i);
            ops.push_back(route->request(
                key, resp_command(std::vector<std::string>{"DO", key, number}), node.now() + 500ms,
                [&well, number](std::error_code, const resp_reply& r) {
                    well += r.text.ends_with(" " + number) ? 1 : 0;
                }));
            const auto moved = "key" + std::to_string(world.below(5));
            const auto slot = slot_of_key(moved);
            const auto to = cluster.nodes[world.below(3)];
            if (world.chance(0.2)) {
                if (cluster.importing.contains(slot)) {
                    cluster.there.erase(moved);
                    cluster.hand_over(slot, cluster.importing[slot]);
                } else if (cluster.owner[slot] != to) {
                    cluster.importing[slot] = to;
                }
            }
            if (cluster.importing.contains(slot) && world.chance(0.5)) cluster.there.insert(moved);
            if (world.chance(0.1)) cluster.agree();
            // A connection that ends before the request is sent costs nothing either.
            if (world.chance(0.05) && i % 3 == 0) {
                world.run_for(50ms);
                cluster.fleet.cut(cluster.nodes[world.below(3)]);
            }
            world.run_for(world.between(1ms, 10ms));
        }
        world.run_for(2s);
        ASSERT_EQ(well, 200U) << "seed " << seed;
        for (std::size_t i = 0; i < 200; ++i) {
            const auto end = " " + std::to_string(i);
            ASSERT_EQ(std::count_if(cluster.done.begin(), cluster.done.end(),
                                    [&](const std::string& one) { return one.ends_with(end); }),
                      1)
                << "seed " << seed << " request " << i;
        }
    }
}

}  // namespace
}  // namespace trinco::detail::test
