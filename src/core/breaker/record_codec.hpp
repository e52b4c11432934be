// A record as bytes, for stores that keep it in a file: versioned, compact, and checked.
//
//     "TR" | version 1 | members in the order of fleet_record | checksum, 8 bytes (FNV-1a, 64 bits)
//
// Numbers are unsigned in groups of seven bits, low ones first, signed ones folded onto them
// (zigzag), so that a fresh record takes some 60 bytes and one of 50 instances a few kilobytes. A
// window is written with the cells that hold something only. Options are text; the rules parsed
// from it are written only where they are not what the text says.
//
// Bytes that encode() has not made are told from a record: wrong beginning, another version, a
// wrong checksum, an enumerator or a text out of range, lists that are too long or not in order,
// bytes left over. None of them can make decode() read beyond its input or allocate beyond the
// bounds of a record. The checksum guards against damage, not against malice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/breaker/record.hpp"

namespace trinco::detail {

inline constexpr std::uint8_t record_version = 1;

// decode(encode(r)) == r for every record that apply() has made.
[[nodiscard]] std::string encode(const fleet_record& r);
// Nothing when these bytes are not a record of this version.
[[nodiscard]] std::optional<fleet_record> decode(std::string_view bytes);

}  // namespace trinco::detail
