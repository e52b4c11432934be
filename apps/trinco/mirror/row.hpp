// One row of a machine's own store: what its mirror reads and changes, with a patience that a busy
// machine needs. Threads: one, not the store's.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/breaker/messages.hpp"
#include "trinco/store.hpp"

namespace trinco::program::row {

// Nothing: there is none, or it cannot be read.
[[nodiscard]] std::optional<detail::report> read(const store& in, const std::string& breaker);
// Of no row, era 0.
[[nodiscard]] detail::view look(const store& in, const std::string& breaker);
// Nothing: it failed.
[[nodiscard]] std::optional<detail::verdict> exchange(const store& in, const detail::news& n);
// In nobody's name; id is filled in, and a reason that no record takes left out.
[[nodiscard]] std::optional<detail::view> control(const store& in, detail::control_request what);

}  // namespace trinco::program::row
