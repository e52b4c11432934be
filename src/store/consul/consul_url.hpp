// The URL of Consul, taken apart.
//
//   consul://h1[:8500],h2,...      agents or servers of one datacenter
//   consuls://h1[:8501],...        the same with TLS
//
// What has a meaning in a URL is written with percent signs (%26 for &). After a ?, joined by &:
//   token_file=FILE        whose one line is the ACL token
//   token=TOKEN            the token itself
//   dc=NAME                another datacenter than the agent's
//   ns=NAME                a namespace (Consul Enterprise)
//   ca=, cert=, key=, server_name=, verify=no     of TLS, as in etcd_url.hpp
//   prefix=NAME            all keys begin with NAME/
//   keys=plain             a lock's key is its name, without /.lock behind it
//   token_epoch=N          0 to 255; raised after a snapshot was restored
//
// Pure. A sentence about a fault never shows what is, or may be a part of, a token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "store/consul/consul_client.hpp"

namespace trinco::detail {

struct consul_target {
    consul::consul_settings way = {};
    std::string prefix = {};  // empty, or with a slash at its end
    bool plain_keys = false;
    std::uint8_t token_epoch = 0;
    bool operator==(const consul_target&) const = default;
};

// The target, or one sentence that says what is wrong and what would be right.
[[nodiscard]] std::variant<consul_target, std::string> parse_consul_url(std::string_view url);

}  // namespace trinco::detail
