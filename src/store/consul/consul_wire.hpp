// The messages of consul_messages.hpp as Consul's HTTP API has them: JSON, with values in base64.
// Pure. What cannot be read is nothing: who says it is no Consul.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/consul/consul_messages.hpp"
#include "wire/http1/http_message.hpp"

namespace trinco::detail::consul {

// For a path or a query: all but letters, digits, "-", ".", "_", "~" and, in a path, "/" is written
// with percent signs.
[[nodiscard]] std::string escaped(std::string_view text, bool is_path);

[[nodiscard]] std::string encode_txn(const txn_request& what);
// Of an answer with status 200, or 409.
[[nodiscard]] std::optional<txn_reply> decode_txn(std::string_view body, bool applied);
// Why the server refused an operation, by its words.
[[nodiscard]] refusal_t refusal_of(std::string_view text);

// The rows of a key, or of all under it, with their index: of an answer of /v1/kv.
[[nodiscard]] std::optional<read_reply> decode_read(const http_response& reply);
[[nodiscard]] std::optional<std::vector<std::string>> decode_texts(std::string_view body);
[[nodiscard]] std::optional<std::string> decode_text(std::string_view body);

[[nodiscard]] std::string encode_session(const session_request& what);
// It becomes a part of keys and of paths, so it must be one.
[[nodiscard]] std::optional<std::string> decode_session_id(std::string_view body);
[[nodiscard]] std::optional<std::vector<session_facts>> decode_sessions(std::string_view body);
// "15s", "1m30s", "1500ms", as Go writes durations.
[[nodiscard]] std::optional<std::chrono::milliseconds> duration_of(std::string_view text) noexcept;

// Fills in what the agent says of itself; false: it is no Consul.
[[nodiscard]] bool decode_agent(std::string_view body, server_status& to);
// The same of what the servers say of each other (autopilot's health).
[[nodiscard]] bool decode_health(std::string_view body, server_status& to);

}  // namespace trinco::detail::consul
