// Drivers of local: that the public header does not have.
#pragma once

#include <span>
#include <string_view>

#include "trinco/store.hpp"

namespace trinco::detail {

// As trinco::drivers::local(), for a program that is about to take a lock and has SQLite to itself
// (leave_out_sqlite_statistics): while the store is being opened, and whenever it has nothing else
// to do, its thread prepares the statements of SQLite that are needed for that. They take half as
// long as the transaction itself.
[[nodiscard]] driver local_for_locks();

// Those statements, in the order of their use: opening a session, entering a queue and being
// granted at once; then giving everything back.
[[nodiscard]] std::span<const std::string_view> statements_of_a_lock() noexcept;

}  // namespace trinco::detail
