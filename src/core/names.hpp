// Names of breakers, locks, namespaces, instances and voters: what they may consist of.
//
// Names become keys in stores, labels of metrics and words of command lines, so they are short and
// of a plain alphabet; nothing is ever escaped, shortened or folded to make it fit. Each check
// returns nothing when the name is good, else one sentence that says what, which value and what is
// allowed. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trinco::detail {

inline constexpr std::size_t max_breaker_name = 128;
inline constexpr std::size_t max_party_name = 64;  // of a namespace, an instance, a voter
inline constexpr std::size_t max_lock_name = 200;

// 1-128 of [A-Za-z0-9._:-].
[[nodiscard]] std::optional<std::string> check_breaker_name(std::string_view name);

// 1-64 of [A-Za-z0-9._:-].
[[nodiscard]] std::optional<std::string> check_namespace(std::string_view name);
[[nodiscard]] std::optional<std::string> check_instance(std::string_view name);
[[nodiscard]] std::optional<std::string> check_voter(std::string_view name);

// 1-200 of [A-Za-z0-9._/-]: segments separated by '/', none of them empty or "..", so that a name
// is a path beneath its namespace and never leads out of it. A leading '/' is allowed, a trailing
// one not: it would name a folder.
[[nodiscard]] std::optional<std::string> check_lock_name(std::string_view name);

// Whether a text for people (a reason) can be shown in a log or a terminal as it is: no control
// characters, so no line breaks and no escapes. Bytes beyond ASCII are fine.
[[nodiscard]] bool is_one_line(std::string_view text) noexcept;

}  // namespace trinco::detail
