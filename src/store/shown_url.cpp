#include "store/shown_url.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace trinco::detail {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), [](char c) {
        return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    return out;
}

bool is_secret(std::string_view key) {
    static constexpr std::array<std::string_view, 8> marks{"pass", "pwd", "token", "secret",
                                                           "auth", "key", "cred",  "%"};
    const auto plain = lower(key);
    return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) {
        return plain.find(mark) != std::string::npos;
    });
}

// Where the value of the first secret key begins.
std::size_t first_secret(std::string_view url) {
    for (auto equals = url.find('='); equals != std::string_view::npos;
         equals = url.find('=', equals + 1)) {
        const auto before = url.substr(0, equals);
        const auto mark = before.find_last_of("?&;#/=, ");
        const auto begin = mark == std::string_view::npos ? 0 : mark + 1;
        if (is_secret(before.substr(begin))) return equals + 1;
    }
    return std::string_view::npos;
}

}  // namespace

std::string scheme_of(std::string_view url) {
    const auto colon = url.find(':');
    if (colon == std::string_view::npos) return {};
    const auto scheme = url.substr(0, colon);
    const auto fits = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
    };
    if (scheme.empty() || std::isalpha(static_cast<unsigned char>(scheme[0])) == 0 ||
        !std::all_of(scheme.begin(), scheme.end(), fits)) {
        return {};
    }
    return lower(scheme);
}

std::string shown_url(std::string_view url) {
    const auto scheme = scheme_of(url);
    const auto after_scheme = scheme.empty() ? 0 : scheme.size() + 1;
    const auto begin = std::min(url.find_first_not_of("/\\", after_scheme), url.size());
    const bool no_users = (scheme == "local" || scheme == "memory") && begin < after_scheme + 2;
    const auto at = no_users ? std::string_view::npos : url.rfind('@');
    const auto secret = first_secret(url);
    const bool has_user = at != std::string_view::npos && at >= begin;
    std::string out(url.substr(0, has_user ? begin : std::min(secret, url.size())));
    if (has_user || secret != std::string_view::npos) out += "***";
    // A secret key before the @ may be a part of the password, or the @ one of its value.
    if (!has_user || secret <= at) return out;
    out += url.substr(at, secret == std::string_view::npos ? secret : secret - at);
    if (secret != std::string_view::npos) out += "***";
    return out;
}

}  // namespace trinco::detail
