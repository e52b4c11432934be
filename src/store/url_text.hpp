// What URLs of stores on servers have in common: percent signs, numbers, hosts. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "net/stream_address.hpp"

namespace trinco::detail {

// With %XX as the byte it stands for; nothing when a percent sign is not followed by two
// hexadecimal digits.
[[nodiscard]] std::optional<std::string> without_percents(std::string_view text);

// The whole text as a number of at most this; nothing when it is none.
template <class Number>
std::optional<Number> whole_number(std::string_view text, Number most) {
    Number n{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || end != text.data() + text.size() || n > most) return {};
    return n;
}

// "host", "host:80", "[::1]:80". Nothing when it is wrong; then `wrong` has the sentence, which
// does not show what may be a part of a password.
[[nodiscard]] std::optional<stream_address> host_and_port(std::string_view text,
                                                          std::uint16_t port_else,
                                                          std::string& wrong);

}  // namespace trinco::detail
