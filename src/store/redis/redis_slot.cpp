#include "store/redis/redis_slot.hpp"

#include <array>
#include <cstdint>

namespace trinco::detail {
namespace {

[[nodiscard]] constexpr std::array<std::uint16_t, 256> make_table() {
    std::array<std::uint16_t, 256> table{};
    for (unsigned byte = 0; byte < table.size(); ++byte) {
        unsigned crc = byte << 8;
        for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U);
        table[byte] = static_cast<std::uint16_t>(crc);
    }
    return table;
}

constexpr auto table = make_table();

[[nodiscard]] std::string_view tag_of(std::string_view key) noexcept {
    const auto begin = key.find('{');
    if (begin == std::string_view::npos) return key;
    const auto end = key.find('}', begin + 1);
    if (end == std::string_view::npos || end == begin + 1) return key;
    return key.substr(begin + 1, end - begin - 1);
}

}  // namespace

unsigned slot_of_key(std::string_view key) noexcept {
    unsigned crc = 0;
    for (const char c : tag_of(key)) {
        crc = ((crc << 8) & 0xffffU) ^ table[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xffU];
    }
    return crc % redis_slots;
}

}  // namespace trinco::detail
