// Strict calls on a real server, counted there: one look each, no exchange for them, nothing
// written; and what a process's report says about it.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <string>

#include "tests/store/redis/test_server.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/redis.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

class RedisStrict : public testing::Test {
protected:
    void SetUp() override {
        const auto program = find_redis_server();
        if (!program) {
            GTEST_SKIP() << "there is no redis-server and no valkey-server in PATH; `make servers` "
                            "gets one";
        }
        server_.emplace(*program);
        by_hand_.emplace(server_->socket());
        o_.defaults.consistency = consistency::strict;
        // No exchange by the clock for a while, and no look that is late on a busy machine.
        o_.defaults.sync_interval = 5s;
        o_.defaults.store_timeout = o_.defaults.degraded_after = 5s;
    }
    [[nodiscard]] store open_store() const {
        return open("redis+unix:" + server_->socket(), {drivers::redis()});
    }
    // How often the server carried a command out.
    [[nodiscard]] std::uint64_t calls_of(const std::string& command) {
        const std::string all = by_hand_->call({"INFO", "commandstats"}).text;
        const std::string key = "cmdstat_" + command + ":calls=";
        const auto at = all.find(key);
        return at == std::string::npos ? 0 : std::stoull(all.substr(at + key.size()));
    }

    std::optional<test_server> server_;
    std::optional<test_connection> by_hand_;
    registry_options o_;
};

TEST_F(RedisStrict, ACallIsOneLookAndWritesNothing) {
    breaker_registry r(open_store(), o_);
    auto& b = r.get("payments");
    // Options are stamped and the text of the look is there.
    while (r.report().looks == 0) b.try_acquire().success();
    const auto before = r.report();
    const auto scripts = calls_of("evalsha");
    const auto writes = calls_of("hset") + calls_of("pexpire") + calls_of("zadd");
    constexpr std::uint64_t calls = 200;
    for (std::uint64_t n = 0; n < calls; ++n) b.try_acquire().success();
    const auto after = r.report();
    EXPECT_EQ(after.looks - before.looks, calls);
    EXPECT_EQ(after.strict_exchanges, before.strict_exchanges);
    EXPECT_EQ(after.looks_failed, 0U);
    // An exchange by the clock may have come in between.
    const auto exchanges = after.exchanges - before.exchanges;
    EXPECT_LE(exchanges, 3U);
    EXPECT_LE(calls_of("evalsha") - scripts, calls + exchanges + 1);
    if (exchanges == 0) {
        EXPECT_EQ(calls_of("hset") + calls_of("pexpire") + calls_of("zadd"), writes);
    }
    EXPECT_EQ(after.look_round_trips.count - before.look_round_trips.count, calls);
    EXPECT_GT(after.look_cost.count, 0U);
    EXPECT_LE(after.look_cost.quantile(0.5), after.look_round_trips.quantile(0.5));
    EXPECT_GE(after.wire.requests - before.wire.requests, calls);
    EXPECT_GT(after.wire.bytes_in, before.wire.bytes_in);
    EXPECT_EQ(after.store, "redis+unix:" + server_->socket());
    std::cout << "look: script " << after.look_cost.quantile(0.5).count() << " us, round trip "
              << after.look_round_trips.quantile(0.5).count() << " us; exchange: script "
              << after.exchange_cost.quantile(0.5).count() << " us\n";
}

// What another process decided is obeyed by the next call, not by one after some notice.
TEST_F(RedisStrict, ACallObeysWhatWasDecidedBeforeIt) {
    breaker_registry r(open_store(), o_);
    breaker_registry operators(open_store(), o_);
    auto& b = r.get("payments");
    auto& theirs = operators.get("payments");
    while (r.report().looks == 0) b.try_acquire().success();
    for (int n = 0; n < 20; ++n) {
        ASSERT_FALSE(theirs.force_open("drill"));
        EXPECT_FALSE(b.try_acquire());
        ASSERT_FALSE(theirs.resume("over"));
        auto p = b.try_acquire();
        EXPECT_TRUE(p);
        p.success();
    }
}

}  // namespace
}  // namespace trinco::detail::test
