// For how long a store that cannot be reached is tried.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "core/loop.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// As long as sessions do, and not beyond the end of the wait. The first time a second at least: a
// short wait is one for the lock, and that its store takes some time to answer is no error of it.
[[nodiscard]] std::chrono::milliseconds opening_time(const std::optional<detail::deadline>& by,
                                                     bool is_first);
// For who does not wait: true once nobody listens at any of the store's addresses. The store
// outlives it.
[[nodiscard]] std::function<bool()> nobody_listens_at(const store& at);

}  // namespace trinco::program
