#include "store/etcd/etcd_url.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace trinco::detail {
namespace {

etcd_target parsed(std::string_view url) {
    auto made = parse_etcd_url(url);
    if (const auto* wrong = std::get_if<std::string>(&made)) {
        ADD_FAILURE() << url << ": " << *wrong;
        return {};
    }
    return std::get<etcd_target>(std::move(made));
}

std::string fault(std::string_view url) {
    auto made = parse_etcd_url(url);
    if (auto* wrong = std::get_if<std::string>(&made)) return std::move(*wrong);
    ADD_FAILURE() << url << " was taken";
    return {};
}

stream_address at(std::string host, std::uint16_t port = 2379) {
    return stream_address::tcp(std::move(host), port);
}

TEST(EtcdUrl, members) {
    EXPECT_EQ(parsed("etcd://a"), (etcd_target{.members = {at("a")}}));
    EXPECT_EQ(parsed("ETCD://a/"), parsed("etcd://a"));
    EXPECT_EQ(parsed("etcd://a:1,[::1]:2,[::1]"),
              (etcd_target{.members = {at("a", 1), at("::1", 2), at("::1")}}));
}

TEST(EtcdUrl, user_and_password) {
    const auto t = parsed("etcd://ann:p%40%2f%25@a,b");
    EXPECT_EQ(t.user, "ann");
    EXPECT_EQ(t.password, "p@/%");
    EXPECT_EQ(t.members.size(), 2U);
    EXPECT_EQ(parsed("etcd://ann:p@w@a").password, "p@w");
}

TEST(EtcdUrl, tls) {
    const auto t = parsed("etcds://a?ca=/c&cert=/d&key=/k&server_name=etcd.test&verify=no");
    EXPECT_EQ(t.tls, (tls_settings{"etcd.test", "/c", "/d", "/k", false}));
    EXPECT_EQ(parsed("etcds://a").tls, tls_settings{});
    EXPECT_EQ(parsed("etcd://a").tls, std::nullopt);
}

TEST(EtcdUrl, prefix_and_epoch) {
    EXPECT_EQ(parsed("etcd://a?prefix=shop").prefix, "shop/");
    EXPECT_EQ(parsed("etcd://a?prefix=/shop/locks/").prefix, "/shop/locks/");
    EXPECT_EQ(parsed("etcd://a?token_epoch=255").token_epoch, 255);
}

TEST(EtcdUrl, faults_are_said_in_a_sentence) {
    EXPECT_NE(fault("etcd:a").find("two slashes"), std::string::npos);
    EXPECT_NE(fault("etcd3://a").find("etcds://"), std::string::npos);
    EXPECT_NE(fault("etcd://").find("host is missing"), std::string::npos);
    EXPECT_NE(fault("etcd://a,,b").find("host is missing"), std::string::npos);
    EXPECT_NE(fault("etcd://a,a:2379").find("twice"), std::string::npos);
    EXPECT_NE(fault("etcd://a:0").find("1 to 65535"), std::string::npos);
    EXPECT_NE(fault("etcd://a/path").find("prefix="), std::string::npos);
    EXPECT_NE(fault("etcd://ann@a").find("colon"), std::string::npos);
    EXPECT_NE(fault("etcd://:p@a").find("empty"), std::string::npos);
    EXPECT_NE(fault("etcd://a?ca=/x").find("etcds://"), std::string::npos);
    EXPECT_NE(fault("etcds://a?cert=/x").find("together"), std::string::npos);
    EXPECT_NE(fault("etcds://a?verify=maybe").find("yes or no"), std::string::npos);
    EXPECT_NE(fault("etcd://a?token_epoch=256").find("0 to 255"), std::string::npos);
    EXPECT_NE(fault("etcd://a?prefix=a//b").find("prefix"), std::string::npos);
    EXPECT_NE(fault("etcd://a?prefix=").find("prefix"), std::string::npos);
    EXPECT_NE(fault("etcd://a?prefix=" + std::string(101, 'x')).find("101 bytes"),
              std::string::npos);
    EXPECT_NE(fault("etcd://a?prefix=x&prefix=y").find("twice"), std::string::npos);
    EXPECT_NE(fault("etcd://a#x").find("%23"), std::string::npos);
    EXPECT_NE(fault("etcd://a?timeout=3").find("token_epoch"), std::string::npos);
}

TEST(EtcdUrl, no_sentence_shows_a_password) {
    for (const auto* url : {"etcd://ann:geheim%@a", "etcd://ann:ge?heim@a", "etcd://geheim@a",
                            "etcd://ann:geheim@a?x=y", "etcd://ann:geheim", "etcd://a?geheim=1",
                            "etcd://:geheim@a", "etcd://ann:geheim@a#b"}) {
        const auto sentence = fault(url);
        EXPECT_EQ(sentence.find("heim"), std::string::npos) << sentence;
    }
}

TEST(EtcdUrl, whatever_comes_is_taken_or_refused) {
    std::mt19937 random(7);
    const std::string letters = "etcd:/@?&=,%[]#a1.-";
    for (int i = 0; i < 20'000; ++i) {
        std::string url = "etcd://";
        for (auto n = random() % 24; n > 0; --n) url += letters[random() % letters.size()];
        const auto made = parse_etcd_url(url);
        if (const auto* wrong = std::get_if<std::string>(&made)) {
            EXPECT_FALSE(wrong->empty()) << url;
        } else {
            EXPECT_FALSE(std::get<etcd_target>(made).members.empty()) << url;
        }
    }
}

}  // namespace
}  // namespace trinco::detail
