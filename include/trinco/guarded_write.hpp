// Data that only the holder of a lock changes, kept at the lock's own store.
//
//     trinco::mutex m(session, "accounts/7");
//     std::lock_guard hold(m);
//     const auto before = trinco::read_guarded(session, "accounts:7");
//     const int balance = before ? std::stoi(before->value) : 0;
//     trinco::guarded_write(m).put("accounts:7", std::to_string(balance - 10)).commit();
//
// A process that was paused past its deadline does not know that somebody else has the lock by now
// (trinco/session.hpp). What it writes to a database has to carry the fencing token, which the
// database compares. Here the store itself compares: in one atomic step it looks whether the entry
// under which the lock was granted is still there, and changes the keys only if it is. So a holder
// that is too late is refused (errc::lost), however late it is, and nothing of it is applied.
//
// Guards       Every kind of lock: mutex, election (only the leader writes), lock_all (all of its
//              names are compared), shared_mutex and semaphore, but not a semaphore on Consul
//              (errc::not_supported). Readers and holders of permits are refused when they have
//              lost theirs, but several of them write at a time; let them compare revisions.
// Belongs to   the grant that was held when the guarded_write was made. Given back and taken again
//              is another grant: what was read before is old. That is errc::lost, too.
// Compares     A change with a revision is applied only while the key has that revision; absent
//              (0): while it is not there. errc::conflict when one differs, and then none of the
//              changes is applied. Revisions grow with every write to the store.
// By agreement Which lock guards which key is known to its users alone. Who changes the key under
//              another lock, or with etcdctl or `consul kv`, is not refused.
// Keys         1-256 of [A-Za-z0-9._:/-], with a ':' before any '/', and not beginning with
//              "trinco:": "accounts:7", "stock:blue/left". On etcd and Consul the key lies under
//              exactly this name (behind the URL's prefix), for `etcdctl get`, `consul kv get` and
//              programs in any language. On Consul no segment is empty, "." or "..".
//              No lock's name has a ':', so that a key is never taken for somebody who waits in the
//              queue of a lock, where Go's and etcdctl's locks would wait for it to go. (Behind a
//              prefix it lies beneath that name: see trinco/etcd.hpp.)
// Limits       A value is any bytes, at most 128 KiB; 64 distinct keys a write, 1 MiB in all, on
//              Consul 256 KiB (errc::invalid). The store is one for locks: for what belongs to
//              them, not for bulk.
// Kept         for ever, or for as long as keep_for says, counted from the write on the store's
//              clock; never shorter. On etcd longer: by up to a sixteenth, at least for as long as
//              its shortest lease (2 s by its defaults), and from its beginning again after each
//              change of its leader. Consul has no clock for keys: there the wall clocks of the
//              machines count, of the one that writes and of the one that reads, and the key is
//              there for the time and a margin, the smaller of the time and one hour. Keep the
//              clocks together (NTP): for a machine whose clock is ahead of the writer's by more
//              than the margin it is gone earlier. Reading deletes nothing: `consul kv get` and
//              other programs still find a key whose time is over.
// Unknown      A write that had no answer in time may be applied later, even after a later write of
//              the same holder, though never when giving it back was acknowledged, or somebody
//              else was granted it. Read back and compare revisions, or give the lock back and
//              begin again. What is said of later attempts (lost, conflict) is of those alone.
// Durable      when commit returns: on the disk of local:, on a majority of etcd's members or
//              Consul's servers.
//
// Stores       memory:, local:, etcd: and Consul.
// Threads      Different objects from any thread; one object is one thread's at a time.
// Ownership    It may outlive its lock, and is refused then.
// Errors       lock_error, and twins with std::error_code. Nothing was changed: lost (not held any
//              more), not_held (it was not when this was made), conflict, unavailable, denied,
//              invalid (no changes), not_supported (a store without guarded writes, or a permit
//              on Consul), would_deadlock (on the store's own thread), shut_down, forked, busy (too
//              large for the store, or it is full). unknown_outcome: no answer within the session's
//              request_timeout; or etcd is full, and makes the change that fills it all the same.
//              put, erase and keep_for throw lock_error invalid for what is out of range.
// Cost         commit: one transaction; on etcd and Consul one commit of the cluster, as taking a
//              lock is. On etcd one with keep_for asks for a lease beside it, at most once in a
//              sixteenth of that time. read_guarded: one linearizable read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "trinco/error.hpp"
#include "trinco/lock_handle.hpp"
#include "trinco/session.hpp"

namespace trinco {

namespace detail {
struct change;
}

class guarded_write {
public:
    // A revision that says: the key must not be there.
    static constexpr std::uint64_t absent = 0;

    // Asks the store nothing.
    explicit guarded_write(const lock_handle& held);
    ~guarded_write();
    guarded_write(guarded_write&&) noexcept;
    guarded_write& operator=(guarded_write&&) noexcept;

    // The value of the key after commit; with a revision only if the key has it until then. Each
    // key once.
    guarded_write& put(std::string_view key, std::string_view value);
    guarded_write& put(std::string_view key, std::string_view value, std::uint64_t if_revision);
    // That the key is not there after commit; nothing when it is not there before.
    guarded_write& erase(std::string_view key);
    guarded_write& erase(std::string_view key, std::uint64_t if_revision);
    // Of all keys that are put: 1 s ... 366 days; 0 (default): for ever. A later write counts anew.
    guarded_write& keep_for(std::chrono::seconds d);

    // All changes or none; the new revision of all of them (of erasures alone 0 on Consul, which
    // tells none). Blocks at most request_timeout and half a second. May be called again, for the
    // same changes; after unknown_outcome a conflict may be one with oneself.
    std::uint64_t commit();
    std::uint64_t commit(std::error_code& error);

private:
    void add(std::string_view key, std::optional<std::string_view> value,
             std::uint64_t if_revision);

    std::weak_ptr<detail::lock_shell> of_;
    std::uint64_t grant_;  // 0: it was not held
    std::vector<detail::change> changes_;
    std::size_t bytes_ = 0;
    std::chrono::seconds keep_{0};
    bool in_doubt_ = false;  // a commit had no answer, and none was acknowledged since
};

struct guarded_value {
    std::string value;
    std::uint64_t revision = 0;
};

// What the key has at this moment, whoever holds the lock; nothing when it is not there. Blocks at
// most the session's request_timeout and half a second. Errors: invalid (the key, a session without
// a lease), unavailable, denied, would_deadlock, forked, shut_down.
[[nodiscard]] std::optional<guarded_value> read_guarded(session& on, std::string_view key);
[[nodiscard]] std::optional<guarded_value> read_guarded(session& on, std::string_view key,
                                                        std::error_code& error);

}  // namespace trinco
