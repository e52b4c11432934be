// The locks of one process: leases, queues and records behind one mutex. What a server of locks is,
// reduced to its rules; stores of several sessions, threads and loops share one (memory_locks).
//
// Every function answers at once. Whoever waits leaves a listener, which is called under the mutex,
// by whatever thread caused the event, and so may do nothing but post to its own loop. Time is
// injected; a lease ends at the first call at or after its time, so somebody must call sweep()
// then.
//
// Cost: enter, leave and renew O(log n) beside the walk over those entries of the queue that have
// their turn; a release wakes those whose turn it is and nobody else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "store/lock_store.hpp"

namespace trinco::detail {

template <class T>
struct lock_answer {
    std::error_code error;
    T value{};
};

class memory_lock_server {
public:
    using now_function = std::function<boot_clock::time_point()>;
    // Over them: busy.
    struct limits {
        std::size_t leases = 65'536;
        std::size_t claims = 1'000'000;
        std::size_t keys = 100'000;
    };
    // Called from any thread, under the mutex: they post, and nothing else.
    using grant_listener = std::function<void(std::error_code, const grant&)>;
    using place_listener = std::function<void(place)>;
    using gone_listener = std::function<void(std::error_code)>;
    using holder_listener = std::function<void(const std::optional<entry>&)>;
    using listener_id = std::uint64_t;  // never 0

    explicit memory_lock_server(now_function now = &boot_clock::now);
    memory_lock_server(now_function now, const limits& bounds);
    memory_lock_server(const memory_lock_server&) = delete;
    memory_lock_server& operator=(const memory_lock_server&) = delete;

    [[nodiscard]] static const lock_traits& traits() noexcept;

    // As the functions of lock_store, without the waiting.
    lock_answer<lease> open(std::chrono::seconds ttl, std::string_view label);
    lock_answer<std::chrono::seconds> renew(std::string_view lease);
    ended_claims revoke(std::string_view lease);
    lock_answer<std::vector<claim_id>> owned(std::string_view lease);
    lock_answer<place> enter(const claim& what);
    lock_answer<grant> verify(std::string_view lease, claim_id id);
    lock_answer<std::vector<bool>> turns(std::string_view lease, claim_id id);
    std::error_code publish(std::string_view lease, claim_id id, std::string_view info);
    void leave(std::string_view lease, claim_id id);
    lock_answer<std::uint64_t> write(std::string_view lease, std::optional<claim_id> guard,
                                     std::span<const change> changes, std::chrono::seconds keep);
    lock_answer<std::optional<record>> read(std::string_view key);
    lock_answer<records> scan(std::string_view prefix, std::string_view from, std::size_t rows);
    lock_answer<entries> list(std::string_view prefix, std::string_view from, std::size_t rows);
    std::error_code evict(const entry& seen, bool now, eviction by = {});

    // Listeners. Each is called as lock_store says; forget() ends them, also when it was called.
    listener_id await(std::string_view lease, claim_id id, grant_listener granted,
                      place_listener moved);
    listener_id on_gone(std::string_view lease, claim_id id, gone_listener gone);
    listener_id observe(std::string_view name, holder_listener seen);
    void forget(listener_id id);

    // Ends what has run out, and tells whom it concerns.
    void sweep();
    // When the next lease or record runs out; max() when none does.
    [[nodiscard]] boot_clock::time_point next_expiry() const;

    // What is there, in the order of names and queues: for tests, the simulator and their judges.
    struct row {
        std::string name;
        std::string lease;
        claim_id id;
        bool holds = false;
        std::uint64_t token = 0;
        boot_clock::duration left{};  // of its lease; not above zero when it waits for a sweep
    };
    [[nodiscard]] std::vector<row> rows() const;
    [[nodiscard]] std::vector<std::string> leases() const;
    // Waiters that were told of a grant or of a loss, since the beginning.
    [[nodiscard]] std::uint64_t wakeups() const;

private:
    using claim_key = std::pair<std::string, claim_id>;  // lease and claim
    struct queue;
    struct member {
        seat asks;
        queue* in = nullptr;
        bool has_turn = false;
        std::uint64_t token = 0;
    };
    struct waiter {
        grant_listener granted;
        place_listener moved;    // may be empty
        std::uint32_t told = 0;  // the place it knows
    };
    struct claim_record {
        claim_key who;
        std::uint64_t revision = 0;  // its place in every queue
        std::vector<member> parts;
        std::string info;
        std::uint64_t info_version = 0;
        boot_clock::time_point since;
        std::size_t missing = 0;  // parts that do not have their turn
        boot_clock::time_point granted;
        std::optional<eviction> evicted;  // asked to stop
        std::map<listener_id, waiter> waiters;
        std::map<listener_id, gone_listener> watchers;
    };
    struct slot {
        claim_record* who = nullptr;
        std::size_t part = 0;
    };
    struct queue {
        std::string name;
        std::map<std::uint64_t, slot> slots;  // by revision
        std::set<std::uint64_t> movers;       // claims that want to be told their place
        std::map<listener_id, holder_listener> observers;
        std::pair<std::uint64_t, std::uint64_t> shown{};  // revision and info_version of the holder
    };
    struct lease_record {
        std::string label;
        std::chrono::seconds ttl{0};
        boot_clock::time_point ends;
        std::map<claim_id, std::unique_ptr<claim_record>> claims;
    };
    struct stored {
        record what;
        boot_clock::time_point ends;
    };
    enum class listens : std::uint8_t { waiter, watcher, observer };
    struct listening {
        listens what;
        claim_key who;     // of a claim's listener
        std::string name;  // of an observer
    };
    struct by_name {
        bool operator()(const queue* a, const queue* b) const { return a->name < b->name; }
    };
    using touched = std::set<queue*, by_name>;  // never by address: a history must replay

    boot_clock::time_point sweep_locked();
    claim_record* find(std::string_view lease, claim_id id);
    std::error_code check(const claim& what, const lease_record& on) const;
    [[nodiscard]] bool fits_only_if_free(const claim& what) const;
    void insert(const claim& what, lease_record& on);
    void detach(claim_record& c, touched& queues);
    void tell_lost(claim_record& c);
    void remove(lease_record& on, claim_id id);
    void end_lease(std::map<std::string, lease_record, std::less<>>::iterator at);
    void settle(touched& queues);
    void advance(queue& q, touched& granted);
    void give(claim_record& c, touched& granted);
    void tell_places(queue& q);
    void tell_holder(queue& q);
    [[nodiscard]] place place_of(const claim_record& c) const;
    [[nodiscard]] grant grant_of(const claim_record& c) const;
    [[nodiscard]] entry entry_of(const queue& q, const slot& s) const;
    [[nodiscard]] std::error_code check(std::span<const change> changes) const;
    void put(const change& one, boot_clock::time_point ends, std::uint64_t at);
    void erase_key(std::map<std::string, stored, std::less<>>::iterator at);

    mutable std::mutex mutex_;
    now_function now_;
    limits bounds_;
    std::uint64_t revision_ = 0;  // grows with every enter, grant and write
    std::uint64_t next_lease_ = 1;
    listener_id next_listener_ = 1;
    std::uint64_t wakeups_ = 0;
    std::size_t claims_ = 0;
    std::map<std::string, lease_record, std::less<>> leases_;
    std::set<std::pair<boot_clock::time_point, std::string>> leases_by_end_;
    std::map<std::string, queue, std::less<>> queues_;
    std::map<std::string, stored, std::less<>> keys_;
    std::set<std::pair<boot_clock::time_point, std::string>> keys_by_end_;
    std::map<listener_id, listening> listeners_;
};

}  // namespace trinco::detail
