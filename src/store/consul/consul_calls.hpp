// The calls of the lock contract on Consul, one conversation each; see consul_locks.hpp for what
// they promise and lock_store.hpp for what they mean.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/consul/consul_claims.hpp"
#include "store/conversation.hpp"

namespace trinco::detail::consul {

using claims_ptr = std::shared_ptr<claims>;

template <class Self, class Value>
using conversation = store_conversation<Self, Value, claims>;

inline constexpr std::size_t most_operations = 64;  // of a transaction
// With one request that nobody waits for.
inline constexpr std::chrono::seconds patience{5};

// consul_keys.cpp: these keys, by the word of a leader that asked a majority; nullopt where there
// is none. What is read is of one moment each, not of one for all.
using found_keys = std::vector<std::optional<key_value>>;
[[nodiscard]] op read_keys(const claims_ptr& known, std::vector<std::string> keys, deadline by,
                           completion<found_keys> done);

// consul_attempt.cpp: takes all names of a claim, or finds what is in the way. `lost`: its session
// is.
struct attempt_result {
    enum class what_t : std::uint8_t {
        taken,
        in_the_way,  // somebody holds the name
        held_back,   // nobody does, but Consul's lock-delay has not passed
        other_kind,  // the key is that of a semaphore, or of something else
    };
    what_t what = what_t::in_the_way;
    std::string name;
    std::error_code refusal;       // of another kind
    boot_clock::time_point sent;   // the request that took them
    std::vector<held_entry> held;  // one a part
    std::vector<std::uint64_t> tokens;
};
[[nodiscard]] op attempt(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
                         completion<attempt_result> done);

// consul_permit.cpp: the same for a permit of a semaphore.
[[nodiscard]] op attempt_permit(const claims_ptr& known, std::string_view lease, claim_id id,
                                deadline by, completion<attempt_result> done);
// It has no permit any more, and its session ends. Succeeds when there is neither.
[[nodiscard]] op give_back_permit(const claims_ptr& known, const contender& who, deadline by,
                                  completion<int> done);

// consul_contend.cpp: sees to it that a claim gets its names, until it has them, stands behind
// another of its lease, or is given up. `first`: the deadline of its first attempt, whose failure
// ends it.
void contend(const claims_ptr& known, std::string_view lease, claim_id id,
             std::optional<deadline> first);

// consul_enter.cpp
[[nodiscard]] std::error_code check_claim(const claims_ptr& known, const claim& what);
[[nodiscard]] op enter_claim(const claims_ptr& known, const claim& what, deadline by,
                             completion<place> done);
// consul_wait.cpp
[[nodiscard]] op wait_for_grant(const claims_ptr& known, std::string_view lease, claim_id id,
                                completion<grant> done);
[[nodiscard]] op verify_claim(const claims_ptr& known, std::string_view lease, claim_id id,
                              deadline by, completion<grant> done);
// Reads the entries of a claim that was granted: its tokens, or `lost`, and it is forgotten.
[[nodiscard]] op confirm(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
                         completion<grant> done);
// consul_gone.cpp
[[nodiscard]] op watch_own(const claims_ptr& known, std::string_view lease, claim_id id,
                           unique_function<void(std::error_code)> gone);
// consul_leave.cpp
[[nodiscard]] op leave_claim(const claims_ptr& known, std::string_view lease, claim_id id,
                             deadline by, completion<int> done);
// consul_renew.cpp: with the sessions of its permits.
[[nodiscard]] op renew_lease(const claims_ptr& known, std::string_view lease, deadline by,
                             completion<std::chrono::seconds> done);
// consul_revoke.cpp
[[nodiscard]] op revoke_lease(const claims_ptr& known, std::string_view lease, deadline by,
                              completion<int> done);
// consul_owned.cpp
[[nodiscard]] op claims_on(const claims_ptr& known, std::string_view lease, deadline by,
                           completion<std::vector<claim_id>> done);
// consul_rewrite.cpp: by compare with what was read.
[[nodiscard]] op rewrite_claim(const claims_ptr& known, std::string_view lease, claim_id id,
                               std::string_view info, deadline by, completion<int> done);
[[nodiscard]] op evict_entry(const claims_ptr& known, const entry& seen, bool now,
                             const eviction& asked, deadline by, completion<int> done);
// consul_records.cpp
[[nodiscard]] op write_records(const claims_ptr& known, std::string_view lease,
                               std::optional<claim_id> guard, std::span<const change> changes,
                               std::chrono::seconds keep, deadline by,
                               completion<std::uint64_t> done);
[[nodiscard]] op read_record(const claims_ptr& known, std::string_view key, deadline by,
                             completion<std::optional<record>> done);
[[nodiscard]] op scan_records(const claims_ptr& known, std::string_view prefix,
                              std::string_view from, std::size_t rows, deadline by,
                              completion<records> done);
// consul_list.cpp
[[nodiscard]] op list_entries(const claims_ptr& known, std::string_view prefix,
                              std::string_view from, std::size_t rows, deadline by,
                              completion<entries> done);
// One row, of a key that is held as a lock is; its session is the caller's to add.
[[nodiscard]] entry row_of(const claims& known, const key_value& kv, std::string name);
void add_session(entry& row, const session_facts& of);
// consul_observe.cpp
[[nodiscard]] op observe_name(const claims_ptr& known, std::string_view name,
                              unique_function<void(std::optional<entry>)> seen);

}  // namespace trinco::detail::consul
