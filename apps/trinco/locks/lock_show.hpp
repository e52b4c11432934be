// How locks are shown: to people as tables, to programs as JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include "apps/trinco/locks/lock_list.hpp"
#include "apps/trinco/locks/look_often.hpp"
#include "apps/trinco/output/json.hpp"

namespace trinco::program {

// NAME HOLDER HELD TTL WAITERS WAIT TOKEN
[[nodiscard]] std::string locks_table(const std::vector<lock_row>& rows);
// {"schema":1,"locks":[{"name":...,"kind":...,"holders":[...],"waiters":3,"longest_wait_ms":...},
// ...]}
[[nodiscard]] std::string locks_json(const std::vector<lock_row>& rows);
// The same with USED and P99-WAIT behind WAIT, and {"use":{...}} for each; also those locks that
// were seen before and are free by now.
[[nodiscard]] std::string locks_table(const looked_often& seen);
[[nodiscard]] std::string locks_json(const looked_often& seen);
// {"share":0.83,"grants":12,"waits":15,"p99_wait_ms":1200}
[[nodiscard]] json_object use_json(const used_lock& one, std::size_t looks);
// "83 %"
[[nodiscard]] std::string whole_percent(double share);
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
