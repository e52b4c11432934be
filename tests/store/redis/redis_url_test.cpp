#include "store/redis/redis_url.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace trinco::detail {
namespace {

using kind = redis_target::kind_t;

redis_target parsed(std::string_view url) {
    auto made = parse_redis_url(url);
    if (const auto* wrong = std::get_if<std::string>(&made)) {
        ADD_FAILURE() << url << ": " << *wrong;
        return {};
    }
    return std::get<redis_target>(std::move(made));
}

std::string fault(std::string_view url) {
    auto made = parse_redis_url(url);
    if (auto* wrong = std::get_if<std::string>(&made)) return std::move(*wrong);
    ADD_FAILURE() << url << " was taken";
    return {};
}

stream_address at(std::string host, std::uint16_t port) {
    return stream_address::tcp(std::move(host), port);
}

TEST(RedisUrl, one_server) {
    EXPECT_EQ(parsed("redis://cache"), (redis_target{.nodes = {at("cache", 6379)}}));
    EXPECT_EQ(parsed("REDIS://cache/"), parsed("redis://cache"));
    EXPECT_EQ(parsed("redis://cache:7000/3"),
              (redis_target{.nodes = {at("cache", 7000)}, .database = 3}));
    EXPECT_EQ(parsed("redis://[::1]:7000").nodes.at(0), at("::1", 7000));
    EXPECT_EQ(parsed("redis://[::1]").nodes.at(0), at("::1", 6379));
}

TEST(RedisUrl, user_and_password) {
    EXPECT_EQ(parsed("redis://ann:s3@h").login, (redis_login{"ann", "s3"}));
    EXPECT_EQ(parsed("redis://:s3@h").login, (redis_login{"", "s3"}));
    EXPECT_EQ(parsed("redis://a%3An:p%40%2f%25@h").login, (redis_login{"a:n", "p@/%"}));
    // Nothing else can be meant by these.
    EXPECT_EQ(parsed("redis://:p/w:x@h:7/2"),
              (redis_target{.nodes = {at("h", 7)}, .database = 2, .login = {"", "p/w:x"}}));
    EXPECT_EQ(parsed("redis://:p@w@h").login.password, "p@w");
}

TEST(RedisUrl, a_unix_socket) {
    const redis_target plain{.nodes = {stream_address::local("/run/r.sock")}};
    EXPECT_EQ(parsed("redis+unix:/run/r.sock"), plain);
    EXPECT_EQ(parsed("redis+unix:///run/r.sock"), plain);
    auto more = plain;
    more.database = 2;
    more.login = {"ann", "s3"};
    EXPECT_EQ(parsed("redis+unix://ann:s3@/run/r.sock?db=2"), more);
    EXPECT_EQ(parsed("redis+unix:/run/a@b").nodes.at(0).path, "/run/a@b");
}

TEST(RedisUrl, tls) {
    EXPECT_EQ(parsed("rediss://h").tls, tls_settings{});
    EXPECT_EQ(parsed("redis://h?tls=yes").tls, tls_settings{});
    EXPECT_FALSE(parsed("redis://h").tls);
    EXPECT_EQ(parsed("rediss://h/1?ca=/c.pem&cert=/me.pem&key=/me.key&server_name=r&verify=no").tls,
              (tls_settings{.server_name = "r",
                            .ca_file = "/c.pem",
                            .certificate_file = "/me.pem",
                            .key_file = "/me.key",
                            .verify = false}));
}

TEST(RedisUrl, sentinels) {
    EXPECT_EQ(parsed("redis+sentinel://ann:s3@s1,s2:7,[::1]/my%20master/4?sentinel_password=q"
                     "&sentinel_user=w"),
              (redis_target{.kind = kind::sentinel,
                            .nodes = {at("s1", 26379), at("s2", 7), at("::1", 26379)},
                            .primary = "my master",
                            .database = 4,
                            .login = {"ann", "s3"},
                            .sentinel_login = {"w", "q"}}));
}

TEST(RedisUrl, a_cluster) {
    EXPECT_EQ(parsed("redis+cluster://:s3@a,b:7001/0?tls=yes"),
              (redis_target{.kind = kind::cluster,
                            .nodes = {at("a", 6379), at("b", 7001)},
                            .login = {"", "s3"},
                            .tls = tls_settings{}}));
}

TEST(RedisUrl, a_fault_is_one_sentence_about_its_place) {
    const auto says = [](std::string_view url, std::string_view part) {
        const auto sentence = fault(url);
        EXPECT_NE(sentence.find(part), std::string::npos) << url << ": " << sentence;
        EXPECT_FALSE(sentence.ends_with('.')) << sentence;
    };
    says("http://h", "begins with redis://");
    says("redis:h", "two slashes");
    says("redis://", "a host is missing");
    says("redis://:6379", "names no host");
    says("redis://a,b", "redis+cluster://");
    says("redis://h:0", "from 1 to 65535");
    says("redis://h:65536", "from 1 to 65535");
    says("redis://h:x", "the port of \"h\"");
    says("redis://::1", "");
    says("redis://[::1", "lacks its ]");
    says("redis://h/x", "the database");
    says("redis://h/-1", "the database");
    says("redis://h/1/2", "the database");
    says("redis://h#x", "%23");
    says("redis://user@h", "with the colon");
    says("redis://user:@h", "is empty");
    says("redis://h?ca=/c.pem", "rediss://");
    says("redis://h?tls=1", "yes or no");
    says("rediss://h?tls=no", "redis://");
    says("rediss://h?cert=/c", "come together");
    says("rediss://h?ca=", "no value");
    says("rediss://h?ca=a&ca=b", "twice");
    says("redis://h?db=1", "after the ? come");
    says("redis+unix:r.sock", "begins with a slash");
    says("redis+unix:/" + std::string(107, 'a'), "107");
    says("redis+unix:/r?tls=yes", "db only");
    says("redis+sentinel://s1,s2", "/mymaster");
    says("redis+sentinel://s1,,s2/m", "a host is missing");
    says("redis+sentinel://s1/m?sentinel_user=u", "sentinel_password");
    says("redis+cluster://a/1", "no databases but 0");
}

TEST(RedisUrl, no_sentence_shows_a_part_of_a_password) {
    for (const std::string url :
         {"redis://:SECRET@", "redis://:SECRET", "redis://u:SECRET", "redis://u:1/SECRET",
          "redis+unix:u:SECRET@h", "redis://:SECRET@h:x", "redis://SECRET@h", "redis://u:%SECRET@h",
          "redis://u:SECRET?@h", "redis://u:SECRET?SECRET@h", "redis://u:a@SECRET@h:x",
          "redis://u:SECRET/x@h/SE", "redis:u:SECRET@h", "redis:/u:SECRET@h",
          "redis+sentinel://h/m?sentinel_password=%SECRET",
          "redis+sentinel://h/m?sentinel_password=a&SECRET",
          "redis+sentinel://h/m?sentinel_password=a&SECRET=b&c", "redis+unix://u:SECRET@x",
          "x://u:SECRET@h"}) {
        const auto sentence = fault(url);
        EXPECT_EQ(sentence.find("SECRET"), std::string::npos) << url << ": " << sentence;
    }
}

// TRINCO_SEED is not needed: the seed is the number of the round.
TEST(RedisUrl, mutated_urls_are_parsed_or_refused_with_a_sentence) {
    const std::vector<std::string> originals = {
        "redis://ann:s3@h:7/1?tls=yes&ca=%2fc", "redis+unix://u:p@/run/r?db=1",
        "redis+sentinel://:p@a,b:1/m/0?sentinel_password=x", "redis+cluster://[::1]:6,b"};
    for (unsigned seed = 0; seed < 20'000; ++seed) {
        std::mt19937 random(seed);
        auto url = originals[random() % originals.size()];
        for (auto n = 1 + random() % 4; n > 0 && !url.empty(); --n) {
            const auto place = random() % url.size();
            switch (random() % 3) {
                case 0: url[place] = static_cast<char>(random()); break;
                case 1: url.erase(place, 1 + random() % 3); break;
                default: url.insert(place, 1, ":/@?&%[],#="[random() % 11]); break;
            }
        }
        const auto made = parse_redis_url(url);
        if (const auto* target = std::get_if<redis_target>(&made)) {
            ASSERT_FALSE(target->nodes.empty()) << url;
        } else {
            ASSERT_FALSE(std::get<std::string>(made).empty()) << url;
        }
    }
}

}  // namespace
}  // namespace trinco::detail
