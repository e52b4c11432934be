#include "apps/trinco/stores/sudo_warning.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>

#include "core/quoted.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t path_shown = 300;
constexpr std::string_view default_store = "local:";
constexpr const char* file_of_root = "/var/lib/trinco/local.db";

std::optional<std::filesystem::path> home_of_user(::uid_t user) {
    std::array<char, 16'384> space{};
    ::passwd entry{};
    ::passwd* found = nullptr;
    const int error = ::getpwuid_r(user, &entry, space.data(), space.size(), &found);
    if (error != 0 || found == nullptr || found->pw_dir == nullptr) return std::nullopt;
    struct ::stat home {};
    // Users of services have none.
    if (::stat(found->pw_dir, &home) != 0 || !S_ISDIR(home.st_mode)) return std::nullopt;
    return found->pw_dir;
}

// The user who called sudo, unless that is root.
std::optional<::uid_t> behind_sudo(const caller& who) {
    if (who.user != 0 || !who.sudo_uid) return std::nullopt;
    ::uid_t user = 0;
    const char* const end = who.sudo_uid->data() + who.sudo_uid->size();
    const auto read = std::from_chars(who.sudo_uid->data(), end, user);
    if (read.ec != std::errc() || read.ptr != end || user == 0) return std::nullopt;
    return user;
}

}  // namespace

caller caller::of_this_process() {
    caller who;
    who.user = ::geteuid();
    if (const char* const sudo = std::getenv("SUDO_UID")) who.sudo_uid = sudo;
    who.home_of = &home_of_user;
    return who;
}

std::optional<std::string> sudo_warning(std::string_view url, const caller& who) {
    if (url != default_store) return std::nullopt;
    const auto user = behind_sudo(who);
    if (!user) return std::nullopt;
    const auto home = who.home_of(*user);
    if (!home || !home->is_absolute()) return std::nullopt;
    const auto theirs = *home / ".local/state/trinco/local.db";
    return std::string("under sudo the store \"local:\" is root's file ") + file_of_root +
           " and not " + detail::quoted(theirs.native(), path_shown) +
           ", that of the user who called it; name the one that is meant (local:/path/to/file.db), "
           "or share one: 'trinco setup --machine'";
}

std::optional<std::string> sudo_warning(std::string_view url) {
    return sudo_warning(url, caller::of_this_process());
}

}  // namespace trinco::program
