// Whose file "local:" is under sudo.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace trinco::program {

// Who runs the program. Tests bring their own.
struct caller {
    ::uid_t user = 0;                     // effective
    std::optional<std::string> sudo_uid;  // the variable SUDO_UID
    // By the password database; nothing when it does not know the user.
    std::function<std::optional<std::filesystem::path>(::uid_t)> home_of;
    static caller of_this_process();
};

// Root has another default file than the user who called sudo: a sentence that names both, when
// this is sudo and the store is the default. A lock in one file does not keep out who uses the
// other.
[[nodiscard]] std::optional<std::string> sudo_warning(std::string_view url, const caller& who);
// The same for this process.
[[nodiscard]] std::optional<std::string> sudo_warning(std::string_view url);

}  // namespace trinco::program
