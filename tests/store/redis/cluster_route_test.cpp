#include "store/redis/cluster_route.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cluster_route_fixture.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using door = scripted_server::door;

TEST_F(ClusterRoute, sends_each_key_to_its_node) {
    open({"b"});
    const auto a = ask(key_of('a'));
    const auto c = ask(key_of('c'));
    run(20ms);
    expect_from(*a, "a:1");
    expect_from(*c, "c:1");
    EXPECT_EQ(told(), "up ");
    EXPECT_TRUE(route_->up(key_of('a')));
    EXPECT_FALSE(route_->up(key_of('b')) && connections("b:1") == 0);
    for (const auto* one : {"a:1", "b:1", "c:1"}) EXPECT_LE(connections(one), 1U);
    EXPECT_EQ(cluster_.asked_for_map.size(), 1U);
    EXPECT_EQ(route_->traffic().redirections, 0U);
}

TEST_F(ClusterRoute, keeps_the_order_of_one_node) {
    open();
    std::vector<std::shared_ptr<asked>> all;
    for (int i = 0; i < 50; ++i) {
        all.push_back(ask(key_of('a', i % 3)));
        if (i % 10 == 0) run(1ms);
    }
    run(100ms);
    ASSERT_EQ(cluster_.done.size(), 50U);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(cluster_.done[i], "a:1 " + std::to_string(i + 1));
}

TEST_F(ClusterRoute, any_seed_will_do) {
    cluster_.fleet.kill("x:1");
    cluster_.fleet.at("y:1").otherwise = door::hang;
    cluster_.refusals["b:1"] = "LOADING Redis is loading";
    open({"x", "y", "b", "a"});
    const auto c = ask(key_of('c'));
    run(5s);
    expect_from(*c, "c:1");
}

TEST_F(ClusterRoute, moved_is_followed_and_learnt) {
    open();
    warm();
    const auto key = key_of('a');
    const auto asked_before = cluster_.asked_for_map.size();
    cluster_.hand_over(slot_of_key(key), "b:1");
    const auto first = ask(key);
    run(10ms);
    expect_from(*first, "b:1");
    EXPECT_EQ(route_->traffic().redirections, 1U);
    const auto second = ask(key);
    run(1ms);
    expect_from(*second, "b:1");
    EXPECT_EQ(route_->traffic().redirections, 1U);
    EXPECT_EQ(told(), "up other ");
    cluster_.agree();
    run(2s);
    EXPECT_EQ(cluster_.asked_for_map.size(), asked_before + 1);
    EXPECT_EQ(told(), "up other ");
}

TEST_F(ClusterRoute, many_redirections_are_one_question) {
    open();
    warm();
    const auto before = cluster_.asked_for_map.size();
    std::vector<std::shared_ptr<asked>> all;
    for (int i = 0; i < 100; ++i) {
        cluster_.hand_over(slot_of_key(key_of('a', i)), "b:1");
        all.push_back(ask(key_of('a', i)));
        run(1ms);
    }
    cluster_.agree();
    run(3s);
    for (const auto& one : all) expect_from(*one, "b:1");
    EXPECT_GE(cluster_.asked_for_map.size(), before + 1);
    EXPECT_LE(cluster_.asked_for_map.size(), before + 3);
}

TEST_F(ClusterRoute, ask_is_followed_once_with_asking_and_not_learnt) {
    open();
    warm();
    const auto key = key_of('a');
    cluster_.importing[slot_of_key(key)] = "b:1";
    cluster_.there.insert(key);
    const auto first = ask(key);
    run(10ms);
    expect_from(*first, "b:1");
    cluster_.there.clear();  // a new key, as far as the owner is concerned
    const auto second = ask(key);
    run(10ms);
    expect_from(*second, "a:1");
    EXPECT_EQ(told(), "up ");
    const auto& at_b = cluster_.fleet.at("b:1").commands;
    EXPECT_EQ(std::count(at_b.begin(), at_b.end(), "ASKING"), 1);
}

TEST_F(ClusterRoute, tryagain_is_repeated_while_there_is_time) {
    open();
    warm();
    const auto key = key_of('a');
    cluster_.importing[slot_of_key(key)] = "b:1";
    cluster_.torn.insert(key);
    const auto start = node_.now();
    const auto late = ask(key, 200ms);
    const auto good = ask(key, 2s);
    run(500ms);
    expect_error(*late, errc::unavailable);
    EXPECT_EQ(late->when - start, 200ms);
    EXPECT_EQ(good->times, 0);
    const auto& at_a = cluster_.fleet.at("a:1").commands;
    const auto times =
        std::count(at_a.begin(), at_a.end(), "DO " + key + " " + std::to_string(asked_));
    EXPECT_GE(times, 8);
    EXPECT_LE(times, 70);
    cluster_.torn.clear();
    cluster_.there.insert(key);
    run(200ms);
    expect_from(*good, "b:1");
}

TEST_F(ClusterRoute, a_node_that_is_replaced_costs_what_was_sent_and_nothing_else) {
    open();
    warm();
    cluster_.fleet.at("a:1").last().takes = true;
    cluster_.fleet.at("a:1").heard = {};  // it has stopped
    const auto sent = ask(key_of('a'));
    run(10ms);
    cluster_.fleet.kill("a:1");
    run(1ms);
    const auto after = ask(key_of('a'));
    run(300ms);
    expect_error(*sent, errc::unknown_outcome);
    EXPECT_EQ(after->times, 0);
    EXPECT_FALSE(route_->up(key_of('a')));
    for (unsigned slot = 0; slot * 3 < redis_slots; ++slot) cluster_.hand_over(slot, "b:1");
    cluster_.agree();
    run(1'200ms);
    expect_from(*after, "b:1");
    EXPECT_EQ(told(), "up other ");
    EXPECT_TRUE(route_->up(key_of('a')));
}

TEST_F(ClusterRoute, a_slot_that_nobody_owns_is_waited_for) {
    const auto key = key_of('a');
    const auto slot = slot_of_key(key);
    for (auto& [node, map] : cluster_.believes) map[slot] = "?:1";  // it is not said where
    for (auto& [node, map] : cluster_.believes) map[slot] = std::string(300, 'x') + ":1";
    open();
    const auto late = ask(key, 1s);
    const auto good = ask(key, 8s);
    run(2s);
    expect_error(*late, errc::unavailable);
    EXPECT_EQ(good->times, 0);
    cluster_.agree();
    run(2s);
    expect_from(*good, "a:1");
}

TEST_F(ClusterRoute, a_mistrusted_node_is_asked_again_when_another_one_has_said_where_to_go) {
    open();
    warm();
    cluster_.asked_for_map.clear();
    cluster_.errors["a:1"] = "CLUSTERDOWN The cluster is down";
    const auto down = ask(key_of('a'));
    run(5ms);
    EXPECT_EQ(down->reply.error_word(), "CLUSTERDOWN");
    route_->mistrust(key_of('a'), {errc::unavailable, "CLUSTERDOWN"});
    EXPECT_FALSE(route_->up(key_of('a')));
    EXPECT_TRUE(route_->up(key_of('b')));
    const auto after = ask(key_of('a'));
    cluster_.errors["a:1"] = "";
    cluster_.hand_over(slot_of_key(key_of('a')), "c:1");
    cluster_.agree();
    run(200ms);
    expect_from(*after, "c:1");
    ASSERT_EQ(cluster_.asked_for_map.size(), 1U);
    EXPECT_NE(cluster_.asked_for_map[0], "a:1");
}

TEST_F(ClusterRoute, mistrust_again_and_again_asks_with_longer_waits) {
    open();
    warm();
    cluster_.asked_for_map.clear();
    const auto end = node_.now() + 20s;
    while (node_.now() < end) {
        if (route_->up(key_of('a'))) route_->mistrust(key_of('a'), {errc::unavailable, "READONLY"});
        run(5ms);
    }
    EXPECT_GE(cluster_.asked_for_map.size(), 20U);
    EXPECT_LE(cluster_.asked_for_map.size(), 80U);
}

TEST_F(ClusterRoute, without_the_right_to_ask_for_the_map_it_says_which_one_is_needed) {
    for (const auto* one : {"a:1", "b:1", "c:1"}) cluster_.refusals[one] = "NOPERM no permission";
    open({"a"});
    const auto early = ask(key_of('b'));
    run(100ms);
    expect_error(*early, errc::denied);
    const auto a = ask(key_of('b'));
    run(1ms);
    expect_error(*a, errc::denied);
    ASSERT_EQ(told(), "down ");
    EXPECT_EQ(events_[0].reason.error, errc::denied);
    EXPECT_EQ(
        events_[0].reason.why,
        "no node says where what is: the server at a:1 refused CLUSTER SLOTS: NOPERM; the user "
        "needs the right +cluster|slots");
    run(4s);
    EXPECT_EQ(cluster_.asked_for_map.size(), 1U);  // in no hurry
    cluster_.refusals.clear();
    run(3s);
    const auto b = ask(key_of('b'));
    run(10ms);
    expect_from(*b, "b:1");
}

TEST_F(ClusterRoute, a_right_that_is_taken_away_later_leaves_the_map_and_what_is_learnt) {
    open();
    warm();
    for (const auto* one : {"a:1", "b:1", "c:1"}) cluster_.refusals[one] = "NOPERM no permission";
    cluster_.hand_over(slot_of_key(key_of('a')), "b:1");
    const auto a = ask(key_of('a'));
    run(2s);
    expect_from(*a, "b:1");
    const auto b = ask(key_of('c'));
    run(10ms);
    expect_from(*b, "c:1");
}

TEST_F(ClusterRoute, a_wrong_password_is_a_denial) {
    for (const auto* one : {"a:1", "b:1", "c:1"}) {
        cluster_.fleet.at(one).answer_all([](const std::string&) { return "-WRONGPASS no\r\n"; });
    }
    open({"a", "b"}, {.login = {"u", "p"}});
    run(100ms);
    const auto a = ask(key_of('a'));
    run(1ms);
    expect_error(*a, errc::denied);
    ASSERT_FALSE(events_.empty());
    EXPECT_EQ(events_[0].reason.why,
              "no node says where what is: the server refused AUTH: \"WRONGPASS no\"");
}

TEST_F(ClusterRoute, a_server_that_is_no_node_is_said_to_be_none) {
    cluster_.refusals["a:1"] = "ERR This instance has cluster support disabled";
    open({"a"});
    run(100ms);
    ASSERT_FALSE(events_.empty());
    EXPECT_EQ(events_[0].reason.why,
              "no node says where what is: the server at a:1 is not a node of a cluster");
}

TEST_F(ClusterRoute, the_channel_moves_when_its_node_is_gone_or_owns_nothing_any_more) {
    open();
    std::vector<std::string> heard;
    route_->listen("c", [&](std::string_view m) { heard.emplace_back(m); });
    warm();
    const auto hearing_at = [&] {
        for (const auto& one : cluster_.nodes) {
            if (connections(one) == 2) return one;
        }
        return std::string();
    };
    const auto first = hearing_at();
    ASSERT_NE(first, "");
    cluster_.fleet.kill(first);
    run(3s);
    const auto second = hearing_at();
    ASSERT_NE(second, "");
    ASSERT_NE(second, first);
    EXPECT_EQ(told(), "up hearing deaf hearing ");
    cluster_.fleet.at(second).last().say(resp_texts({"message", "c", "news"}));
    run(1ms);
    EXPECT_EQ(heard, (std::vector<std::string>{"news"}));
    // It is no owner any more.
    cluster_.fleet.wake(first);
    for (unsigned slot = 0; slot < redis_slots; ++slot) {
        if (cluster_.owner[slot] == second) cluster_.hand_over(slot, first);
    }
    cluster_.agree();
    route_->mistrust(key_of(second[0]), {errc::unavailable, "CLUSTERDOWN"});
    run(3s);
    EXPECT_NE(hearing_at(), second);
    EXPECT_NE(hearing_at(), "");
}

TEST_F(ClusterRoute, down_is_when_no_node_serves) {
    open();
    warm();
    for (const auto* one : {"a:1", "b:1"}) cluster_.fleet.kill(one);
    run(1s);
    EXPECT_EQ(told(), "up ");
    cluster_.fleet.kill("c:1");
    run(1s);
    EXPECT_EQ(told(), "up down ");
    EXPECT_NE(events_[1].reason.why, "");
    const auto a = ask(key_of('a'));
    cluster_.fleet.wake("a:1");
    run(1s);
    expect_from(*a, "a:1");
    EXPECT_EQ(told(), "up down up ");
}

TEST_F(ClusterRoute, over_a_bound_it_is_busy) {
    for (const auto* one : {"a:1", "b:1", "c:1"}) cluster_.fleet.kill(one);
    open();
    std::vector<std::shared_ptr<asked>> all;
    for (int i = 0; i < 10'001; ++i) all.push_back(ask("k", 100ms));
    run(50ms);
    expect_error(*all.back(), errc::busy);
    EXPECT_EQ(all[9'999]->times, 0);
    run(100ms);
    expect_error(*all[9'999], errc::unavailable);
}

TEST_F(ClusterRoute, dropping_a_request_disturbs_no_other) {
    open();
    const auto waits = ask(key_of('a'));
    waits->interest.cancel();
    warm();
    cluster_.importing[slot_of_key(key_of('a'))] = "b:1";
    cluster_.torn.insert(key_of('a'));
    const auto later = ask(key_of('a'));
    run(1ms);
    later->interest.cancel();
    const auto on_its_way = ask(key_of('b'));
    on_its_way->interest.cancel();
    const auto good = ask(key_of('b'));
    run(1s);
    expect_from(*good, "b:1");
    EXPECT_EQ(waits->times + later->times + on_its_way->times, 0);
}

TEST_F(ClusterRoute, may_be_destroyed_in_its_callbacks) {
    for (int at = 0; at < 8; ++at) {
        int n = 0;
        redis_target target;
        for (const auto* one : {"a", "b", "c"}) target.nodes.push_back(stream_address::tcp(one, 1));
        auto* const self = &route_;
        *self =
            make_cluster_route(node_, cluster_.fleet, target, [&n, at, self](const route_event&) {
                if (n++ == at) self->reset();
            });
        route_->listen("c", [](std::string_view) {});
        cluster_.torn.insert(key_of('c'));
        cluster_.importing[slot_of_key(key_of('c'))] = "a:1";
        for (int i = 0; i < 6 && route_; ++i) {
            std::vector<op> interests;
            for (const char one : {'a', 'b', 'c'}) {
                interests.push_back(route_->request(
                    key_of(one), resp_command(std::vector<std::string>{"DO", key_of(one), "0"}),
                    node_.now() + 5s, [&n, at, self](std::error_code, const resp_reply&) {
                        if (n++ == at) self->reset();
                    }));
            }
            run(300ms);
            cluster_.lives["a:1"] += "f";
            for (const auto& one : cluster_.nodes) cluster_.fleet.cut(one);
            run(10ms);
        }
        route_.reset();
        run(1s);
        for (const auto& one : cluster_.nodes) EXPECT_EQ(connections(one), 0U) << at;
    }
}

}  // namespace
}  // namespace trinco::detail::test
