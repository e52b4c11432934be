// Locks on Consul: the contract of lock_store over any consul::rpc.
//
// A lock here is the lock of `consul lock NAME` and of Go's api.Lock{Key: "NAME/.lock"}, and a
// semaphore is that of `consul lock -n N NAME` and of Go's api.Semaphore{Prefix: "NAME"}: all of
// them wait for each other. How keys and values lie is in consul_layout.hpp. What is safer here:
//
//   Leases     A lease is one session: without health checks, so that nothing but its TTL ends it
//              and the removal of the node at which it was made, as Consul removes a server that
//              died; an agent of the own machine is not removed so. Its end deletes what it held.
//              Consul ends it between one TTL and two after it was last renewed.
//   Granting   A claim takes all its names in one transaction, each only if it is as it was last
//              seen: not there, or free since that index. So a request that arrives late takes
//              nothing twice from the same session, and nothing of another kind is overwritten.
//              What it holds is confirmed by a read that asks a majority, unless the answer is
//              younger than a second.
//   Waiting    Consul keeps no queue. A claim contends from enter until leave, whether somebody
//              awaits it or not; of one lease only one contends for a name, and the others stand
//              behind it in the order of coming. Who waits watches the key by a blocking query and
//              tries when it is free, a little later each time that somebody was faster; at a third
//              of the lease's life, at most 10 s, it looks by itself. An answer of a blocking query
//              says when to look and nothing else.
//   Lock-delay When a session ends that did not give back what it held, Consul keeps those names
//              from everybody for that session's lock-delay: 5 s of ours, 15 s of Go's unless told
//              otherwise. Who waits tries again every half second; who does not wait is told
//              `conflict`, and trouble() says why.
//   Leaving    An entry is deleted only if it is the one that was taken, by its index; so no
//              lock-delay follows. revoke gives back before it ends the session.
//   Permits    Each has a session of its own, which is made when there is first room for it, is
//              renewed with the lease, and ends with it, with leave and with the loss of the
//              permit. A renewal succeeds only if those of all permits do that the lease still has;
//              one whose session has ended is lost by it. The contender's key and
//              the place among the holders are taken in one transaction, by compare, so that nobody
//              holds without a place; what is held is confirmed by both. Whoever finds holders
//              whose sessions are gone drops them. Who gives back the last permit deletes the list.
//              No lock-delay follows: the session of nobody else can want its contender's key.
//              Several claims of one lease may hold permits of one name; those that wait contend
//              one after another. Nobody who waits has a key: Go's waiters have.
//   Account    Of what it holds Consul tells nobody by session. The store keeps the account: a
//              claim of which a request may still land is looked for at every reading (owned), for
//              ten minutes after it was last asked for, and at most 1,000 of a lease.
//   Tokens     The ModifyIndex of the write that took the lock, which is an index of Raft, plus
//              token_epoch x 2^45: larger than every earlier holder's, also after the key was
//              deleted, and whether that was ours, Go's or `consul lock`'s. Indexes go back when a
//              snapshot is restored in a new cluster; raise token_epoch then.
//
// What it does not do
//   - shared claims, and claims of several names with a permit among them: not_supported.
//   - A semaphore has at most 500 permits: all that lies under its name is read at once, also locks
//     of names that begin with NAME/ (4 MiB at most). Writes under it wake all its waiters.
//   - A permit is no guard of a write: `not_supported`.
//   - Waiting claims are not listed, since nobody but their own process knows of them. A listed
//     entry's `left` is its session's TTL: Consul does not tell how much of it is left, and ends it
//     later than that.
//   - `since` and `held` of listings are by the owner's wall clock, read by ours.
//   - Entries of others cannot be asked to stop (evict without `now`): not_supported. They are only
//     deleted.
//   - A claim is entered by the store that opened its lease and by no other: to others it is lost.
//   - A lease that another client revokes, by its id alone, is followed by its lock-delay.
//   - `keep` of records is compared with the reader's wall clock, with a margin: the smaller of
//     `keep` and an hour. What has expired reads as if it were not there; it is overwritten by who
//     writes, and deleted by who scans a day later.
//
// Cost: enter and leave one transaction each where the name is free; a wait a read, a blocking
// query, and a transaction for each time that the name becomes free. A permit takes a read of what
// lies under the name and one of the lease, a session and a transaction; giving it back a read, a
// transaction and the end of the session; renewing a lease one request more for each permit.
//
// Errors: those of consul_rpc.hpp, and those that lock_store.hpp names. A key of other flags where
// the lock or the list of holders would lie is limit_mismatch (it is of the other of the two) or
// invalid, and so is a list that is not as Go writes it; another number of permits is
// limit_mismatch. trouble() has the sentence.
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
#include "store/consul/consul_rpc.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail {

namespace consul {
[[nodiscard]] std::chrono::milliseconds wall_time();  // since 1970
class claims;
}  // namespace consul

struct consul_locks_settings {
    std::string prefix;            // before every key, records too; empty for the locks of others
    bool plain_keys = false;       // the lock NAME lies in the key NAME, not in NAME/.lock
    std::uint8_t token_epoch = 0;  // raised by the operator after a snapshot was restored
    std::chrono::seconds lock_delay{5};
    std::function<std::chrono::milliseconds()> wall_clock = &consul::wall_time;
};

class consul_locks final : public lock_store {
public:
    static constexpr std::size_t parts_max = 32;
    // Consul's own session_ttl_min; where the servers ask for more, they refuse what is shorter.
    static constexpr std::chrono::seconds shortest_ttl{10};

    // The settings' prefix is a lock's name with a '/' behind it, or empty.
    consul_locks(loop& on, std::unique_ptr<consul::rpc> link, consul_locks_settings settings = {});
    ~consul_locks() override;
    consul_locks(const consul_locks&) = delete;
    consul_locks& operator=(const consul_locks&) = delete;

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

    const std::shared_ptr<consul::claims> known_;
};

}  // namespace trinco::detail
