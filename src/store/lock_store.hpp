// The contract of a store of locks: what sessions, mutexes and their kin ask of memory, SQLite,
// etcd, Consul.
//
// Threads, cancellation, deadlines, errors, repetition and time follow the rules at the head of
// core/loop.hpp; await, on_gone and observe alone have no deadline. One notion carries mutex,
// shared_mutex, semaphore, election and lock_all:
//
//   lease   what keeps a holder's claims alive: renewed by the session, ended by revoke or by not
//           being renewed for its TTL. A claim never outlives its lease.
//   claim   entries in the queues of one or more names, made together under one lease and granted
//           when every part has its turn. The caller chooses its id, so that an enter whose reply
//           is lost can be repeated or undone.
//
// Two entries of a name conflict unless both are shared, or both are permits with equal n. An entry
// is granted when no earlier one conflicts and, for a permit, fewer than n earlier permits exist.
//
// Tokens exist for exclusive grants only, grow strictly per name for ever, and stay below 2^53.
// Nothing is granted after `lost`. No store renews or retries policy: sessions do.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/lock/claim.hpp"  // claim_kind
#include "core/loop.hpp"
#include "core/names.hpp"  // is_one_line

namespace trinco::detail {

struct lock_traits {
    bool fifo = false;            // grants follow the order of entering
    bool shared = false;          // offers claim_kind::shared
    bool permits = false;         // offers claim_kind::permit
    bool values = false;          // publish is kept and listed
    bool guarded_writes = false;  // write with a claim compares ownership in the same step
    bool lists_waiters = true;    // list tells who waits, too
    std::chrono::seconds ttl_min{1};
    std::chrono::seconds ttl_max{86'400};
    std::size_t name_max = 200;  // bytes of one name
    std::size_t parts_max = 32;  // names of one claim
};

struct lease {
    std::string id;
    std::chrono::seconds ttl{0};  // as granted; may be longer than asked for
};

// How many claims ended with their lease, in the step that ended it: one that is missing was gone
// before. nullopt: the store does not tell, as where a request may have been carried out before.
using ended_claims = std::optional<std::size_t>;

struct claim_id {
    std::uint64_t n = 0;  // chosen by the caller, unique in its lease
    bool operator==(const claim_id&) const = default;
    auto operator<=>(const claim_id&) const = default;
};

struct part {
    std::string name;
    claim_kind kind = claim_kind::exclusive;
    std::uint32_t n = 0;  // permits of a semaphore, else 0
    bool operator==(const part&) const = default;
};

struct claim {
    claim_id id;
    std::string lease;
    std::vector<part> parts;    // sorted distinct names
    std::string info;           // owner data, shown by list; at most 4 KiB
    bool only_if_free = false;  // granted at once, or conflict and nothing left behind
    // Where other programs read an entry's value, it is `info` and nothing else: what a leader
    // proclaims. Only of exclusive parts; such an entry has nothing beside it to be listed.
    bool bare = false;
    bool operator==(const claim&) const = default;
};

struct grant {
    std::vector<std::uint64_t> tokens;  // one a part; 0 where it is no fence (shared, permit)
};

struct place {
    std::optional<std::uint32_t> ahead;  // entries before the first part's; nullopt: no order kept
    // Of enter, where the store tells it: the step that entered the claim has confirmed its turn as
    // await does, which need not be asked then.
    std::optional<grant> granted{};
};

// Of operators who ask a holder to stop. One line each.
inline constexpr std::size_t max_evictor = 64;
inline constexpr std::size_t max_eviction_reason = 200;

struct eviction {
    std::string who;
    std::string why;  // may be empty
    [[nodiscard]] bool is_sound() const noexcept {
        return who.size() <= max_evictor && why.size() <= max_eviction_reason && is_one_line(who) &&
               is_one_line(why);
    }
};

struct entry {
    std::string name;
    std::string info;
    std::string handle;  // identifies exactly this entry to evict; begins with its lease and '/'
    claim_kind kind = claim_kind::exclusive;
    bool holds = false;
    std::uint64_t token = 0;
    std::chrono::milliseconds since{0};  // ago, that it entered
    std::chrono::milliseconds left{0};   // of its lease
    std::uint32_t n = 0;                 // permits of a semaphore, else 0
    // Ago, that it was granted; nullopt: it waits, or the store does not keep it.
    std::optional<std::chrono::milliseconds> held{};
    std::optional<eviction> evicted{};  // who asked it to stop last
    // `left` is all of its TTL: the store does not tell how much of that is over.
    bool left_is_whole = false;
    std::string lease_label{};  // what its lease is called, if the store tells
};

struct entries {
    std::vector<entry> rows;  // by name, then in queue order
    std::string next;         // hand it to `from`; empty: this was the last page
    // Of the name that is the whole prefix nothing is told: what lies there may not be read.
    bool name_is_hidden = false;
};

inline constexpr std::uint64_t must_be_absent = 0;
inline constexpr std::uint64_t any_revision = ~std::uint64_t{0};

struct change {
    std::string key;
    std::optional<std::string> value;  // nullopt: erase
    std::uint64_t if_revision = any_revision;
};

struct record {
    std::string value;
    std::uint64_t revision = 0;
};

struct keyed_record : record {
    std::string key;
};

struct records {
    std::vector<keyed_record> rows;  // by key
    std::string next;                // hand it to `from`; empty: this was the last page
};

class lock_store {
public:
    virtual ~lock_store() = default;
    [[nodiscard]] virtual const lock_traits& traits() const = 0;

    // A new lease. A TTL below ttl_min or above ttl_max is `invalid`, never clamped. A lost reply
    // leaves a lease that ends by itself. The label names the holder to operators.
    [[nodiscard]] virtual op open(std::chrono::seconds ttl, std::string_view label, deadline by,
                                  completion<lease> done) = 0;
    // Before `open`: the claim that its caller will enter first, as enter will get it but for the
    // lease. A store may do both in one step, and then has the answer when enter is called. Who
    // says so enters it, or revokes the lease.
    virtual void expect(const claim& first) { (void)first; }
    // The TTL granted anew, counted by the caller from before the call; `lost` when it has ended.
    [[nodiscard]] virtual op renew(std::string_view lease, deadline by,
                                   completion<std::chrono::seconds> done) = 0;
    // A descriptor which keeps the lease from being taken for dead, beyond this process, for as
    // long as any process has it open and at most until the TTL runs out; -1 where a lease ends by
    // its TTL alone, and for leases of others. It stays the store's. Any thread.
    [[nodiscard]] virtual int live_descriptor(std::string_view lease) const {
        (void)lease;
        return -1;
    }
    // The caller has time until it asks for something else, such as giving back what it holds: what
    // a store can prepare of that without waiting for anybody it may do now. The loop's thread.
    virtual void get_ready() noexcept {}
    // For a process that is about to end without closing the store: takes away what others would
    // still find of it, such as a file. Whatever it holds ends by itself. Any thread; nothing may
    // be called afterwards.
    virtual void before_exit() noexcept {}
    // Whether all that it kept is gone and not only out of reach: its file was removed or replaced,
    // say. Found out by calls that fail; renew then answers `lost`. Any thread.
    [[nodiscard]] virtual bool is_gone() const noexcept { return false; }
    // Whether nobody listened at any of its addresses when they were tried last: calls go on trying
    // until their deadlines, and who cannot wait need not. Any thread, while the store is open.
    [[nodiscard]] virtual bool is_refused() const noexcept { return false; }
    // Ends the lease and every claim on it. Succeeds when there is nothing to end.
    [[nodiscard]] virtual op revoke(std::string_view lease, deadline by,
                                    completion<ended_claims> done) = 0;
    // What hangs on the lease by the store's own account: the cure for unknown outcomes.
    [[nodiscard]] virtual op owned(std::string_view lease, deadline by,
                                   completion<std::vector<claim_id>> done) = 0;
    // Queues the claim; idempotent in its id. With only_if_free: granted at once, or `conflict`
    // with nothing left behind. `lost` when the lease has ended; `limit_mismatch` for another n.
    [[nodiscard]] virtual op enter(claim what, deadline by, completion<place> done) = 0;
    // Completes once: granted, after one linearizable read has confirmed the own entries and their
    // turn, with the tokens of that read; or `lost`. Dropping the op stops waiting and keeps the
    // place. `moved` tells a new place, where the store keeps one; it may be empty.
    [[nodiscard]] virtual op await(std::string_view lease, claim_id id,
                                   unique_function<void(place)> moved, completion<grant> done) = 0;
    // After the grant, fires once: `lost` (entry deleted, lease ended) or `evicted` (an operator
    // asks for it). It may be late; the session's deadline does not depend on it.
    [[nodiscard]] virtual op on_gone(std::string_view lease, claim_id id,
                                     unique_function<void(std::error_code)> gone) = 0;
    // Reads the claim's turn again, linearizably: the tokens, `conflict` while waiting, or `lost`.
    [[nodiscard]] virtual op verify(std::string_view lease, claim_id id, deadline by,
                                    completion<grant> done) = 0;
    // Which parts of the claim have their turn at this moment, in the order of its parts: all once
    // it is granted; none while it waits where no order is kept. `lost` when it is gone. For claims
    // of several names, whose owner steps back where it keeps a free name from others.
    [[nodiscard]] virtual op turns(std::string_view lease, claim_id id, deadline by,
                                   completion<std::vector<bool>> done) = 0;
    // Rewrites the claim's info. `lost` when it is gone.
    [[nodiscard]] virtual op publish(std::string_view lease, claim_id id, std::string_view info,
                                     deadline by, completion<int> done) = 0;
    // Removes exactly this claim, which wakes its successors. Succeeds when nothing is there.
    [[nodiscard]] virtual op leave(std::string_view lease, claim_id id, deadline by,
                                   completion<int> done) = 0;
    // All changes or none, in one atomic step; with a guard only while that claim holds (`lost`),
    // and only if revisions are as told (`conflict`). Durable before the answer, the new revision.
    // Expires after `keep` (0: never). What core/lock/data_key.hpp calls data lies as it is named.
    [[nodiscard]] virtual op write(std::string_view lease, std::optional<claim_id> guard,
                                   std::span<const change> changes, std::chrono::seconds keep,
                                   deadline by, completion<std::uint64_t> done) = 0;
    [[nodiscard]] virtual op read(std::string_view key, deadline by,
                                  completion<std::optional<record>> done) = 0;
    // Records whose keys begin with prefix, after `from`; at most `rows`, and fewer where they are
    // large. Never on a hot path.
    [[nodiscard]] virtual op scan(std::string_view prefix, std::string_view from, std::size_t rows,
                                  deadline by, completion<records> done) = 0;
    // Entries of names that begin with prefix, after `from`; at most `rows`.
    [[nodiscard]] virtual op list(std::string_view prefix, std::string_view from, std::size_t rows,
                                  deadline by, completion<entries> done) = 0;
    // Asks the holder of exactly this entry to stop (on_gone: evicted), or, with `now`, deletes it.
    // `conflict` when the entry is another by now; `lost` when it is gone. Who asked, and why, is
    // kept in the entry.
    [[nodiscard]] virtual op evict(const entry& seen, bool now, std::string_view who,
                                   std::string_view why, deadline by, completion<int> done) = 0;
    // Tells the holder of a name, now and at each change; nullopt: nobody. May skip intermediate
    // ones, never the last.
    [[nodiscard]] virtual op observe(std::string_view name,
                                     unique_function<void(std::optional<entry>)> seen) = 0;
    // Finishes or abandons what is under way, in bounded time. Nothing may be called afterwards.
    [[nodiscard]] virtual op stop(deadline by, completion<int> done) = 0;
    // Why something was told this error lately, one sentence without secrets; empty when such
    // things succeed again, or when nothing is known. The loop's thread.
    [[nodiscard]] virtual std::string trouble(const std::error_code& told) const {
        (void)told;
        return {};
    }
};

}  // namespace trinco::detail
