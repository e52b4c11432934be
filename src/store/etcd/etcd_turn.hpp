// Whether an entry has its turn, and for what it has to wait otherwise: what is read of a queue,
// page by page, and what is made of it. Pure.
//
//   exclusive   reads back to its predecessor; waits for that key to go
//   shared      reads back to the latest earlier entry that is not shared; waits for it to go
//   permit n    reads back n + 1 entries, or to the latest earlier one that is in its way whatever
//               else is granted; waits for that one to go. Else the first in line waits for any key
//               of the queue to go; those behind wait for their predecessor to go or to be
//               rewritten, which a permit does when it is granted. So a release wakes the first in
//               line, and it wakes its successor.
//
// Every entry waits for one thing at a time, and a release wakes one waiter (of permits two).
//
// Pages are of different moments, and yet they make one judgement: of what stands before an entry
// things only go away, and none changes its kind, so a conflict that one page does not show cannot
// come back before the next. Who is granted must see its own entry at the last of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/lock/claim.hpp"
#include "store/etcd/etcd_messages.hpp"

namespace trinco::detail::etcd {

// Of a semaphore: so many entries are looked at for one decision.
inline constexpr std::uint32_t max_permits = 500;

// One entry's question to its queue.
struct turn_question {
    std::string name;
    seat asks;
    std::int64_t mine = 0;  // its create_revision; 0: as if it came last
};

struct judgement {
    enum class what_t : std::uint8_t {
        turn,         // no earlier entry is in its way
        wait_erased,  // until `blocker` is gone
        wait_moved,   // until `blocker` is gone or rewritten
        wait_any      // until any key of the queue is gone
    };
    what_t what = what_t::turn;
    std::string blocker;
    std::int64_t blocker_since = 0;      // of wait_erased: its create_revision
    std::optional<std::uint32_t> ahead;  // entries before it, where one page told
    bool limit_differs = false;          // an earlier permit with another n, among those read
    [[nodiscard]] bool has_turn() const noexcept { return what == what_t::turn; }
};

// Reads a queue from its end, or from the asking entry, towards its head:
//
//     queue_scan scan({"orders/7", {}, created});
//     while (!scan.done()) scan.take(ask(scan.next(1)));
//     scan.result();
class queue_scan {
public:
    explicit queue_scan(turn_question q) : q_(std::move(q)) {}

    // So many keys that `parts` such pages fit into a message, with values as long as ours may be.
    [[nodiscard]] range_request next(std::size_t parts) const;
    void take(const operation_reply& page);
    [[nodiscard]] bool done() const noexcept { return done_; }
    // As far as it was read.
    [[nodiscard]] const judgement& result() const noexcept { return out_; }
    // Keys that came after the asking entry; nullopt: it was not read as far as to that.
    [[nodiscard]] std::optional<std::uint32_t> behind() const noexcept {
        return last_ <= q_.mine ? std::optional(behind_) : std::nullopt;
    }

    [[nodiscard]] const turn_question& question() const noexcept { return q_; }
    // The create_revision of the asking entry, learnt from the reply that brings a page.
    void is_mine(std::int64_t created) noexcept { q_.mine = created; }

private:
    void pass(const key_value& kv);
    void decide(judgement::what_t what, std::string blocker, std::int64_t since = 0);
    void reached_head();

    turn_question q_;
    judgement out_;
    bool done_ = false;
    bool began_ = false;
    std::int64_t last_ = 0;       // the least create_revision read
    std::set<std::string> edge_;  // the keys read of it, of which there may be more
    std::int64_t widen_ = 1;      // when a page was too small for all of them
    std::uint32_t behind_ = 0;
    std::uint32_t entries_ = 0;
    std::uint32_t permits_ = 0;
    std::string newest_;  // of them
};

}  // namespace trinco::detail::etcd
