// A published message that came alone and whole, seen without making a value of it.
#pragma once

#include <optional>
#include <string_view>

namespace trinco::detail {

// The payload when the bytes are exactly one array of "message", a channel and a payload; it lies
// in them. Nothing for anything else, which is for resp_reader to judge.
[[nodiscard]] std::optional<std::string_view> resp_message_alone(std::string_view bytes) noexcept;

}  // namespace trinco::detail
