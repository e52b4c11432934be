// The number that a claim has in its keys: its id, or one that is free again.
//
// Until it is compacted etcd remembers every key that it ever had, and walks over those of a queue
// with each look at it. A process that locks and unlocks a name a million times must not leave a
// million keys behind, so its claims use the same few, one after another.
//
// A number is free again when its claim has left, and when nothing can arrive late that enters it:
// each request to enter it was answered, and the answer was no unknown outcome. Where that is not
// so, the claim keeps its number for as long as its lease lives, and what lands late is found under
// it.
//
// Claims that this store did not enter have their id as their number. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "store/lock_store.hpp"

namespace trinco::detail::etcd {

class etcd_slots {
public:
    // For a request to enter that is sent now.
    claim_id enter(std::string_view lease, claim_id id);
    // Its answer: the claim is there, is not there, or nobody knows.
    enum class outcome : std::uint8_t { there, absent, unknown };
    void answered(std::string_view lease, claim_id id, outcome of);
    void left(std::string_view lease, claim_id id);
    void forget(std::string_view lease);

    // Whether a request may still land that enters what has this number.
    [[nodiscard]] bool may_arrive(std::string_view lease, claim_id slot) const;
    // nullopt: the claim is certainly gone.
    [[nodiscard]] std::optional<claim_id> find(std::string_view lease, claim_id id) const;
    // Whose the number is.
    [[nodiscard]] claim_id owner(std::string_view lease, claim_id slot) const;

private:
    struct seat_of_claim {
        claim_id slot;
        int unanswered = 0;
    };
    struct table {
        std::map<claim_id, seat_of_claim> claims;
        std::map<claim_id, claim_id> taken;  // slots, and whose they are
        std::set<claim_id> free;
    };
    static claim_id choose(table& t, claim_id id);
    void release_if_certain(table& t, claim_id id);

    std::map<std::string, table, std::less<>> leases_;
};

}  // namespace trinco::detail::etcd
