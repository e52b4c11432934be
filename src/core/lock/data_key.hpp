// Keys of the data that users keep beside their locks, for guarded writes.
//
// A store may hold them next to other things: on etcd next to the entries of locks and to the keys
// of other programs, which are to find them under the very name that their user gave. What keeps
// them apart is their form: a ':' stands in front, before any '/'. No lock has such a name, so that
// no key lies beneath one, NAME/..., where the entries of its queue are and where `etcdctl lock`
// and Go wait for whatever they find. Trinco's own records, "once/...", are not of that form. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trinco::detail {

inline constexpr std::size_t max_data_key = 256;

// Of that form, and not beginning with "trinco:", which is ours.
[[nodiscard]] bool is_data_key(std::string_view key) noexcept;

// 1-256 of [A-Za-z0-9._:/-], of that form. Nothing when it is good, else a sentence.
[[nodiscard]] std::optional<std::string> check_data_key(std::string_view key);

}  // namespace trinco::detail
