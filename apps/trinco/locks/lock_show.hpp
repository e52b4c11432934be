// How locks are shown: to people as tables, to programs as JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include "apps/trinco/locks/lock_list.hpp"
#include "apps/trinco/output/json.hpp"

namespace trinco::program {

// NAME HOLDER HELD TTL WAITERS TOKEN
[[nodiscard]] std::string locks_table(const std::vector<lock_row>& rows);
// {"schema":1,"locks":[{"name":...,"kind":...,"holders":[...],"waiters":3}, ...]}
[[nodiscard]] std::string locks_json(const std::vector<lock_row>& rows);
[[nodiscard]] std::string lock_names(const std::vector<lock_row>& rows);

// PLACE KIND OWNER SINCE TTL TOKEN, and NOTE when somebody was asked to give it back. The place of
// a holder is "holds". Empty when there is neither holder nor waiter.
[[nodiscard]] std::string lock_table(const lock_row& row);
// {"schema":1,"name":...,"holders":[...],"waiters":[...]}
[[nodiscard]] std::string lock_json(const lock_row& row);
// The owners, a line each, holders first.
[[nodiscard]] std::string lock_owners(const lock_row& row);

// "exclusive", "shared", "semaphore"
[[nodiscard]] std::string_view kind_word(detail::claim_kind kind) noexcept;
// An owner of a lock, or somebody who waits.
[[nodiscard]] json_object entry_json(const detail::entry& e);

}  // namespace trinco::program
