#include "apps/trinco/mirror/mirror_names.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "core/names.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

// FNV-1a; its two widths differ in nothing but the two numbers.
template <class Number>
Number hash_of(std::string_view text, Number basis, Number prime) {
    for (const char c : text) {
        basis = static_cast<Number>((basis ^ static_cast<unsigned char>(c)) * prime);
    }
    return basis;
}

std::string short_hash(std::string_view text) {
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08x",
                  static_cast<unsigned>(hash_of<std::uint32_t>(text, 0x811c9dc5U, 0x01000193U)));
    return digits.data();
}

std::string long_hash(std::string_view text) {
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx",
                  static_cast<unsigned long long>(
                      hash_of<std::uint64_t>(text, 0xcbf29ce484222325ULL, 0x100000001b3ULL)));
    return digits.data();
}

// The value of db=, which a socket's URL has in place of a path's /N.
std::string_view database_in(std::string_view options) {
    constexpr std::string_view key = "db=";
    while (!options.empty()) {
        const std::string_view one = options.substr(0, options.find('&'));
        if (one.starts_with(key)) return one.substr(key.size());
        options.remove_prefix(std::min(options.size(), one.size() + 1));
    }
    return {};
}

// "redis:host:6379/1": what tells a server and its database from others.
std::string server_in(std::string_view url) {
    const std::string scheme = detail::scheme_of(url);
    std::string_view rest = url.substr(scheme.size() + 1);
    const std::size_t mark = rest.find('?');
    const std::string_view options =
        mark == std::string_view::npos ? std::string_view() : rest.substr(mark + 1);
    rest = rest.substr(0, mark);
    if (rest.starts_with("//")) {
        rest.remove_prefix(2);
        if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
            rest.remove_prefix(at + 1);
        }
    }
    std::string server = scheme + ":" + std::string(rest);
    if (const auto database = database_in(options); !database.empty()) {
        server += "?db=" + std::string(database);
    }
    return server;
}

}  // namespace

mirror_names mirror_names_of(std::string_view url, std::string_view name_space) {
    const std::string server = server_in(url);
    const std::string space(name_space);
    const std::string mark = short_hash(server);
    const std::string stand_in = space + ":stand-in:" + mark;
    if (stand_in.size() <= detail::max_party_name) {
        return {stand_in, space + ":mirror:" + mark, space + ":server:" + mark};
    }
    const std::string both = long_hash(space + "\n" + server);
    return {"stand-in:" + both, "mirror:" + both, "server:" + both};
}

}  // namespace trinco::program
