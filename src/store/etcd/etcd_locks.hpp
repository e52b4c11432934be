// Locks on etcd: the contract of lock_store over any etcd::rpc.
//
// A lock here is the lock of `etcdctl lock NAME`, of Go's concurrency package and of etcd's Lock
// service (jetcd and others): all of them wait for each other, in the order of coming. How keys and
// values lie is in etcd_layout.hpp; an entry of theirs counts as exclusive. What is safer here:
//
//   Granting   A claim is granted by a read that shows its own entries and its turn in one
//              transaction: the entering itself when nobody is ahead, else a look after the wait.
//              A waiter whose lease has died is never granted, on no version of the server.
//   Waiting    Each entry watches one key, and a release wakes one waiter (of permits two). A watch
//              only says when to look; whoever waits or holds makes sure by itself at a third of
//              the lease's life, at most 10 s, that nothing has changed, since servers lose events
//              and restart. Many do so together (etcd_glances.hpp).
//   Leaving    An entry is deleted only if it is the one that was entered.
//   Tokens     The revision of the entering that was granted at once, or of the look that confirmed
//              the turn, plus token_epoch x 2^45: larger than every earlier holder's, whether that
//              was ours, etcdctl's or Go's. Revisions go back when etcd is restored from a
//              snapshot; raise token_epoch then.
//   Names      Neither stray keys under NAME/ nor locks named NAME/CHILD block NAME for us. They
//              block Go, whose locks then block us no longer than they last.
//
// What it does not do
//   - The server ends leases no sooner than their TTL but perhaps later: a new leader begins all
//     of them anew. A dead holder's lock may stay for twice its TTL and more.
//   - The times of listings (since, held) are by the owner's wall clock, read by ours. `held` and
//     the token of one that had to wait appear when it was held for a second. A listed entry of a
//     claim of several names `holds` when it has its turn in this queue, and so observe tells it.
//   - Entries of others cannot be asked to stop (evict without `now`): not_supported. They are only
//     deleted.
//   - A permit's queue is read back by n + 1 entries: n is at most 500.
//   - Values of others under a name are expected to be no longer than ours (4 KiB): who asks for a
//     shared lock or a permit behind many larger ones gets busy or unknown_outcome.
//
// Cost: enter and leave one transaction each, and one more where somebody is in a queue for the
// first time (etcd_hopes.hpp); a wait one look and a watch, and one look at the hand-over. A look
// reads as far as the nearest entry that is in the way, in pages that fit into a message. What a
// store remembers of its claims is in etcd_claims.hpp.
//
// Errors: those of etcd_rpc.hpp, and those that lock_store.hpp names. list is `busy` when more than
// 200,000 keys had to be walked for one page.
//
// The loop's thread. The loop must outlive the store.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "store/etcd/etcd_rpc.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail {

[[nodiscard]] std::chrono::milliseconds wall_time();  // since 1970

struct etcd_locks_settings {
    std::string prefix;            // before every key, records too; empty for the locks of others
    std::uint8_t token_epoch = 0;  // raised by the operator after a snapshot was restored
    std::function<std::chrono::milliseconds()> wall_clock = &wall_time;
    // For tests: told of the number that a claim gets in its keys, which is not always its id.
    std::function<void(std::string_view lease, claim_id id, claim_id number)> numbered = {};
};

namespace etcd {
class claims;
}

class etcd_locks final : public lock_store {
public:
    static constexpr std::size_t parts_max = 32;

    // The settings' prefix is a lock's name with a '/' behind it, or empty.
    etcd_locks(loop& on, std::unique_ptr<etcd::rpc> link, etcd_locks_settings settings = {});
    ~etcd_locks() override;
    etcd_locks(const etcd_locks&) = delete;
    etcd_locks& operator=(const etcd_locks&) = delete;

    [[nodiscard]] const lock_traits& traits() const override;
    [[nodiscard]] op open(std::chrono::seconds ttl, std::string_view label, deadline by,
                          completion<lease> done) override;
    [[nodiscard]] op renew(std::string_view lease, deadline by,
                           completion<std::chrono::seconds> done) override;
    [[nodiscard]] op revoke(std::string_view lease, deadline by,
                            completion<ended_claims> done) override;
    [[nodiscard]] op owned(std::string_view lease, deadline by,
                           completion<std::vector<claim_id>> done) override;
    [[nodiscard]] op enter(claim what, deadline by, completion<place> done) override;
    [[nodiscard]] op await(std::string_view lease, claim_id id, unique_function<void(place)> moved,
                           completion<grant> done) override;
    [[nodiscard]] op on_gone(std::string_view lease, claim_id id,
                             unique_function<void(std::error_code)> gone) override;
    [[nodiscard]] op verify(std::string_view lease, claim_id id, deadline by,
                            completion<grant> done) override;
    [[nodiscard]] op turns(std::string_view lease, claim_id id, deadline by,
                           completion<std::vector<bool>> done) override;
    [[nodiscard]] op publish(std::string_view lease, claim_id id, std::string_view info,
                             deadline by, completion<int> done) override;
    [[nodiscard]] op leave(std::string_view lease, claim_id id, deadline by,
                           completion<int> done) override;
    [[nodiscard]] op write(std::string_view lease, std::optional<claim_id> guard,
                           std::span<const change> changes, std::chrono::seconds keep, deadline by,
                           completion<std::uint64_t> done) override;
    [[nodiscard]] op read(std::string_view key, deadline by,
                          completion<std::optional<record>> done) override;
    [[nodiscard]] op scan(std::string_view prefix, std::string_view from, std::size_t rows,
                          deadline by, completion<records> done) override;
    [[nodiscard]] op list(std::string_view prefix, std::string_view from, std::size_t rows,
                          deadline by, completion<entries> done) override;
    [[nodiscard]] op evict(const entry& seen, bool now, std::string_view who, std::string_view why,
                           deadline by, completion<int> done) override;
    [[nodiscard]] op observe(std::string_view name,
                             unique_function<void(std::optional<entry>)> seen) override;
    [[nodiscard]] op stop(deadline by, completion<int> done) override;
    [[nodiscard]] std::string trouble(const std::error_code& told) const override;
    [[nodiscard]] bool is_refused() const noexcept override;

private:
    template <class T>
    op refuse(std::error_code error, completion<T> done);

    const std::shared_ptr<etcd::claims> known_;
};

}  // namespace trinco::detail
