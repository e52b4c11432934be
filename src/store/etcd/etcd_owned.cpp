// What hangs on a lease. etcd lists a lease's keys by the word of whoever takes itself for the
// leader, without asking a majority: one that was deposed, or is behind with what it has carried
// out, misses entries. So whatever of our claims it does not list is read in a transaction, which
// does ask, before anybody concludes that it is gone.
#include <algorithm>

#include "core/mutant.hpp"
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr std::size_t reads_at_once = 100;  // of the 128 operations of a transaction

class listing_lease : public conversation<listing_lease, std::vector<claim_id>> {
public:
    explicit listing_lease(std::string_view lease) : lease_(lease) {}

    void start() {
        number_ = lease_number(lease_);
        if (!number_) return refuse(errc::lost);
        request_ = link().facts(*number_, true, by_, then(&listing_lease::listed));
    }

private:
    struct unlisted {
        claim_id id;
        std::string key;
    };

    void listed(std::error_code error, lease_facts facts) {
        if (error) return finish(error, {});
        is_known_there_ = facts.ttl >= std::chrono::seconds(0);
        for (const auto& key : facts.keys) {
            const auto place = place_of_key(key);
            if (place && place->lease == *number_) there_.push_back(place->id);
        }
        std::sort(there_.begin(), there_.end());
        if (const auto* on = known().find(lease_)) look_for_missing(*on);
        if (TRINCO_MUTANT("etcd_account_unconfirmed")) missing_.clear();
        read();
    }

    void look_for_missing(const known_lease& on) {
        for (const auto& [id, claim] : on.claims) {
            if (std::binary_search(there_.begin(), there_.end(), id)) continue;
            for (const auto& p : claim.parts) {
                missing_.push_back({id, entry_key(p.name, *number_, id)});
            }
        }
    }

    void read() {
        if (missing_.empty()) return answer();
        txn_request ask;
        for (std::size_t i = 0; i < std::min(reads_at_once, missing_.size()); ++i) {
            range_request one{{missing_[i].key, {}}};
            one.keys_only = true;
            ask.success.emplace_back(std::move(one));
        }
        request_ = link().txn(ask, by_, then(&listing_lease::was_read));
    }
    void was_read(std::error_code error, txn_reply reply) {
        if (error) return finish(error, {});
        for (std::size_t i = 0; i < reply.replies.size(); ++i) {
            const auto& kvs = reply.replies[i].kvs;
            if (!kvs.empty() && kvs.front().lease == *number_) there_.push_back(missing_[i].id);
        }
        missing_.erase(missing_.begin(),
                       missing_.begin() + static_cast<std::ptrdiff_t>(reply.replies.size()));
        read();
    }

    void answer() {
        // A key on it shows that there is such a lease, whatever was said.
        if (!is_known_there_ && there_.empty()) {
            known().forget(lease_);
            return finish(errc::lost, {});
        }
        std::sort(there_.begin(), there_.end());
        there_.erase(std::unique(there_.begin(), there_.end()), there_.end());
        finish({}, std::move(there_));
    }

    const std::string lease_;
    std::optional<std::int64_t> number_;
    bool is_known_there_ = false;
    std::vector<claim_id> there_;
    std::vector<unlisted> missing_;
};

}  // namespace

op claims_on(const claims_ptr& known, std::string_view lease, deadline by,
             completion<std::vector<claim_id>> done) {
    return listing_lease::begin(known, by, std::move(done), lease);
}

}  // namespace trinco::detail::etcd
