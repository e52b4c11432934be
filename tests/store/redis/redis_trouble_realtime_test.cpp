// What a registry's report says is wrong, with real servers that say nothing, or nothing about one
// breaker. Without a server the tests are skipped; `make servers` fetches one.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/redis/script_protocol.hpp"
#include "tests/net/stream_harness.hpp"
#include "tests/store/redis/redis_client.hpp"
#include "tests/store/redis/test_fleet_of_servers.hpp"
#include "tests/store/redis/test_server.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/redis.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {
namespace {

class RedisTrouble : public testing::Test {
protected:
    void open(const std::string& url) {
        registry_options o;
        o.defaults.store_timeout = 50ms;
        o.defaults.degraded_after = 300ms;
        registry_ = std::make_unique<breaker_registry>(trinco::open(url, {drivers::redis()}), o);
    }
    // Calls go on until the report says it.
    [[nodiscard]] bool says(const std::string& what, std::chrono::milliseconds bound = 10s) {
        return comes_true(
            [&] {
                registry_->get("payments").try_acquire().success();
                return registry_->report().trouble.find(what) != std::string::npos;
            },
            bound);
    }
    [[nodiscard]] bool is_well() {
        return comes_true([&] {
            registry_->get("payments").try_acquire().success();
            const auto r = registry_->report();
            return r.trouble.empty() && !r.degraded && r.exchange_round_trips.count > 0;
        });
    }
    [[nodiscard]] std::string trouble() const { return registry_->report().trouble; }

    std::unique_ptr<breaker_registry> registry_;
};

#define SERVER_OR_SKIP(program)               \
    const auto program = find_redis_server(); \
    if (!program) GTEST_SKIP() << "no redis-server and no valkey-server; see make servers"

TEST_F(RedisTrouble, a_paused_server_does_not_answer) {
    SERVER_OR_SKIP(program);
    test_server server(*program);
    open("redis+unix:" + server.socket());
    ASSERT_TRUE(is_well()) << trouble();
    server.send(SIGSTOP);
    EXPECT_TRUE(says("does not answer")) << trouble();
    // Then the connection is given up, and whoever connects anew is not let in.
    EXPECT_TRUE(says("within 1000 ms")) << trouble();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(says("ms", 0ms)) << trouble();
    server.send(SIGCONT);
    EXPECT_TRUE(is_well()) << trouble();
}

// In the backlog of a listener that accepts nobody, connections are made all the same.
TEST_F(RedisTrouble, who_accepts_and_never_answers_does_not_answer) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    ::socklen_t size = sizeof at;
    ASSERT_EQ(::bind(listener, reinterpret_cast<const ::sockaddr*>(&at), size), 0);
    ASSERT_EQ(::listen(listener, 64), 0);
    ::getsockname(listener, reinterpret_cast<::sockaddr*>(&at), &size);
    open("redis://127.0.0.1:" + std::to_string(::ntohs(at.sin_port)));
    EXPECT_TRUE(says("cannot be reached")) << trouble();
    EXPECT_TRUE(says("did not let us in within 1000 ms")) << trouble();
    ::close(listener);
    EXPECT_TRUE(says("refused")) << trouble();
}

TEST_F(RedisTrouble, a_key_of_a_foreign_type_is_named) {
    SERVER_OR_SKIP(program);
    test_server server(*program);
    test_connection by_hand(server.socket());
    open("redis+unix:" + server.socket());
    (void)registry_->get("orders");
    ASSERT_TRUE(is_well()) << trouble();
    const auto key = breaker_keys("default", "payments")[0];
    by_hand.call({"DEL", key});
    by_hand.call({"SET", key, "not a breaker"});
    EXPECT_TRUE(says("something else than a breaker lives under")) << trouble();
    // What the server says about another breaker does not hide it.
    for (int i = 0; i < 200; ++i) {
        registry_->get("orders").try_acquire().failure();
        EXPECT_TRUE(says("something else than a breaker lives under", 0ms)) << trouble();
        ::poll(nullptr, 0, 2);
    }
    by_hand.call({"DEL", key});
    EXPECT_TRUE(is_well()) << trouble();
}

// The others of its cluster answer; the node that has the breaker does not.
TEST_F(RedisTrouble, a_paused_node_of_a_cluster_does_not_answer) {
    SERVER_OR_SKIP(program);
    cluster_fleet fleet(*program, {}, 60s);
    open(fleet.url());
    ASSERT_TRUE(is_well()) << trouble();
    const auto key = breaker_keys("default", "payments")[0];
    const auto slot =
        static_cast<unsigned>(fleet.nodes[0].call({"CLUSTER", "KEYSLOT", key}).integer);
    const auto owner = fleet.owner(slot);
    fleet.nodes[owner].signal(SIGSTOP);
    EXPECT_TRUE(says("does not answer")) << trouble();
    for (int i = 0; i < 100; ++i) {
        registry_->get("payments").try_acquire().success();
        EXPECT_NE(trouble(), "");
        ::poll(nullptr, 0, 20);
    }
    fleet.nodes[owner].signal(SIGCONT);
    EXPECT_TRUE(is_well()) << trouble();
}

}  // namespace
}  // namespace trinco::detail::test
