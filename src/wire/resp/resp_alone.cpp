#include "wire/resp/resp_alone.hpp"

#include <cstddef>
#include <cstring>

namespace trinco::detail {
namespace {

constexpr std::string_view begins = "*3\r\n$7\r\nmessage\r\n";
constexpr std::size_t most = 1'000'000;  // longer ones are not taken

// Takes one bulk string from the front.
std::optional<std::string_view> take_text(std::string_view& from) noexcept {
    std::size_t size = 0;
    std::size_t at = 1;
    if (from.empty() || from[0] != '$') return {};
    for (; at < from.size() && from[at] >= '0' && from[at] <= '9' && size < most; ++at) {
        size = size * 10 + static_cast<std::size_t>(from[at] - '0');
    }
    if (at == 1 || size >= most || from.size() < at + size + 4) return {};
    if (from[at] != '\r' || from[at + 1] != '\n') return {};
    const auto text = from.substr(at + 2, size);
    from.remove_prefix(at + 2 + size);
    if (from[0] != '\r' || from[1] != '\n') return {};
    from.remove_prefix(2);
    return text;
}

}  // namespace

std::optional<std::string_view> resp_message_alone(std::string_view bytes) noexcept {
    if (bytes.size() < begins.size() ||
        std::memcmp(bytes.data(), begins.data(), begins.size()) != 0) {
        return {};
    }
    bytes.remove_prefix(begins.size());
    if (!take_text(bytes)) return {};
    const auto payload = take_text(bytes);
    return bytes.empty() ? payload : std::nullopt;
}

}  // namespace trinco::detail
