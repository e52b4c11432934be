// A whole report in words: the rows of `ls`, the page of `show`, and the JSON of both.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/output/json.hpp"
#include "core/breaker/messages.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

using trinco::detail::report;

// A table with its head; empty without rows. `width`: of the lines; nothing: as long as they are.
[[nodiscard]] std::string table_of(std::span<const report> rows, std::optional<std::size_t> width);
// Many lines.
[[nodiscard]] std::string page_of(const report& r);

// name, error, the view's members, since_ms, failed_share with opens_at_share, why, window, totals,
// voters, probes_left, options_set, set_remaining_ms. Of a record that cannot be read name and
// error alone.
[[nodiscard]] json_object json_of(const report& r);
// The same, with options and instances.
[[nodiscard]] json_object full_json_of(const report& r);

// What is printed for one breaker by every verb but ls, and its changes by watch, has this form
// ('trinco help json'): {"schema": 2, "store": ..., "namespace": ..., "breaker": {...}}.
inline constexpr int breakers_schema = 2;
// {"schema": 2, "store": ..., "namespace": ...}, to be added to.
[[nodiscard]] json_object json_head(const store& at);
// {"name", "error": null, the view's members}: what is known without a report.
[[nodiscard]] json_object json_of(std::string_view name, const detail::view& v);

}  // namespace trinco::program
