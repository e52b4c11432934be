#include "store/consul/consul_url.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace trinco::detail {
namespace {

consul_target parsed(std::string_view url) {
    auto made = parse_consul_url(url);
    if (const auto* wrong = std::get_if<std::string>(&made)) {
        ADD_FAILURE() << url << ": " << *wrong;
        return {};
    }
    return std::get<consul_target>(std::move(made));
}

std::string fault(std::string_view url) {
    auto made = parse_consul_url(url);
    if (auto* wrong = std::get_if<std::string>(&made)) return std::move(*wrong);
    ADD_FAILURE() << url << " was taken";
    return {};
}

stream_address at(std::string host, std::uint16_t port = 8500) {
    return stream_address::tcp(std::move(host), port);
}

TEST(ConsulUrl, addresses) {
    EXPECT_EQ(parsed("consul://a"), (consul_target{.way = {.addresses = {at("a")}}}));
    EXPECT_EQ(parsed("CONSUL://a/"), parsed("consul://a"));
    EXPECT_EQ(parsed("consul://a:1,[::1]:2,[::1]").way.addresses,
              (std::vector{at("a", 1), at("::1", 2), at("::1")}));
    EXPECT_EQ(parsed("consuls://a").way.addresses, (std::vector{at("a", 8501)}))
        << "Consul has another port for TLS";
}

TEST(ConsulUrl, tls) {
    const auto t = parsed("consuls://a?ca=/c&cert=/d&key=/k&server_name=consul.test&verify=no");
    EXPECT_EQ(t.way.tls, (tls_settings{"consul.test", "/c", "/d", "/k", false}));
    EXPECT_EQ(parsed("consuls://a").way.tls, tls_settings{});
    EXPECT_EQ(parsed("consul://a").way.tls, std::nullopt);
}

TEST(ConsulUrl, token_datacenter_and_namespace) {
    EXPECT_EQ(parsed("consul://a?token_file=/run/a%20b").way.token_file, "/run/a b");
    EXPECT_EQ(parsed("consul://a?token=0f-%2b").way.token, "0f-+");
    const auto t = parsed("consul://a?dc=dc-2&ns=team_1");
    EXPECT_EQ(t.way.datacenter, "dc-2");
    EXPECT_EQ(t.way.name_space, "team_1");
}

TEST(ConsulUrl, where_locks_lie) {
    EXPECT_EQ(parsed("consul://a?prefix=shop/").prefix, "shop/");
    EXPECT_TRUE(parsed("consul://a?keys=plain").plain_keys);
    EXPECT_FALSE(parsed("consul://a").plain_keys);
    EXPECT_EQ(parsed("consul://a?token_epoch=255").token_epoch, 255);
}

TEST(ConsulUrl, faults_are_said_in_a_sentence) {
    EXPECT_NE(fault("consul:a").find("two slashes"), std::string::npos);
    EXPECT_NE(fault("consulx://a").find("consuls://"), std::string::npos);
    EXPECT_NE(fault("consul://").find("host is missing"), std::string::npos);
    EXPECT_NE(fault("consul://a,a:8500").find("twice"), std::string::npos);
    EXPECT_NE(fault("consul://a:0").find("1 to 65535"), std::string::npos);
    EXPECT_NE(fault("consul://a/path").find("prefix="), std::string::npos);
    EXPECT_NE(fault("consul://ann:pw@a").find("token_file="), std::string::npos);
    EXPECT_NE(fault("consul://a?ca=/x").find("consuls://"), std::string::npos);
    EXPECT_NE(fault("consuls://a?cert=/x").find("together"), std::string::npos);
    EXPECT_NE(fault("consuls://a?verify=maybe").find("yes or no"), std::string::npos);
    EXPECT_NE(fault("consul://a?token_epoch=256").find("0 to 255"), std::string::npos);
    EXPECT_NE(fault("consul://a?prefix=/a").find("slash"), std::string::npos);
    EXPECT_NE(fault("consul://a?prefix=a//b").find("prefix"), std::string::npos);
    EXPECT_NE(fault("consul://a?keys=all").find("plain"), std::string::npos);
    EXPECT_NE(fault("consul://a?prefix=a/./b").find("segment"), std::string::npos);
    EXPECT_NE(fault("consul://a?dc=a.b").find("dc is 1 to 64"), std::string::npos);
    EXPECT_EQ(fault("consul://a?dc=a.b").find("a.b"), std::string::npos) << "it may be a secret";
    EXPECT_NE(fault("consul://a?ns=").find("1 to 64"), std::string::npos);
    EXPECT_NE(fault("consul://a?dc=x&dc=y").find("twice"), std::string::npos);
    EXPECT_NE(fault("consul://a?dc=%zz").find("%25"), std::string::npos);
    EXPECT_NE(fault("consul://a?token_file=").find("no value"), std::string::npos);
    EXPECT_NE(fault("consul://a?token=x&token_file=/y").find("enough"), std::string::npos);
    EXPECT_NE(fault("consul://a#x").find("%23"), std::string::npos);
    EXPECT_NE(fault("consul://a?timeout=3").find("token_epoch"), std::string::npos);
}

TEST(ConsulUrl, no_sentence_shows_a_token) {
    for (const auto* url :
         {"consul://a?token=ge%20heim", "consul://geheim@a", "consul://a?geheim=1",
          "consul://a?token=geheim&token_file=/y", "consul://a?token=geheim%",
          "consul://a?token=geheim#b", "consul://a?token=geheim&x=y"}) {
        const auto sentence = fault(url);
        EXPECT_EQ(sentence.find("heim"), std::string::npos) << sentence;
    }
}

TEST(ConsulUrl, whatever_comes_is_taken_or_refused) {
    std::mt19937 random(7);
    const std::string letters = "consul:/@?&=,%[]#a1.-";
    for (int i = 0; i < 20'000; ++i) {
        std::string url = "consul://";
        for (auto n = random() % 24; n > 0; --n) url += letters[random() % letters.size()];
        const auto made = parse_consul_url(url);
        if (const auto* wrong = std::get_if<std::string>(&made)) {
            EXPECT_FALSE(wrong->empty()) << url;
        } else {
            EXPECT_FALSE(std::get<consul_target>(made).way.addresses.empty()) << url;
        }
    }
}

}  // namespace
}  // namespace trinco::detail
