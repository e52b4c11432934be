// The ways through Sentinels and to a cluster with real servers: fail-over of a primary that is
// killed and of one that is paused, a slot that moves under load, a node that a replica replaces.
// Without a server the tests are skipped; `make servers` fetches one.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "tests/net/stream_harness.hpp"
#include "tests/store/redis/route_load.hpp"
#include "tests/store/redis/test_fleet_of_servers.hpp"

namespace trinco::detail::test {
namespace {

class RedisFleetReal : public stream_test {
protected:
    ~RedisFleetReal() override {
        on_loop([this] {
            load_.reset();
            route_.reset();
        });
    }
    void open(const std::string& url) {
        const auto target = std::get<redis_target>(parse_redis_url(url));
        on_loop([&] {
            route_ = make_redis_route(*on_, *factory_, target, [this](const route_event& e) {
                ++events_[static_cast<std::size_t>(e.kind)];
            });
            route_->listen("news", [this](std::string_view) { ++messages_; });
        });
        wait_until("the channel is heard", [this] { return count(kind::hearing) > 0; });
    }
    using kind = route_event::kind_t;
    [[nodiscard]] int count(kind k) const { return events_[static_cast<std::size_t>(k)]; }

    void begin_load(route_load::maker make) {
        on_loop([&] {
            load_.emplace(*on_, *route_, std::move(make), 5ms, patience);
            load_->begin();
        });
        wait_until("requests are answered", [this] { return so_far().answered > 20; });
    }
    route_load::result so_far() {
        route_load::result now;
        on_loop([&] { now = load_->so_far(); });
        return now;
    }
    // As many more answers as show that it goes on.
    void wait_for_more() {
        const auto before = so_far().answered;
        wait_until("more requests are answered",
                   [this, before] { return so_far().answered > before + 30; });
    }
    route_load::result end_load() {
        on_loop([&] { load_->stop(); });
        wait_until("every request has ended", [this] {
            bool settled = false;
            on_loop([&] { settled = load_->is_settled(); });
            return settled;
        });
        return so_far();
    }
    // What is published at `by` is heard.
    void expect_heard(const fleet_process& by) {
        const int before = messages_;
        wait_until("a message is heard", [&] {
            (void)by.call({"PUBLISH", "news", "x"});
            return messages_ > before;
        });
    }
    static std::int64_t value_of(const fleet_process& at, const std::string& key) {
        return std::stoll(at.call({"GET", key}).text);
    }
    // What was sent and not answered is unknown, nothing is refused, nothing happens twice.
    static void expect_true(const route_load::result& r) {
        EXPECT_EQ(r.not_applied, 0U);
        EXPECT_EQ(r.ended(), r.sent);
        EXPECT_GT(r.answered, r.unknown);
    }

    std::array<std::atomic<int>, 5> events_{};
    std::atomic<int> messages_{0};
    std::unique_ptr<redis_route> route_;
    std::optional<route_load> load_;
};

route_load::request increment(std::size_t) {
    return {"{n}", {"INCR", "{n}"}};
}

#define SERVER_OR_SKIP(program)               \
    const auto program = find_redis_server(); \
    if (!program) GTEST_SKIP() << "no redis-server and no valkey-server; see make servers"

TEST_F(RedisFleetReal, a_killed_primary_and_a_paused_one_are_left_for_the_new_one) {
    SERVER_OR_SKIP(program);
    sentinel_fleet fleet(*program);
    open(fleet.url());
    begin_load(increment);
    fleet.servers[0].kill();
    wait_until("the replica is the primary", [&] { return fleet.primary() == 1; });
    wait_for_more();
    expect_heard(fleet.servers[1]);
    EXPECT_GE(count(kind::other_server), 1);

    fleet.servers[0].start();
    wait_until("the one before is its replica", [&] {
        const auto role = fleet.servers[0].call({"ROLE"});
        return role.elements.at(0).text == "slave" && role.elements.at(3).text == "connected";
    });
    const int others = count(kind::other_server);
    fleet.servers[1].signal(SIGSTOP);
    wait_until("it is the primary again", [&] { return fleet.primary() == 0; });
    wait_for_more();
    fleet.servers[1].signal(SIGCONT);
    wait_for_more();
    expect_heard(fleet.servers[0]);
    EXPECT_GE(count(kind::other_server), others + 1);
    const auto r = end_load();
    expect_true(r);
    // A primary that was not told yet may have served others, but not us.
    EXPECT_EQ(r.errors.size(), r.errors.count("READONLY"));
}

TEST_F(RedisFleetReal, a_slot_moves_under_load_and_nobody_sees_it) {
    SERVER_OR_SKIP(program);
    cluster_fleet fleet(*program, {}, 60s);
    // With no more rights than that takes.
    for (const auto& node : fleet.nodes) {
        (void)node.call({"ACL", "SETUSER", "mover", "on", ">pw", "~{n}*", "&news", "+eval", "+incr",
                         "+cluster|slots", "+asking", "+subscribe"});
    }
    const auto url = fleet.url();
    open(std::string(url).insert(url.find("://") + 3, "mover:pw@"));
    // Two keys of one slot: while they are moved one by one, they are at two nodes.
    const std::string script = "redis.call('incr', KEYS[1]) return redis.call('incr', KEYS[2])";
    begin_load([&](std::size_t) -> route_load::request {
        return {"{n}a", {"EVAL", script, "2", "{n}a", "{n}b"}};
    });
    const auto slot =
        static_cast<unsigned>(fleet.nodes[0].call({"CLUSTER", "KEYSLOT", "{n}"}).integer);
    auto from = fleet.owner(slot);
    for (int round = 0; round < 4; ++round) {
        const auto to = (from + 1) % 3;
        fleet.move_slot(slot, to, [this] { wait_for_more(); });
        wait_for_more();
        from = to;
    }
    const auto r = end_load();
    EXPECT_EQ(r.answered, r.sent);
    EXPECT_EQ(r.unknown + r.not_applied + r.errors.size(), 0U);
    EXPECT_EQ(value_of(fleet.nodes[from], "{n}a"), static_cast<std::int64_t>(r.sent));
    EXPECT_EQ(value_of(fleet.nodes[from], "{n}b"), static_cast<std::int64_t>(r.sent));
    EXPECT_GE(count(kind::other_server), 4);
    EXPECT_EQ(count(kind::down), 0);
    route_traffic t;
    on_loop([&] { t = route_->traffic(); });
    EXPECT_GE(t.redirections, 4U);
}

TEST_F(RedisFleetReal, a_node_that_is_killed_is_left_for_its_replica) {
    SERVER_OR_SKIP(program);
    cluster_fleet fleet(*program);
    open(fleet.url());
    begin_load(increment);
    const auto slot =
        static_cast<unsigned>(fleet.nodes[0].call({"CLUSTER", "KEYSLOT", "{n}"}).integer);
    const auto owner = fleet.owner(slot);
    const auto replica = owner + 3;
    fleet.nodes[owner].kill();
    wait_until("the replica owns the slot", [&] { return fleet.owner(slot, replica) == replica; });
    wait_for_more();
    EXPECT_GE(count(kind::other_server), 1);
    expect_heard(fleet.nodes[replica]);
    const auto r = end_load();
    expect_true(r);
    EXPECT_EQ(r.errors.size(), r.errors.count("CLUSTERDOWN"));
    const auto value = value_of(fleet.nodes[replica], "{n}");
    EXPECT_LE(value, static_cast<std::int64_t>(r.answered + r.unknown));
}

}  // namespace
}  // namespace trinco::detail::test
