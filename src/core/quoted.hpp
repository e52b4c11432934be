// Foreign text in a sentence for people: in quotes, bounded, and harmless to a terminal or a log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trinco::detail {

// "text", with bytes that are not printable ASCII as \xNN and quotes and backslashes escaped. Of
// more than `most` bytes only the first are shown, followed by the length: "abc..." (5000 bytes).
[[nodiscard]] std::string quoted(std::string_view text, std::size_t most = 64);

}  // namespace trinco::detail
