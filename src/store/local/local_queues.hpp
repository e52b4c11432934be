// Sessions, claims, queues and records of a local file, as transactions see them: the rules of
// store/lock_store.hpp on rows. All on the worker's thread; every function runs inside a
// transaction, those that only read also inside one that only reads.
//
// Whoever changes a queue decides who has the turn next, in the same transaction, writes token and
// turn into the rows, and rings at the owner: the next holder reads that it holds. Before somebody
// is granted, the kernel is asked whether he lives; who does not is removed, together with holders
// that died.
//
// A session that has run out or died is as good as gone: those that only read leave it out, those
// that write remove it first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "store/local/local_lives.hpp"
#include "store/local/local_worker.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail {

template <class T>
struct local_answer {
    std::error_code error;
    T value{};
};

// Where this process is to be found.
struct local_process {
    std::string socket;
    std::int64_t pid = 0;
    std::string pid_space;  // its PID namespace; empty: not known
};

// One transaction's view. Short-lived: made for a job, and gone with it.
class local_queues {
public:
    local_queues(local_file& in, local_round& after, const std::shared_ptr<local_lives>& lives,
                 const local_process& self)
        : in_(in), after_(after), lives_(lives), self_(self), now_(in.now().count()) {}

    [[nodiscard]] static const lock_traits& traits() noexcept;

    [[nodiscard]] local_answer<lease> open(std::chrono::seconds ttl, std::string_view label);
    // What was renewed, and for how long.
    struct renewal {
        std::chrono::seconds ttl{0};
        std::vector<claim_id> owned;
    };
    [[nodiscard]] local_answer<renewal> renew(std::string_view lease);
    ended_claims revoke(std::string_view lease);
    [[nodiscard]] local_answer<std::vector<claim_id>> owned(std::string_view lease);
    [[nodiscard]] local_answer<place> enter(const claim& what);
    // What verify() would answer of the claim that enter() has just granted at once.
    [[nodiscard]] const std::optional<grant>& given() const noexcept { return given_; }
    [[nodiscard]] local_answer<grant> verify(std::string_view lease, claim_id id);
    [[nodiscard]] local_answer<std::vector<bool>> turns(std::string_view lease, claim_id id);
    [[nodiscard]] std::error_code publish(std::string_view lease, claim_id id,
                                          std::string_view info);
    void leave(std::string_view lease, claim_id id);
    [[nodiscard]] std::error_code evict(const entry& seen, bool now, const eviction& by);

    [[nodiscard]] local_answer<std::uint64_t> write(std::string_view lease,
                                                    std::optional<claim_id> guard,
                                                    std::span<const change> changes,
                                                    std::chrono::seconds keep);
    [[nodiscard]] std::optional<record> read(std::string_view key);
    [[nodiscard]] records scan(std::string_view prefix, std::string_view from, std::size_t rows);
    [[nodiscard]] local_answer<entries> list(std::string_view prefix, std::string_view from,
                                             std::size_t rows);

    // Removes these sessions if they have died or run out.
    void reap(const std::set<std::int64_t>& sessions);
    // Every session of this process: it closes.
    void end_all_of(const std::string& socket);

    // ---- for who watches (reading) --------------------------------------------------------------
    struct claim_row {
        std::int64_t id = 0;
        std::int64_t session = 0;
        std::int64_t missing = 0;  // parts that do not have their turn
        bool evicted = false;
        std::int64_t ends = 0;  // of its session
    };
    // Nothing when it is not there, or its session has run out.
    [[nodiscard]] std::optional<claim_row> find(std::string_view lease, claim_id id);
    [[nodiscard]] grant grant_of(std::int64_t claim);
    [[nodiscard]] place place_of(std::int64_t claim);
    struct party {
        std::int64_t session = 0;
        std::int64_t ends = 0;
        std::int64_t pid = 0;
        bool same_pid_space = false;
        bool has_turn = false;
    };
    // The sessions whose end concerns a waiting claim: before each part that has no turn yet the
    // entry just ahead and, for a permit that is the first in line, those that hold.
    [[nodiscard]] std::vector<party> ahead_of(std::int64_t claim);
    // When a session ends; nothing when it is not there.
    [[nodiscard]] std::optional<std::int64_t> end_of(std::int64_t session);
    // Who holds a name, with the row's number; nothing when nobody does.
    [[nodiscard]] std::optional<std::pair<std::int64_t, entry>> holder_of(std::string_view name);
    // Gives up the descriptors of sessions that others have ended.
    void drop_ended();
    void add_observer(std::string_view name);
    // A claim of this process was granted at once: it will ask soon how that ends.
    void expect_listener() { after_.granted_at_once = true; }

    // The number in a lease's id; 0 when it is not one of this life of the machine.
    [[nodiscard]] std::int64_t session_of(std::string_view lease) const;

private:
    using names = std::set<std::string>;

    void read_machine();
    void sweep();      // when it is time to
    void sweep_all();  // whoever has run out goes
    void sweep_not_before(std::int64_t at);
    [[nodiscard]] bool read_renewal(std::int64_t session, renewal& to);
    void delete_claim(std::int64_t claim, names& queues);
    std::size_t remove_session(std::int64_t session, names& queues);  // and so many claims
    void settle(names queues);
    [[nodiscard]] bool advance(const std::string& name, names& granted);
    void give(std::int64_t claim, std::int64_t session, names& granted);
    [[nodiscard]] std::uint64_t next_token();
    void ring_session(std::int64_t session);
    void ring_next(std::string_view name, std::int64_t claim, std::int64_t session);
    void ring_who_waits_behind(std::string_view name, std::int64_t claim);
    void ring_observers(std::string_view name);
    [[nodiscard]] std::error_code check(const claim& what);
    [[nodiscard]] bool is_empty(std::string_view name);
    [[nodiscard]] bool fits_only_if_free(const claim& what);
    void insert(const claim& what, std::int64_t session);
    void insert_granted(const claim& what, std::int64_t session);
    [[nodiscard]] std::string lease_of(std::int64_t session) const;
    [[nodiscard]] bool is_current(std::int64_t session);
    [[nodiscard]] bool has_room_for_claims();
    [[nodiscard]] bool has_room_for_sessions();
    [[nodiscard]] std::int64_t revision_of(std::string_view key);
    [[nodiscard]] entry entry_from(query& row) const;

    local_file& in_;
    local_round& after_;
    const std::shared_ptr<local_lives>& lives_;
    const local_process& self_;
    std::int64_t now_;
    // Of the row of the machine, as far as this transaction has read it.
    std::int64_t sweep_at_ = 0;
    std::optional<std::uint64_t> granted_;
    std::int64_t fresh_ = 0;  // the session that this transaction has opened,
    bool is_alone_ = false;   // and no other one is in the file
    std::optional<grant> given_;
};

}  // namespace trinco::detail
