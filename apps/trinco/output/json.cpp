#include "apps/trinco/output/json.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "apps/trinco/output/visible.hpp"

namespace trinco::program {
namespace {

void append_escape(std::string& to, std::uint32_t value) {
    std::array<char, 8> escape{};
    std::snprintf(escape.data(), escape.size(), "\\u%04x", value);
    to += escape.data();
}

void append_character(std::string& to, std::string_view bytes, std::uint32_t value) {
    switch (value) {
        case '"': to += "\\\""; return;
        case '\\': to += "\\\\"; return;
        case '\n': to += "\\n"; return;
        case '\t': to += "\\t"; return;
        case '\r': to += "\\r"; return;
        default: break;
    }
    // Control characters beyond ASCII and line separators are valid JSON, but not harmless.
    const bool escaped =
        value < 0x20 || (value >= 0x7f && value < 0xa0) || value == 0x2028 || value == 0x2029;
    if (escaped) {
        append_escape(to, value);
    } else {
        to += bytes;
    }
}

void append_member(std::string& to, std::string_view what) {
    if (!to.empty()) to += ',';
    to += what;
}

}  // namespace

std::string json_string(std::string_view text) {
    std::string json = "\"";
    while (!text.empty()) {
        const character c = first_character(text);
        if (c.bytes == 0) {
            json += "\xef\xbf\xbd";  // U+FFFD
            text.remove_prefix(1);
            continue;
        }
        append_character(json, text.substr(0, c.bytes), c.value);
        text.remove_prefix(c.bytes);
    }
    return json + '"';
}

json_object& json_object::add(std::string_view key, std::string_view text) {
    return add_raw(key, json_string(text));
}

json_object& json_object::add(std::string_view key, double value) {
    if (!std::isfinite(value)) return add_null(key);
    std::array<char, 32> digits{};
    char* const last = digits.data() + digits.size();
    // The shortest form of 300000 would be 3e+05, which people and some scripts do not read.
    const bool is_plain = value == 0 || (std::fabs(value) >= 1e-4 && std::fabs(value) < 1e15);
    const auto end = is_plain ? std::to_chars(digits.data(), last, value, std::chars_format::fixed)
                              : std::to_chars(digits.data(), last, value);
    return add_raw(key, std::string_view(digits.data(), end.ptr));
}

json_object& json_object::add_raw(std::string_view key, std::string_view json) {
    append_member(text_, json_string(key) + ":" + std::string(json));
    return *this;
}

std::string json_object::text() const {
    return "{" + text_ + "}";
}

json_array& json_array::add_raw(std::string_view json) {
    append_member(text_, json);
    return *this;
}

json_array& json_array::add(std::string_view text) {
    return add_raw(json_string(text));
}

std::string json_array::text() const {
    return "[" + text_ + "]";
}

}  // namespace trinco::program
