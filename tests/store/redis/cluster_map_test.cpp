#include "store/redis/cluster_map.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "store/redis/redis_slot.hpp"

namespace trinco::detail::test {
namespace {

const auto asked = stream_address::tcp("seed", 7);

resp_reply number(std::int64_t n) {
    return resp_reply::of(n);
}
resp_reply text(const std::string& t) {
    return resp_reply::of(t);
}
resp_reply list(std::vector<resp_reply> all) {
    return resp_reply::of(std::move(all));
}
resp_reply node(resp_reply host, std::int64_t port, std::vector<resp_reply> details = {}) {
    return list({std::move(host), number(port), text("id"), list(std::move(details))});
}
resp_reply range(std::int64_t first, std::int64_t last, std::vector<resp_reply> nodes) {
    std::vector<resp_reply> all{number(first), number(last)};
    for (auto& one : nodes) all.push_back(std::move(one));
    return list(std::move(all));
}

// What CLUSTER KEYSLOT of a server says.
TEST(RedisSlot, is_what_servers_say) {
    const std::map<std::string, unsigned> known{
        {"123456789", 12'739}, {"foo", 12'182}, {"bar", 5'061},
        {"hello", 866},        {"", 0},         {"trinco:1:default:{payments}", 8'507}};
    for (const auto& [key, slot] : known) EXPECT_EQ(slot_of_key(key), slot) << key;
}

TEST(RedisSlot, the_first_tag_decides_when_there_is_something_in_it) {
    const std::map<std::string, unsigned> known{{"{user1000}.following", 3'443},
                                                {"foo{}{bar}", 8'363},
                                                {"foo{{bar}}zap", 4'015},
                                                {"foo{bar}{zap}", 5'061},
                                                {"{}", 15'257},
                                                {"{", 4'092},
                                                {"a}b{c", 13'587}};
    for (const auto& [key, slot] : known) EXPECT_EQ(slot_of_key(key), slot) << key;
    EXPECT_EQ(slot_of_key("user1000"), slot_of_key("{user1000}.following"));
    EXPECT_EQ(slot_of_key("{bar"), slot_of_key("{bar"));
}

TEST(RedisSlot, any_bytes_are_in_a_slot) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) {
        std::string key(random() % 20, ' ');
        for (auto& c : key)
            c = static_cast<char>(random() % 3 == 0 ? "{}"[random() % 2] : random());
        EXPECT_LT(slot_of_key(key), redis_slots);
    }
}

TEST(ClusterMap, says_who_owns_what) {
    const auto map = cluster_map::from(
        list({range(0, 99, {node(text("a"), 1), node(text("r"), 9)}),
              range(200, 16'383, {node(text("::2"), 2)}), range(150, 150, {node(text("a"), 1)})}),
        asked);
    ASSERT_TRUE(map);
    EXPECT_EQ(*map->owner(0), stream_address::tcp("a", 1));
    EXPECT_EQ(*map->owner(99), stream_address::tcp("a", 1));
    EXPECT_EQ(map->owner(100), nullptr);
    EXPECT_EQ(*map->owner(150), stream_address::tcp("a", 1));
    EXPECT_EQ(*map->owner(16'383), stream_address::tcp("::2", 2));
    EXPECT_EQ(map->nodes().size(), 2U);  // not the replica
}

TEST(ClusterMap, without_a_host_it_is_the_one_that_was_asked) {
    auto with_tls = asked;
    with_tls.tls = tls_settings{.ca_file = "ca"};
    const auto map =
        cluster_map::from(list({range(0, 0, {node({}, 1)}), range(1, 1, {node(text(""), 2)}),
                                range(2, 2, {node(text("?"), 3, {text("ip"), text("10.0.0.3")})}),
                                range(3, 3, {node(text("?"), 4)})}),
                          with_tls);
    ASSERT_TRUE(map);
    auto expected = stream_address::tcp("seed", 1);
    expected.tls = with_tls.tls;
    EXPECT_EQ(*map->owner(0), expected);
    EXPECT_EQ(map->owner(1)->host, "seed");
    EXPECT_EQ(map->owner(1)->port, 2);
    EXPECT_EQ(map->owner(2)->host, "10.0.0.3");
    EXPECT_EQ(map->owner(3)->host, "seed");
}

TEST(ClusterMap, what_makes_no_sense_is_no_map) {
    for (const auto& wrong :
         std::vector<resp_reply>{{},
                                 list({}),
                                 text("x"),
                                 resp_reply::error_of("LOADING"),
                                 list({text("x")}),
                                 list({range(0, 1, {})}),
                                 list({range(-1, 1, {node(text("a"), 1)})}),
                                 list({range(0, 16'384, {node(text("a"), 1)})}),
                                 list({range(0, 1, {node(text("a"), 0)})}),
                                 list({range(0, 1, {node(text("a"), 65'536)})}),
                                 list({range(0, 1, {node(text(std::string(256, 'a')), 1)})}),
                                 list({range(0, 1, {text("a")})}),
                                 list({list({text("0"), number(1), node(text("a"), 1)})})}) {
        EXPECT_FALSE(cluster_map::from(wrong, asked));
    }
    EXPECT_TRUE(cluster_map::from(list({range(5, 4, {node(text("a"), 1)})}), asked));  // of nothing
}

TEST(ClusterMap, learns_another_owner) {
    auto map = cluster_map::from(list({range(0, 9, {node(text("a"), 1)})}), asked);
    ASSERT_TRUE(map);
    map->set_owner(3, stream_address::tcp("b", 2));
    EXPECT_EQ(map->owner(3)->host, "b");
    EXPECT_EQ(map->owner(4)->host, "a");
    map->set_owner(16'383, stream_address::tcp("a", 1));
    EXPECT_EQ(map->owner(16'383)->host, "a");
    EXPECT_EQ(map->nodes().size(), 2U);
}

TEST(Redirection, says_where_to) {
    const auto in = [](const std::string& t) {
        return redirection_in(resp_reply::error_of(t), asked);
    };
    const auto moved = in("MOVED 3999 10.0.0.1:6381");
    ASSERT_TRUE(moved);
    EXPECT_TRUE(moved->moved);
    EXPECT_EQ(moved->slot, 3'999U);
    EXPECT_EQ(moved->to, stream_address::tcp("10.0.0.1", 6'381));
    EXPECT_FALSE(in("ASK 1 a:1")->moved);
    EXPECT_EQ(in("ASK 1 :6381")->to, stream_address::tcp("seed", 6'381));
    EXPECT_EQ(in("MOVED 1 fe80::1:2")->to, stream_address::tcp("fe80::1", 2));
    EXPECT_EQ(in("MOVED 1 [fe80::1]:2")->to, stream_address::tcp("fe80::1", 2));
    EXPECT_EQ(in("MOVED 1 db-1.example:2")->to, stream_address::tcp("db-1.example", 2));
    for (const std::string wrong :
         {"MOVED", "MOVED ", "MOVED 1", "MOVED 1 ", "MOVED 1 a", "MOVED 1 a:", "MOVED 1 a:0",
          "MOVED 1 a:65536", "MOVED 1 a:-1", "MOVED x a:1", "MOVED 16384 a:1", "MOVED -1 a:1",
          "MOVED 1 ?:1", "ASKED 1 a:1", "ERR MOVED 1 a:1", ""}) {
        EXPECT_FALSE(in(wrong)) << wrong;
    }
    EXPECT_FALSE(redirection_in(text("MOVED 1 a:1"), asked));
}

}  // namespace
}  // namespace trinco::detail::test
