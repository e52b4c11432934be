// In which of the 16384 slots of a cluster a key is.
//
// CRC-16 (XMODEM) of the key, or of what is between its first { and the next }, when there is
// something between: keys with the same are in the same slot. Pure.
#pragma once

#include <string_view>

namespace trinco::detail {

inline constexpr unsigned redis_slots = 16'384;

[[nodiscard]] unsigned slot_of_key(std::string_view key) noexcept;

}  // namespace trinco::detail
