// A route to a simulated cluster of three nodes, a:1 to c:1, with what it told and was asked.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulated_cluster.hpp"
#include "store/redis/cluster_route.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {

class ClusterRoute : public testing::Test {
protected:
    void open(std::vector<std::string> seeds = {"a", "b", "c"}, redis_target target = {}) {
        target.kind = redis_target::kind_t::cluster;
        for (auto& one : seeds) target.nodes.push_back(stream_address::tcp(std::move(one), 1));
        route_ = make_cluster_route(node_, cluster_.fleet, std::move(target),
                                    [this](const route_event& e) { events_.push_back(e); });
    }
    // The n-th key that this node owns at first.
    static std::string key_of(char node, int n = 0) {
        for (int i = 0;; ++i) {
            const auto key = "k" + std::to_string(i);
            if (slot_of_key(key) * 3 / redis_slots != static_cast<unsigned>(node - 'a')) continue;
            if (n-- == 0) return key;
        }
    }
    std::shared_ptr<asked> ask(const std::string& key,
                               boot_clock::duration within = std::chrono::seconds(10)) {
        auto a = std::make_shared<asked>();
        a->interest = route_->request(
            key, resp_command(std::vector<std::string>{"DO", key, std::to_string(++asked_)}),
            node_.now() + within, [this, raw = a.get()](std::error_code error, resp_reply r) {
                ++raw->times;
                raw->error = error;
                raw->reply = std::move(r);
                raw->when = node_.now();
            });
        EXPECT_EQ(a->times, 0);
        return a;
    }
    void expect_from(const asked& a, const std::string& node) {
        EXPECT_EQ(a.times, 1);
        EXPECT_EQ(a.error, std::error_code()) << a.error.message();
        EXPECT_EQ(a.reply.text.substr(0, a.reply.text.find(' ')), node);
    }
    void expect_error(const asked& a, errc error) {
        EXPECT_EQ(a.times, 1);
        EXPECT_EQ(a.error, error) << a.error.message();
    }
    void run(boot_clock::duration d) { world_.run_for(d); }
    std::string told() {
        std::string all;
        for (const auto& e : events_) {
            const char* const words[] = {"up", "down", "other", "hearing", "deaf"};
            all += std::string(words[static_cast<int>(e.kind)]) + " ";
        }
        return all;
    }
    std::size_t connections(const std::string& node) { return cluster_.fleet.connections(node); }
    // One after the other, until each of the nodes is connected to.
    void warm() {
        for (const char one : {'a', 'b', 'c'}) (void)ask(key_of(one))->interest;
        std::vector<std::shared_ptr<asked>> all;
        for (const char one : {'a', 'b', 'c'}) all.push_back(ask(key_of(one)));
        run(std::chrono::seconds(1));
        for (const auto& one : all) EXPECT_EQ(one->times, 1);
    }

    sim::world world_{7};
    sim::node& node_ = world_.add_node("client");
    simulated_cluster cluster_{node_, {"a:1", "b:1", "c:1"}};
    std::vector<route_event> events_;
    std::unique_ptr<redis_route> route_;
    int asked_ = 0;
};

}  // namespace trinco::detail::test
