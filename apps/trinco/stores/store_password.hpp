// The password of a store, which stands in no command line: those are seen by every user.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program {

[[nodiscard]] bool is_redis(std::string_view url);

// Whether a URL of a server holds a password, as far as one can tell: before its last @, or as
// sentinel_password. Pure.
[[nodiscard]] bool holds_password(std::string_view url);
// The same of a token of Consul: the option token. Pure.
[[nodiscard]] bool holds_token(std::string_view url);

// The URL of the store of breakers, with the password of the settings in its place (see
// config/settings.hpp); as it is when it has one of its own, they have none, or the store takes
// none. The problem: the password's file cannot be read or holds more than a line, or the URL names
// a user and there is no password. Not to be shown.
[[nodiscard]] std::variant<std::string, problem> with_password(const settings& with);

}  // namespace trinco::program
