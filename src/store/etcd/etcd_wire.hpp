// etcd's messages as bytes. Pure; what cannot be read is nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/etcd/etcd_messages.hpp"

namespace trinco::detail::etcd {

[[nodiscard]] std::string encode_txn(const txn_request& what);
[[nodiscard]] std::optional<txn_reply> decode_txn(std::string_view bytes);

[[nodiscard]] std::string encode_grant(std::chrono::seconds ttl);
// With `ttl` 0 when the server refused in its reply.
[[nodiscard]] std::optional<lease_reply> decode_grant(std::string_view bytes);
[[nodiscard]] std::string encode_revoke(std::int64_t lease);
[[nodiscard]] std::string encode_facts(std::int64_t lease, bool with_keys);
[[nodiscard]] std::optional<lease_facts> decode_facts(std::string_view bytes);
[[nodiscard]] std::string encode_renewal(std::int64_t lease);
// A TTL of 0: there is no such lease.
[[nodiscard]] std::optional<lease_reply> decode_renewal(std::string_view bytes);

[[nodiscard]] std::string encode_watch(std::int64_t id, const watch_request& what);
[[nodiscard]] std::string encode_watch_end(std::int64_t id);
struct watch_message {
    std::int64_t id = 0;
    std::int64_t revision = 0;
    bool created = false;
    bool canceled = false;
    bool more = false;  // the rest of what happened at these revisions follows
    std::int64_t compacted = 0;
    std::string reason;
    std::vector<watch_event> events;
};
[[nodiscard]] std::optional<watch_message> decode_watch(std::string_view bytes);

[[nodiscard]] std::string encode_status();
// Without `endpoint`, which the server does not know.
[[nodiscard]] std::optional<server_status> decode_status(std::string_view bytes);
[[nodiscard]] std::string encode_members();
[[nodiscard]] std::optional<std::vector<member>> decode_members(std::string_view bytes);

[[nodiscard]] std::string encode_login(std::string_view user, std::string_view password);
// The token.
[[nodiscard]] std::optional<std::string> decode_login(std::string_view bytes);

}  // namespace trinco::detail::etcd
