#include "core/quoted.hpp"

namespace trinco::detail {

std::string quoted(std::string_view text, std::size_t most) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text.substr(0, most)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte >= 0x20 && byte < 0x7f) {
            out += c;
        } else {
            out += "\\x";
            out += digits[byte >> 4];
            out += digits[byte & 15];
        }
    }
    if (text.size() <= most) return out + '"';
    return out + "...\" (" + std::to_string(text.size()) + " bytes)";
}

}  // namespace trinco::detail
