// The connections to the nodes of a cluster: when they are closed, and who is met again.
#include <gtest/gtest.h>

#include <string>

#include "cluster_route_fixture.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

TEST_F(ClusterRoute, another_life_of_a_node_is_another_server) {
    open();
    warm();
    cluster_.fleet.cut("a:1");
    run(2s);
    EXPECT_EQ(told(), "up ");
    cluster_.lives["a:1"] = "ff";
    cluster_.fleet.cut("a:1");
    run(2s);
    EXPECT_EQ(told(), "up other ");
}

TEST_F(ClusterRoute, connections_without_use_are_closed) {
    open();
    warm();
    EXPECT_EQ(connections("a:1") + connections("b:1") + connections("c:1"), 3U);
    for (int i = 0; i < 9; ++i) {
        (void)ask(key_of('b'));
        auto b = ask(key_of('b'));
        run(10s);
    }
    EXPECT_EQ(connections("a:1") + connections("c:1"), 0U);
    EXPECT_EQ(connections("b:1"), 1U);
    const auto a = ask(key_of('a'));
    run(10ms);
    expect_from(*a, "a:1");
    run(100s);
    EXPECT_EQ(connections("a:1") + connections("b:1"), 1U);  // one keeps the way open
    EXPECT_EQ(told(), "up ");
    EXPECT_GE(route_->traffic().requests, 13U);
}

TEST_F(ClusterRoute, another_life_is_noticed_after_the_connection_was_closed_as_idle) {
    open();
    warm();
    const auto idle = [&] {
        for (int i = 0; i < 9; ++i) {
            const auto b = ask(key_of('b'));
            run(10s);
        }
        EXPECT_EQ(connections("a:1") + connections("c:1"), 0U);
    };
    idle();
    cluster_.lives["a:1"] = "ff";
    const auto a = ask(key_of('a'));
    const auto c = ask(key_of('c'));
    run(100ms);
    expect_from(*a, "a:1");
    expect_from(*c, "c:1");
    EXPECT_EQ(told(), "up other ");
    idle();
    const auto same = ask(key_of('a'));
    run(100ms);
    expect_from(*same, "a:1");
    EXPECT_EQ(told(), "up other ");
}

TEST_F(ClusterRoute, of_many_addresses_those_that_own_slots_are_remembered) {
    open();
    warm();
    const auto torn = key_of('b');
    const auto visit = [&](int n) {
        const auto name = "x" + std::to_string(n) + ":1";
        cluster_.fleet.at(name).answer_all([this, name](const std::string& c) -> std::string {
            if (c.starts_with("INFO")) return resp_text("run_id:" + cluster_.lives[name] + "\r\n");
            return "+" + name + " 0\r\n";
        });
        cluster_.importing[slot_of_key(torn)] = name;
        cluster_.there.insert(torn);
        const auto asked_there = ask(torn);
        run(80ms);
        expect_from(*asked_there, name);
    };
    for (int n = 0; n < 1'100; ++n) {
        cluster_.lives["x" + std::to_string(n) + ":1"] = "1";
        visit(n);
    }
    EXPECT_EQ(connections("a:1") + connections("x0:1") + connections("x1000:1"), 0U);
    cluster_.lives["x0:1"] = "2";
    visit(0);
    EXPECT_EQ(told(), "up ");  // forgotten
    cluster_.lives["a:1"] = "ff";
    const auto a = ask(key_of('a'));
    run(100ms);
    expect_from(*a, "a:1");
    EXPECT_EQ(told(), "up other ");
}

}  // namespace
}  // namespace trinco::detail::test
