// The calls of the lock contract on etcd, one conversation each; see etcd_locks.hpp for what they
// promise and lock_store.hpp for what they mean. Names and keys carry the store's prefix here.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/etcd/etcd_claims.hpp"
#include "store/etcd/etcd_look.hpp"

namespace trinco::detail::etcd {

using claims_ptr = std::shared_ptr<claims>;

// etcd_enter.cpp
[[nodiscard]] std::error_code check_claim(const claim& what);
[[nodiscard]] op enter_claim(const claims_ptr& known, claim what, deadline by,
                             completion<place> done);
// etcd_owned.cpp
[[nodiscard]] op claims_on(const claims_ptr& known, std::string_view lease, deadline by,
                           completion<std::vector<claim_id>> done);
// etcd_wait.cpp
[[nodiscard]] op wait_for_turn(const claims_ptr& known, std::string_view lease, claim_id id,
                               unique_function<void(place)> moved, completion<grant> done);
// etcd_gone.cpp
[[nodiscard]] op watch_own(const claims_ptr& known, std::string_view lease, claim_id id,
                           unique_function<void(std::error_code)> gone);
// etcd_leave.cpp
[[nodiscard]] op leave_claim(const claims_ptr& known, std::string_view lease, claim_id id,
                             deadline by, completion<int> done);
// etcd_rewrite.cpp: the notes of a claim's entries, by compare with what was read. Without a change
// they tell of the grant.
[[nodiscard]] op rewrite_claim(const claims_ptr& known, std::string_view lease, claim_id id,
                               unique_function<void(owner_note&)> change, deadline by,
                               completion<int> done);
[[nodiscard]] op evict_entry(const claims_ptr& known, const entry& seen, bool now,
                             const eviction& asked, deadline by, completion<int> done);
[[nodiscard]] std::string entry_handle(const key_value& kv);
// etcd_records.cpp
[[nodiscard]] op write_records(const claims_ptr& known, std::string_view lease,
                               std::optional<claim_id> guard, std::span<const change> changes,
                               std::chrono::seconds keep, deadline by,
                               completion<std::uint64_t> done);
[[nodiscard]] op read_record(const claims_ptr& known, std::string_view key, deadline by,
                             completion<std::optional<record>> done);
[[nodiscard]] op scan_records(const claims_ptr& known, std::string_view prefix,
                              std::string_view from, std::size_t rows, deadline by,
                              completion<records> done);
// etcd_list.cpp
[[nodiscard]] op list_entries(const claims_ptr& known, std::string_view prefix,
                              std::string_view from, std::size_t rows, deadline by,
                              completion<entries> done);
// One row, as far as the entry alone tells; `holds`, `token` of a holder and `left` are the
// caller's to add.
[[nodiscard]] entry row_of(const claims& known, const key_value& kv, const entry_place& at);
// etcd_observe.cpp
[[nodiscard]] op observe_name(const claims_ptr& known, std::string_view name,
                              unique_function<void(std::optional<entry>)> seen);

}  // namespace trinco::detail::etcd
