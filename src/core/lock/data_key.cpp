#include "core/lock/data_key.hpp"

#include <algorithm>

#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

constexpr std::string_view marks = "._:/-";

bool is_plain(char c) noexcept {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
}

}  // namespace

bool is_data_key(std::string_view key) noexcept {
    const auto first = key.find_first_of(":/");
    return first != std::string_view::npos && first > 0 && key[first] == ':' &&
           !key.starts_with("trinco:");
}

std::optional<std::string> check_data_key(std::string_view key) {
    const bool plain = std::all_of(key.begin(), key.end(), is_plain);
    if (plain && key.size() <= max_data_key && is_data_key(key)) return std::nullopt;
    return "the key of guarded data is " + detail::quoted(key) + ", but must be 1 to " +
           std::to_string(max_data_key) +
           " characters of A-Z a-z 0-9 . _ : / -, with a ':' before any '/', such as "
           "\"accounts:7\" or \"stock:blue/left\", and not begin with \"trinco:\"";
}

}  // namespace trinco::detail
