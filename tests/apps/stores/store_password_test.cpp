#include "apps/trinco/stores/store_password.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "apps/trinco/exit_codes.hpp"

namespace trinco::program {
namespace {

namespace fs = std::filesystem;

settings of(const std::string& url, const std::string& password) {
    settings with;
    with.breakers_url = url;
    with.breakers_password = password;
    return with;
}

std::string whole(const settings& with) {
    const auto made = with_password(with);
    if (const auto* const why = std::get_if<problem>(&made)) return "problem: " + why->sentence;
    return std::get<std::string>(made);
}

TEST(StorePassword, StandsBeforeTheHost) {
    EXPECT_EQ("redis://:geheim@h:1/2", whole(of("redis://h:1/2", "geheim")));
    EXPECT_EQ("redis://ann:geheim@h", whole(of("redis://ann@h", "geheim")));
    EXPECT_EQ("redis://ann:geheim@h", whole(of("redis://ann:@h", "geheim")));
    EXPECT_EQ("redis+sentinel://:x@a,b/m?sentinel_user=u",
              whole(of("redis+sentinel://a,b/m?sentinel_user=u", "x")));
    EXPECT_EQ("redis+unix://:x@/run/r.sock", whole(of("redis+unix:/run/r.sock", "x")));
    EXPECT_EQ("redis+unix://:x@/run/r.sock", whole(of("redis+unix:///run/r.sock", "x")));
}

TEST(StorePassword, IsWrittenSoThatNothingInItHasAMeaning) {
    EXPECT_EQ("redis://:p%40s%2Fs%3Aw%25%3F%23%20%C3%A4@h", whole(of("redis://h", "p@s/s:w%?# ä")));
}

TEST(StorePassword, OfTheUrlItselfCountsMore) {
    EXPECT_EQ("redis://ann:a@h", whole(of("redis://ann:a@h", "b")));
    EXPECT_EQ("redis://h", whole(of("redis://h", "")));
    EXPECT_EQ("local:/x@y.db", whole(of("local:/x@y.db", "b")));
}

TEST(StorePassword, OfAUserIsMissed) {
    const auto made = with_password(of("redis://ann@h", ""));
    const auto* const why = std::get_if<problem>(&made);
    ASSERT_NE(nullptr, why);
    EXPECT_EQ(exit_usage, why->code);
    EXPECT_NE(std::string::npos, why->sentence.find("TRINCO_BREAKERS_PASSWORD"));
}

TEST(StorePassword, IsSeenInAUrl) {
    EXPECT_TRUE(holds_password("redis://:x@h"));
    EXPECT_TRUE(holds_password("redis://ann:x@h"));
    EXPECT_TRUE(holds_password("redis+sentinel://h/m?sentinel_password=x"));
    EXPECT_FALSE(holds_password("redis://ann@h"));
    EXPECT_FALSE(holds_password("redis://ann:@h"));
    EXPECT_FALSE(holds_password("rediss://h?key=/k.pem&cert=/c.pem"));
    EXPECT_FALSE(holds_password("redis://h:6379"));
    EXPECT_FALSE(holds_password("local:"));
    EXPECT_FALSE(holds_password(""));
}

TEST(StorePassword, OfAFileIsItsOneLine) {
    std::string pattern = (fs::temp_directory_path() / "trinco-password-XXXXXX").native();
    const fs::path folder = ::mkdtemp(pattern.data());
    settings with = of("redis://h", "");
    with.breakers_password_file = (folder / "p").native();
    const std::string missing = whole(with);
    EXPECT_TRUE(missing.starts_with("problem: the password of the store of breakers is not known"))
        << missing;
    EXPECT_NE(std::string::npos, missing.find("No such file")) << missing;
    EXPECT_NE(std::string::npos, missing.find("TRINCO_BREAKERS_PASSWORD_FILE")) << missing;
    const auto write = [&](const std::string& text) { std::ofstream(folder / "p") << text; };
    write("geheim\r\n");
    EXPECT_EQ("redis://:geheim@h", whole(with));
    write("geheim");
    EXPECT_EQ("redis://:geheim@h", whole(with));
    write("\n");
    EXPECT_TRUE(whole(with).ends_with("is empty; it is one line with the password")) << whole(with);
    write("a\nb\n");
    EXPECT_TRUE(whole(with).ends_with("holds more than one line; it is one line with the password"))
        << whole(with);
    write(std::string(2'000, 'x'));
    EXPECT_TRUE(
        whole(with).ends_with("holds more than 1,024 bytes; it is one line with the password"))
        << whole(with);
    with.breakers_password_file = folder.native();
    EXPECT_TRUE(whole(with).starts_with("problem: ")) << whole(with);
    fs::remove_all(folder);
}

}  // namespace
}  // namespace trinco::program
