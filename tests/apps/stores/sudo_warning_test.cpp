// Under sudo "local:" is another file: said when it matters, and only then.
#include "apps/trinco/stores/sudo_warning.hpp"

#include <gtest/gtest.h>

namespace trinco::program {
namespace {

caller under_sudo() {
    caller who;
    who.user = 0;
    who.sudo_uid = "1000";
    who.home_of = [](::uid_t user) -> std::optional<std::filesystem::path> {
        if (user != 1000) return std::nullopt;
        return "/users/ann";
    };
    return who;
}

TEST(SudoWarning, NamesBothFiles) {
    const auto said = sudo_warning("local:", under_sudo());
    ASSERT_TRUE(said.has_value());
    EXPECT_NE(said->find("/var/lib/trinco/local.db"), std::string::npos) << *said;
    EXPECT_NE(said->find("/users/ann/.local/state/trinco/local.db"), std::string::npos) << *said;
    EXPECT_EQ(said->find('\n'), std::string::npos);
}

TEST(SudoWarning, AStoreThatIsNamedIsWhatItSays) {
    EXPECT_FALSE(sudo_warning("local:/var/lib/trinco/local.db", under_sudo()).has_value());
    EXPECT_FALSE(sudo_warning("memory:", under_sudo()).has_value());
}

TEST(SudoWarning, NobodyIsWarnedWhoUsesHisOwnFile) {
    auto who = under_sudo();
    who.user = 1000;  // sudo -u ann
    EXPECT_FALSE(sudo_warning("local:", who).has_value());
    who = under_sudo();
    who.sudo_uid.reset();
    EXPECT_FALSE(sudo_warning("local:", who).has_value());
    who.sudo_uid = "0";
    EXPECT_FALSE(sudo_warning("local:", who).has_value());
}

TEST(SudoWarning, WhatIsNoUserIsNoReasonToWarn) {
    auto who = under_sudo();
    for (const char* text : {"", "ann", "1000x", "-1", "99999999999999999999", "1001"}) {
        who.sudo_uid = text;
        EXPECT_FALSE(sudo_warning("local:", who).has_value()) << text;
    }
}

}  // namespace
}  // namespace trinco::program
