// The URL of a cluster of etcd, taken apart.
//
//   etcd://[user:password@]h1[:2379],h2,...    any members of one cluster
//   etcds://...                                the same with TLS
//
// What has a meaning in a URL is written with percent signs (%40 for @); user and password end at
// the last @. After a ?, joined by &:
//   ca=FILE                the PEM of the only authorities that are believed
//   cert=FILE key=FILE     PEM, who we are
//   server_name=NAME       whom the certificates must be for, instead of the hosts
//   verify=no              believes anybody; for tests
//   prefix=NAME            all keys begin with NAME/
//   token_epoch=N          0 to 255; raised after a snapshot was restored
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

struct etcd_target {
    std::vector<stream_address> members = {};
    std::string user = {};  // empty: nobody logs in
    std::string password = {};
    std::optional<tls_settings> tls = {};
    std::string prefix = {};  // empty, or with a slash at its end
    std::uint8_t token_epoch = 0;
    bool operator==(const etcd_target&) const = default;
};

// The target, or one sentence that says what is wrong and what would be right.
[[nodiscard]] std::variant<etcd_target, std::string> parse_etcd_url(std::string_view url);

}  // namespace trinco::detail
