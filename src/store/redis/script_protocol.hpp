// What goes into the scripts of the fleet's breaker, and what comes out of them: requests as KEYS
// and ARGV, replies and published messages as values. Pure.
//
// Keys         of one breaker share its hash tag, so that they live in one slot of a cluster. The
//              index of a namespace has another slot, so no script touches it.
// Validation   What record::apply refuses without looking at the record is refused here, by asking
//              it, and is never sent; options are sent as to_text() writes them, each pair of a
//              `set` alone checked and rewritten, so that the scripts know no ranges.
// Replies      A reply that no script of this version gives is `invalid`; one that says `newer` is
//              `not_supported`: a later version of this library has written the record. Errors of
//              the server itself (OOM, READONLY, ...) are for the caller to look at first.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/breaker/messages.hpp"
#include "store/breaker_store.hpp"
#include "store/redis/redis_scripts.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

// "trinco:1:<namespace>:{<breaker>}", and the same with ":voters" and ":instances".
[[nodiscard]] std::vector<std::string> breaker_keys(std::string_view name_space,
                                                    std::string_view breaker);
[[nodiscard]] std::string breaker_index_key(std::string_view name_space);
// "trinco:1:<namespace>:changes", and of a database but 0 with "@<database>" behind it: channels,
// unlike keys, are the same for all databases of a server.
[[nodiscard]] std::string breaker_channel(std::string_view name_space, unsigned database = 0);

// One call: EVALSHA <sha of script> <number of keys> <keys> <arguments>.
struct script_call {
    redis_script script = redis_script::exchange;
    std::vector<std::string> keys;
    std::vector<std::string> arguments;
};

// Nothing when the request is invalid.
[[nodiscard]] std::optional<script_call> call_of(std::string_view name_space,
                                                 const breaker_identity& who, const news& n,
                                                 unsigned database = 0);
// A view that no record can have made is sent as one that knows nothing.
[[nodiscard]] script_call call_of(std::string_view name_space, const look_request& q);
// Token 0 is invalid; a view that no record can have made is sent as one that knows nothing.
[[nodiscard]] std::optional<script_call> call_of(std::string_view name_space,
                                                 const breaker_identity& who,
                                                 const probe_request& p, unsigned database = 0);
[[nodiscard]] std::optional<script_call> call_of(std::string_view name_space,
                                                 const control_request& c, unsigned database = 0);
[[nodiscard]] script_call inspect_call(std::string_view name_space, std::string_view breaker);
// EVALSHA <sha of index> 1 <index> <breaker> <lives>: after the first exchange of a breaker, and
// whenever it is exchanged again because of the time that has passed.
[[nodiscard]] script_call index_call(std::string_view name_space, std::string_view breaker,
                                     std::chrono::milliseconds lives);

template <class T>
struct script_answer {
    std::error_code error;
    T value;
    bool published = true;               // false: the channel may not be written to
    std::chrono::milliseconds lives{0};  // the record from now; 0: not prolonged
    std::chrono::microseconds cost{0};   // of the script, by the server's clock
};

// Verdicts carry error and cost themselves, too, glances their cost.
[[nodiscard]] script_answer<verdict> verdict_from(const resp_reply& reply);
[[nodiscard]] script_answer<glance> glance_from(const resp_reply& reply);
[[nodiscard]] script_answer<probe_reply> probe_reply_from(const resp_reply& reply);
[[nodiscard]] script_answer<view> view_from(const resp_reply& reply);
// Nothing when there is no such record.
[[nodiscard]] script_answer<std::optional<report>> report_from(const resp_reply& reply,
                                                               std::string_view breaker);
// A message of the channel: `changed` or `flush`. Nothing when it is no such message.
[[nodiscard]] std::optional<notice> notice_from(std::string_view message);
// Of such a message that says no more than that a breaker is open. It lies in the message.
[[nodiscard]] std::optional<opening> opening_from(std::string_view message) noexcept;

}  // namespace trinco::detail
