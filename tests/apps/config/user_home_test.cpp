#include "apps/trinco/config/user_home.hpp"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

namespace trinco::program {
namespace {

constexpr const char* passwd =
    "root:x:0:0:root:/var/root:/bin/bash\n"
    "# nobody:x:7:7::/wrong:\n"
    "short:x:12\n"
    "odd:x:12x:12::/odd:/bin/sh\n"
    "homeless:x:13:13:::/bin/sh\n"
    "ada:x:1000:1000:Ada, of the mill:/var/ada:/bin/zsh\n"
    "other:x:1000:1000::/var/other:/bin/sh";

TEST(user_home, is_the_sixth_field_of_the_first_line_with_the_users_number) {
    EXPECT_EQ(home_by_passwd(passwd, 0), "/var/root");
    EXPECT_EQ(home_by_passwd(passwd, 1000), "/var/ada");
    EXPECT_EQ(home_by_passwd(passwd, 13), "");
}

TEST(user_home, is_not_known_by_a_file_without_the_user) {
    EXPECT_EQ(home_by_passwd(passwd, 100), std::nullopt);
    EXPECT_EQ(home_by_passwd(passwd, 1), std::nullopt);
    EXPECT_EQ(home_by_passwd("", 0), std::nullopt);
}

TEST(user_home, is_read_from_the_file_where_the_system_looks_there_first) {
    EXPECT_TRUE(looks_in_passwd_first("# words\npasswd:         files systemd\ngroup: files\n"));
    EXPECT_TRUE(looks_in_passwd_first("group: ldap\npasswd:\tfiles"));
    EXPECT_FALSE(looks_in_passwd_first("passwd: ldap files\n"));
    EXPECT_FALSE(looks_in_passwd_first("passwd: filesystem\n"));
    EXPECT_FALSE(looks_in_passwd_first("passwd:\ngroup: files\n"));
    EXPECT_FALSE(looks_in_passwd_first("passwd_compat: files\n"));
    EXPECT_FALSE(looks_in_passwd_first("#passwd: files\n"));
    EXPECT_FALSE(looks_in_passwd_first(""));
}

TEST(user_home, is_what_the_c_library_says) {
    const ::passwd* const entry = ::getpwuid(::geteuid());
    const std::string known = entry != nullptr ? entry->pw_dir : "";
    const auto home = home_of_this_user();
    EXPECT_EQ(home.folder, known);
    EXPECT_EQ(home.why_not, "");
}

}  // namespace
}  // namespace trinco::program
