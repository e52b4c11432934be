#include "apps/trinco/config/user_home.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace trinco::program {
namespace {

// Takes what stands before the separator away from the text.
std::string_view next_part(std::string_view& rest, char separator) {
    const auto part = rest.substr(0, rest.find(separator));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    return part;
}

// The whole of a small file; nothing when it cannot be read or is larger.
std::optional<std::string> small_file(const char* name) {
    std::array<char, 16'384> text;  // not cleared, as most are short
    const int file = ::open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    const auto size = ::read(file, text.data(), text.size());
    ::close(file);
    if (size < 0 || static_cast<std::size_t>(size) == text.size()) return std::nullopt;
    return std::string(text.data(), static_cast<std::size_t>(size));
}

// The usual case, for which the C library asks a socket of nscd twice and makes ready for sources
// of every kind: a tenth of what it takes to run a command under a lock.
std::optional<std::string> home_by_files() {
    const auto order = small_file("/etc/nsswitch.conf");
    if (!order || !looks_in_passwd_first(*order)) return std::nullopt;
    const auto users = small_file("/etc/passwd");
    return users ? home_by_passwd(*users, ::geteuid()) : std::nullopt;
}

}  // namespace

bool looks_in_passwd_first(std::string_view nsswitch) {
    while (!nsswitch.empty()) {
        auto line = next_part(nsswitch, '\n');
        if (!line.starts_with("passwd:")) continue;
        line.remove_prefix(std::string_view("passwd:").size());
        const auto first = line.find_first_not_of(" \t");
        if (first == std::string_view::npos) return false;
        line.remove_prefix(first);
        return line.substr(0, line.find_first_of(" \t")) == "files";
    }
    return false;
}

std::optional<std::string> home_by_passwd(std::string_view passwd, ::uid_t user) {
    while (!passwd.empty()) {
        auto line = next_part(passwd, '\n');
        std::array<std::string_view, 6> field{};  // name, password, user, group, words, home
        for (auto& one : field) one = next_part(line, ':');
        ::uid_t number = 0;
        const auto* const end = field[2].data() + field[2].size();
        const auto read = std::from_chars(field[2].data(), end, number);
        if (read.ec == std::errc() && read.ptr == end && number == user) {
            return std::string(field[5]);
        }
    }
    return std::nullopt;
}

user_home home_of_this_user() {
    if (auto home = home_by_files()) return {*std::move(home), {}};
    errno = 0;
    const ::passwd* const entry = ::getpwuid(::geteuid());
    if (entry != nullptr) return {entry->pw_dir == nullptr ? "" : entry->pw_dir, {}};
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != EIO) return {};
    return {{},
            "the home of the user " + std::to_string(::geteuid()) +
                ", and with it the configuration, cannot be looked up: " +
                std::generic_category().message(errno)};
}

}  // namespace trinco::program
