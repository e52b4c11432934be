// What the environment says of Consul, as to its own programs.
#pragma once

#include <optional>
#include <string>

#include "store/consul/consul_client.hpp"

namespace trinco::detail::consul {

// Where neither a token nor its file is named: that of CONSUL_HTTP_TOKEN, or the file that
// CONSUL_HTTP_TOKEN_FILE names. What is wrong, in a sentence without the token.
[[nodiscard]] std::optional<std::string> take_token_of_environment(consul_settings& to);

}  // namespace trinco::detail::consul
