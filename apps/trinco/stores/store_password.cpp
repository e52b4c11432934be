#include "apps/trinco/stores/store_password.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "apps/trinco/exit_codes.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t longest_password = 1'024;

// Every byte that has a meaning in a URL, and every other that is no letter or digit.
std::string encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '_';
        if (plain) {
            out += c;
            continue;
        }
        std::array<char, 4> hex{};
        std::snprintf(hex.data(), hex.size(), "%%%02X",
                      static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += hex.data();
    }
    return out;
}

problem unreadable(const std::string& file, const std::string& why) {
    return {exit_unavailable, "the password of the store of breakers is not known: its file " +
                                  detail::quoted(file, 300) + " " + why};
}

// What to do about an error of reading it.
std::string cure_of(int error) {
    const auto* const entry = ::getpwuid(::geteuid());
    const std::string user = entry != nullptr && entry->pw_name != nullptr
                                 ? entry->pw_name
                                 : "uid " + std::to_string(::geteuid());
    if (error == EACCES || error == EPERM) {
        return "; let the user " + user + " read it, and enter its folders";
    }
    return "; name the right one in TRINCO_BREAKERS_PASSWORD_FILE or as breakers.password_file of "
           "trinco.toml ('trinco config show' says which holds)";
}

// Up to what a password may be and a little more; errno.
int read_file(const std::string& file, std::string& to) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    std::array<char, 512> some{};
    ::ssize_t got = 1;
    while (got > 0 && to.size() <= longest_password + 2) {
        got = ::read(fd, some.data(), some.size());
        if (got > 0) to.append(some.data(), static_cast<std::size_t>(got));
    }
    const int error = got < 0 ? errno : 0;
    ::close(fd);
    return error;
}

// Its first line; editors end a file with a line break.
std::variant<std::string, problem> read_password(const std::string& file) {
    std::string text;
    if (const int error = read_file(file, text)) {
        problem why = unreadable(
            file, "cannot be read: " + std::generic_category().message(error) + cure_of(error));
        if (error == EACCES) why.code = exit_denied;
        return why;
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (text.empty()) return unreadable(file, "is empty; it is one line with the password");
    if (text.size() > longest_password)
        return unreadable(file, "holds more than 1,024 bytes; it is one line with the password");
    if (text.find('\n') != std::string::npos)
        return unreadable(file, "holds more than one line; it is one line with the password");
    return text;
}

// A URL in three parts: "redis://", "ann:secret" and "host:6379/0".
struct url_parts {
    std::string_view before;
    std::string_view user;  // without the @
    std::string_view after;

    [[nodiscard]] std::string_view name() const { return user.substr(0, user.find(':')); }
    [[nodiscard]] bool has_password() const { return name().size() + 1 < user.size(); }
};

url_parts split(std::string_view url) {
    const std::size_t begin = url.find(':') + 1;
    if (url.substr(begin, 2) != "//") return {url.substr(0, begin), {}, url.substr(begin)};
    const std::size_t at = url.rfind('@');
    const std::string_view before = url.substr(0, begin + 2);
    if (at == std::string_view::npos || at < before.size()) {
        return {before, {}, url.substr(before.size())};
    }
    return {before, url.substr(before.size(), at - before.size()), url.substr(at + 1)};
}

}  // namespace

bool is_redis(std::string_view url) {
    return detail::scheme_of(url).starts_with("redis");
}

bool holds_password(std::string_view url) {
    return url.find("sentinel_password=") != std::string_view::npos || split(url).has_password();
}

bool holds_token(std::string_view url) {
    if (!detail::scheme_of(url).starts_with("consul")) return false;
    return url.find("?token=") != std::string_view::npos ||
           url.find("&token=") != std::string_view::npos;
}

std::variant<std::string, problem> with_password(const settings& with) {
    const std::string& url = with.breakers_url;
    const url_parts parts = split(url);
    if (!is_redis(url) || parts.has_password()) return url;
    std::string password = with.breakers_password;
    if (password.empty() && with.breakers_password_file.empty()) {
        if (parts.name().empty()) return url;
        return problem{exit_usage,
                       "the store's URL names a user, and no password is given; put it into "
                       "TRINCO_BREAKERS_PASSWORD, or the name of its file into "
                       "TRINCO_BREAKERS_PASSWORD_FILE or breakers.password_file of trinco.toml"};
    }
    if (password.empty()) {
        auto read = read_password(with.breakers_password_file);
        if (auto* const why = std::get_if<problem>(&read)) return std::move(*why);
        password = std::move(std::get<std::string>(read));
    }
    // redis+unix:/path has slashes with a user only.
    const std::string_view slashes = parts.before.ends_with('/') ? "" : "//";
    return std::string(parts.before) + std::string(slashes) + std::string(parts.name()) + ":" +
           encoded(password) + "@" + std::string(parts.after);
}

}  // namespace trinco::program
