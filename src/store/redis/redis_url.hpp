// The URL of a Redis, taken apart.
//
//   redis://[user:password@]host[:6379][/db]            one server
//   rediss://...                                        the same with TLS
//   redis+unix:[//[user:password@]]/path[?db=N]         one server, by its Unix socket
//   redis+sentinel://[user:password@]h1[:26379],h2,.../name[/db]
//                                                       the primary that these Sentinels know by it
//   redis+cluster://[user:password@]h1[:6379],h2,...    a cluster, found through any of these
//
// :password@ is the password of the user "default". In both, what has a meaning in a URL is written
// with percent signs (%40 for @); user and password end at the last @.
//
// After a ?, joined by &:
//   tls=yes                       TLS to all, where the scheme does not say so (Sentinels, too)
//   ca=FILE                       PEM of the only authorities that are believed
//   cert=FILE key=FILE            PEM, who we are
//   server_name=NAME              whom the certificate must be for, instead of the host
//   verify=no                     believes anybody; for tests
//   sentinel_user= sentinel_password=   of the Sentinels; without them none is sent
//   db=N                          of redis+unix:
//
// Pure. A sentence about a fault never shows what is, or may be a part of, a password.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/stream_address.hpp"
#include "net/tls_settings.hpp"

namespace trinco::detail {

struct redis_login {
    std::string user = {};      // empty: the one called default
    std::string password = {};  // empty: nobody logs in
    bool operator==(const redis_login&) const = default;
};

struct redis_target {
    enum class kind_t : std::uint8_t { single, sentinel, cluster };
    kind_t kind = kind_t::single;
    std::vector<stream_address> nodes = {};  // one of single; Sentinels; some of a cluster
    std::string primary = {};                // of sentinel: the name
    unsigned database = 0;
    redis_login login = {};
    redis_login sentinel_login = {};
    std::optional<tls_settings> tls = {};
    bool operator==(const redis_target&) const = default;
};

// The target, or one sentence that says what is wrong and what would be right.
[[nodiscard]] std::variant<redis_target, std::string> parse_redis_url(std::string_view url);

}  // namespace trinco::detail
