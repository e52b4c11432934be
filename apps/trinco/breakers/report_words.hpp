// A whole report in words: the rows of `ls`, the page of `show`, and the JSON of both.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/trinco/output/json.hpp"
#include "core/breaker/messages.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

using trinco::detail::report;

// A table with its head; empty without rows.
[[nodiscard]] std::string table_of(std::span<const report> rows);
// Many lines.
[[nodiscard]] std::string page_of(const report& r);

// name, the view's members, since_ms, failure_rate with its threshold, window, totals, voters,
// probes_left, options_set.
[[nodiscard]] json_object json_of(const report& r);
// The same, with options and instances.
[[nodiscard]] json_object full_json_of(const report& r);

// {"schema": 1, "store": ..., "namespace": ...}, to be added to.
[[nodiscard]] json_object json_head(const store& at);

}  // namespace trinco::program
