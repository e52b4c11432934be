// The home of the user that this process acts as, by the password database and not by HOME: a job
// under cron or sudo must not get other settings without knowing.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trinco::program {

struct user_home {
    std::filesystem::path folder;  // empty: the user has none
    // A sentence: the database cannot be read, which is not the same as a user without a home.
    std::string why_not;
};

[[nodiscard]] user_home home_of_this_user();

// For tests: the home of a user by the text of /etc/passwd; nothing when he is not in there.
[[nodiscard]] std::optional<std::string> home_by_passwd(std::string_view passwd, ::uid_t user);
// Whether users are looked for in /etc/passwd first, by the text of /etc/nsswitch.conf.
[[nodiscard]] bool looks_in_passwd_first(std::string_view nsswitch);

}  // namespace trinco::program
