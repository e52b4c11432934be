// Where a machine keeps what it knows of a server: never in the place of another one.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "apps/trinco/mirror/mirror_names.hpp"
#include "core/names.hpp"

namespace trinco::program {
namespace {

std::string stand_in_of(const std::string& url) {
    return mirror_names_of(url, "shop").stand_in;
}

// A file outlives the program: these may not change. Numbers from another FNV-1a.
TEST(MirrorNames, AreWhatTheyWere) {
    const auto names = mirror_names_of("redis://127.0.0.1:6379", "shop");
    EXPECT_EQ("shop:stand-in:5afc62f4", names.stand_in);
    EXPECT_EQ("shop:mirror:5afc62f4", names.memory);
    EXPECT_EQ("shop:server:5afc62f4", names.server);
    const std::string longest(detail::max_party_name, 'n');
    const auto hashed = mirror_names_of("redis://127.0.0.1:6379", longest);
    EXPECT_EQ("stand-in:c729d6d27c95a65c", hashed.stand_in);
    EXPECT_EQ("mirror:c729d6d27c95a65c", hashed.memory);
    EXPECT_EQ("server:c729d6d27c95a65c", hashed.server);
}

TEST(MirrorNames, TellServersAndDatabasesApart) {
    std::set<std::string> all;
    for (const std::string url :
         {"redis://a", "redis://b", "redis://a:6380", "redis://a/1", "redis://a/2",
          "redis+sentinel://a,b/main", "redis+sentinel://a,b/other", "redis+sentinel://a,b/main/1",
          "redis+cluster://a,b", "redis+unix:/run/a", "redis+unix:/run/b", "redis+unix:/run/a?db=1",
          "redis+unix:/run/x@a"}) {
        EXPECT_TRUE(all.insert(stand_in_of(url)).second) << url;
        EXPECT_TRUE(all.insert(mirror_names_of(url, "shop").memory).second) << url;
        EXPECT_TRUE(all.insert(mirror_names_of(url, "other").stand_in).second) << url;
    }
}

TEST(MirrorNames, DoNotDependOnWhoAsks) {
    for (const std::string url : {"redis://:one@a/1", "redis://ann:t%40wo@a/1",
                                  "redis://a/1?ca=/etc/ca.pem", "redis://ann:x@a/1?verify=no"}) {
        EXPECT_EQ(stand_in_of("redis://a/1"), stand_in_of(url)) << url;
    }
    EXPECT_EQ(stand_in_of("redis+sentinel://a/main"),
              stand_in_of("redis+sentinel://u:p@a/main?sentinel_user=s&sentinel_password=t"));
    EXPECT_EQ(stand_in_of("redis+unix:/run/a?db=3"), stand_in_of("redis+unix://u:p@/run/a?db=3"));
}

TEST(MirrorNames, FitWhateverTheNamespace) {
    std::set<std::string> all;
    for (std::size_t size = 1; size <= detail::max_party_name; ++size) {
        for (const std::string url : {"redis://a", "redis://b"}) {
            const auto names = mirror_names_of(url, std::string(size, 'n'));
            EXPECT_FALSE(detail::check_namespace(names.stand_in)) << names.stand_in;
            EXPECT_FALSE(detail::check_namespace(names.memory)) << names.memory;
            EXPECT_TRUE(all.insert(names.stand_in).second) << names.stand_in;
            EXPECT_TRUE(all.insert(names.memory).second) << names.memory;
            EXPECT_FALSE(detail::check_namespace(names.server)) << names.server;
            EXPECT_TRUE(all.insert(names.server).second) << names.server;
        }
    }
}

}  // namespace
}  // namespace trinco::program
