// How much locks are used, as several looks at them tell: stores keep no history
// (docs/decisions/0035). Pure.
//
//     lock_use use;
//     for (...) use.look(rows, now);
//     for (const auto& one : use.locks()) ... one.share(use.looks()), one.waits.p99()
//
// share   of the looks in which somebody held it; of a semaphore, the part of its permits that was
//         held, on average. Looks at random distances find it held as often as it is, also when
//         each hold is shorter than the distance between two of them.
// waits   one of everybody who was seen: until the grant, or so far. Known to one look: whoever is
//         found holding waited at most until now, unless the entry says how long it is held. Not
//         known of who held it at the first look already, unless the entry says so. Who came and
//         went between two looks was not seen.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "apps/trinco/locks/lock_list.hpp"
#include "apps/trinco/output/distribution.hpp"

namespace trinco::program {

struct used_lock {
    std::string name;
    detail::claim_kind kind = detail::claim_kind::exclusive;
    double held = 0;         // looks in which it was held, see share
    std::size_t waited = 0;  // looks in which somebody waited
    std::size_t grants = 0;  // seen to be granted while it was looked at
    distribution waits;
    bool lists_waiters = true;  // else it is not known who waited
    [[nodiscard]] double share(std::size_t looks) const {
        return looks == 0 ? 0 : held / static_cast<double>(looks);
    }
};

class lock_use {
public:
    // `now`: of a clock that only goes forward, since whenever.
    void look(const std::vector<lock_row>& rows, std::chrono::milliseconds now);
    [[nodiscard]] std::size_t looks() const noexcept { return looks_; }
    // All that were ever seen, by name.
    [[nodiscard]] std::vector<used_lock> locks() const;

private:
    struct stay {
        std::chrono::milliseconds first{0};  // seen
        std::chrono::milliseconds wait{0};
        bool known = false;  // the wait
        bool holds = false;
        std::size_t seen = 0;  // in this look
    };
    struct history {
        used_lock all;                      // with the waits of those who are gone
        std::map<std::string, stay> stays;  // by the handle of an entry that is there
    };
    void note(history& of, const detail::entry& e, bool lists_waiters,
              std::chrono::milliseconds now) const;
    void forget_who_is_gone(history& of) const;

    std::map<std::string, history> known_;
    std::size_t looks_ = 0;
};

// The longest that anybody of those who wait has waited so far; zero when nobody does, and while
// the entries say nothing of time.
[[nodiscard]] std::chrono::milliseconds longest_wait(const lock_row& row);

}  // namespace trinco::program
