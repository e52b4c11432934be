// One linearizable look at a claim: its own entries, and what is before them in their queues, read
// in one transaction. Further pages follow where one did not reach far enough, each together with
// the own entries.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "store/etcd/etcd_claims.hpp"
#include "store/etcd/etcd_turn.hpp"

namespace trinco::detail::etcd {

struct claim_view {
    std::int64_t since = 0;     // of the store, when the first page was read: watches go on there
    std::int64_t revision = 0;  // and the last one, at which all own entries were there
    std::vector<judgement> parts;
    std::vector<key_value> own;
    std::optional<eviction> evicted;  // an operator asked it to stop
    [[nodiscard]] bool granted() const noexcept;
    // The revision of its entries.
    [[nodiscard]] std::int64_t created() const noexcept {
        return own.empty() ? 0 : own.front().create_revision;
    }
};

// `lost` when an entry of it is not there. What was seen is remembered: entries, tokens, marks.
// With `created` only of the claim whose entries are of that revision: by the time of asking its
// number may be another's. Without, of the one that has the number when this is called.
[[nodiscard]] op look_at(const std::shared_ptr<claims>& known, std::string_view lease, claim_id id,
                         deadline by, completion<claim_view> done, std::int64_t created = 0);

// The parts of a claim that is not known, as found on its lease, sorted by name. `lost` when there
// is none, or no such lease.
[[nodiscard]] op parts_of(const std::shared_ptr<claims>& known, std::string_view lease, claim_id id,
                          deadline by, completion<std::vector<part>> done);

// The tokens of a claim that has its turn at that revision, or those that it was given before.
[[nodiscard]] std::vector<std::uint64_t> tokens_of(claims& known, known_claim& claim,
                                                   std::int64_t revision);

}  // namespace trinco::detail::etcd
