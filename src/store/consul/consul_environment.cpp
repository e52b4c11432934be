#include "store/consul/consul_environment.hpp"

#include <cstdlib>

#include "store/consul/consul_token.hpp"

namespace trinco::detail::consul {
namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::optional<std::string> take_token_of_environment(consul_settings& to) {
    if (!to.token.empty() || !to.token_file.empty()) return {};
    auto token = variable("CONSUL_HTTP_TOKEN");
    if (token.empty()) {
        to.token_file = variable("CONSUL_HTTP_TOKEN_FILE");
        return {};
    }
    if (!is_token(token)) {
        return "the environment variable CONSUL_HTTP_TOKEN is no token: 1 to 1,024 printable "
               "letters without blanks";
    }
    to.token = std::move(token);
    return {};
}

}  // namespace trinco::detail::consul
