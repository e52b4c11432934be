// TLS on the ways to real servers that belong together: Sentinels with their servers, before and
// after a fail-over, and the nodes of a cluster. Whoever a certificate is not for is not asked.
// Without a server the tests are skipped; `make servers` fetches one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/net/tls_world.hpp"
#include "tests/store/redis/redis_client.hpp"
#include "tests/store/redis/test_fleet_of_servers.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

class RedisTlsFleet : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(of_.made()); }
    [[nodiscard]] fleet_tls files() const {
        return {of_.at("server.pem"), of_.at("server.key"), of_.at("ca.pem")};
    }
    // What a URL says of TLS, with `authority` as the only one that is believed.
    [[nodiscard]] std::string believing(const std::string& authority = "ca.pem") const {
        return "?tls=yes&ca=" + of_.at(authority);
    }
    // The certificate is for another name, or by somebody else.
    void expect_refused(const std::string& url) {
        for (const auto& words :
             {believing() + "&server_name=bad.test", believing("other_ca.pem")}) {
            redis_client doubting(url + words);
            EXPECT_EQ(doubting.exchange("payments", 500ms), errc::unavailable) << words;
            EXPECT_NE(doubting.trouble().find("certificate"), std::string::npos)
                << words << ": " << doubting.trouble();
        }
        redis_client plain(url);
        EXPECT_TRUE(plain.exchange("payments", 500ms)) << "they speak nothing but TLS";
    }

    const certificates of_;
};

#define SERVER_OR_SKIP(program)               \
    const auto program = find_redis_server(); \
    if (!program) GTEST_SKIP() << "no redis-server and no valkey-server; see make servers"

TEST_F(RedisTlsFleet, by_sentinels_before_and_after_a_fail_over) {
    SERVER_OR_SKIP(program);
    sentinel_fleet fleet(*program, {}, 600ms, files());
    redis_client client(fleet.url() + believing());
    client.subscribe();
    ASSERT_FALSE(client.exchange("payments", 5s)) << client.trouble();
    EXPECT_EQ(client.trouble(), "");
    EXPECT_TRUE(comes_true([&] {
        client.control("payments", control_verb::trip);
        return client.heard(notice::kind_t::changed) > 0;
    }));
    redis_client by_name(fleet.url() + believing() + "&server_name=good.test");
    EXPECT_FALSE(by_name.exchange("payments", 5s)) << by_name.trouble();
    expect_refused(fleet.url());
    fleet.servers[0].kill();
    wait_until("the replica is the primary", [&] { return fleet.primary() == 1; });
    EXPECT_TRUE(comes_true([&] { return !client.exchange("payments", 2s); })) << client.trouble();
    EXPECT_GE(client.heard(notice::kind_t::new_server), 1U);
}

TEST_F(RedisTlsFleet, to_each_node_of_a_cluster) {
    SERVER_OR_SKIP(program);
    cluster_fleet fleet(*program, {}, 60s, files());
    redis_client client(fleet.url() + believing());
    client.subscribe();
    std::vector<std::string> breakers;
    for (int i = 0; i < 12; ++i) breakers.push_back("b" + std::to_string(i));
    ASSERT_FALSE(client.exchange(breakers, 10s).error) << client.trouble();
    for (std::size_t node = 0; node < 3; ++node) {
        EXPECT_GT(fleet.nodes[node].call({"DBSIZE"}).integer, 0) << "by the keys' slots";
    }
    EXPECT_TRUE(comes_true([&] {
        client.control("b0", control_verb::trip);
        return client.heard(notice::kind_t::changed) > 0;
    }));
    expect_refused(fleet.url());
}

}  // namespace
}  // namespace trinco::detail::test
