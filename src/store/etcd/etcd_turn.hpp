// Whether an entry has its turn, and for what it has to wait otherwise: what is read of a queue,
// and what is made of it. Pure.
//
//   exclusive   reads its predecessor; waits for that key to go
//   shared      reads back to the latest earlier entry that is not shared; waits for it to go
//   permit n    reads the first n entries and the latest earlier one. The first in line waits for
//               any key of the queue to go; those behind wait for their predecessor to go or to be
//               rewritten, which a permit does when it is granted. So a release wakes the first in
//               line, and it wakes its successor.
//
// Every entry waits for one thing at a time, and a release wakes one waiter (of permits two).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/lock/claim.hpp"
#include "store/etcd/etcd_messages.hpp"

namespace trinco::detail::etcd {

// Of a semaphore: as many entries must be read at once.
inline constexpr std::uint32_t max_permits = 500;

// One entry's question to its queue.
struct turn_question {
    std::string name;
    seat asks;
    std::int64_t mine = 0;    // its create_revision; 0: as if it came last
    std::int64_t depth = 16;  // how many keys to read; 0: all
};

// The reads, one or two, whose replies judge() wants in this order.
[[nodiscard]] std::vector<range_request> reads_for(const turn_question& q);

struct judgement {
    enum class what_t : std::uint8_t {
        turn,         // no earlier entry is in its way
        wait_erased,  // until `blocker` is gone
        wait_moved,   // until `blocker` is gone or rewritten
        wait_any,     // until any key of the queue is gone
        read_deeper   // the reads did not reach far enough
    };
    what_t what = what_t::turn;
    std::string blocker;
    std::optional<std::uint32_t> ahead;  // entries before it, where the reads told
    bool limit_differs = false;          // an earlier permit with another n
    [[nodiscard]] bool has_turn() const noexcept { return what == what_t::turn; }
};

[[nodiscard]] judgement judge(const turn_question& q, std::span<const operation_reply> replies);

}  // namespace trinco::detail::etcd
