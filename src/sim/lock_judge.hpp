// Judges a history of locks by the invariants of GUARANTEES: it sees what clients invoked and
// learnt, what the resource accepted and what the server holds, and says what must not be.
//
//   L1   the resource accepts a token of one grant only, and never one below the highest
//   L2   a grant's token is above every token of its name that was known when it was asked for
//   L5   no two believers of a name, nor more of a semaphore than it has permits; who believes has
//        a live entry at the server
//   L7   whoever was queued before another asked is granted before it
//        and a holder whose session lives is not told that it lost what it holds
//   L9   nothing is left of those who are gone or want nothing
//   L10  follows from L5: a release that frees another's leaves a believer without an entry
//   L11  while somebody waits, somebody is granted in bounded time
//
// A client believes while its lock says held() and its process runs. A paused process cannot be
// told, so what it does after waking is judged at the resource, by its token.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/world.hpp"
#include "store/memory/memory_lock_server.hpp"

namespace trinco::sim {

// What a believer shows: whose claim of which lease.
struct belief {
    std::string who;
    std::string name;
    std::string lease;
    detail::claim_id id;
};

class lock_judge {
public:
    explicit lock_judge(world& w) : world_(w) {}

    // The name is that of a semaphore: so many may hold it, and its grants have no tokens.
    void counts(const std::string& name, std::uint32_t permits) { permits_[name] = permits; }

    using attempt_id = std::uint64_t;
    // A worker asks for a name. Those that were queued by then come before it.
    attempt_id invoked(const std::string& who, const std::string& name);
    void queued(attempt_id a);  // its place was acknowledged before now; the first time counts
    void granted(attempt_id a, std::uint64_t token, bool lease_held);
    void ended(attempt_id a);  // without a grant, or after one: waits no more

    // A write that arrives at the resource; returns whether it is accepted.
    bool wrote(attempt_id a, std::uint64_t token);

    // Of all believers at this moment, against the server's rows.
    void check_believers(const std::vector<belief>& all,
                         const std::vector<detail::memory_lock_server::row>& rows);
    // A holder was told that its lock, and not its session, is lost.
    void told_lost(const belief& of, const std::vector<detail::memory_lock_server::row>& rows);
    // From now on waiting must lead somewhere within this time.
    void begin_liveness(boot_clock::duration bound);
    void check_liveness();
    // At the end: order, and that there was anything to judge.
    void check_order();
    void violated(const std::string& what);

    [[nodiscard]] const std::vector<std::string>& violations() const noexcept {
        return violations_;
    }
    struct evidence {
        std::uint64_t attempts = 0;
        std::uint64_t grants = 0;
        std::uint64_t contended = 0;  // grants that waited behind somebody
        std::uint64_t writes = 0;
        std::uint64_t stale_writes = 0;  // that only the token kept out
        std::uint64_t beliefs = 0;       // checked
        std::uint64_t losses = 0;        // told of locks alone
    };
    [[nodiscard]] const evidence& seen() const noexcept { return seen_; }

private:
    struct attempt {
        std::string who;
        std::string name;
        std::uint64_t invoked_at = 0;
        std::uint64_t queued_at = 0;    // 0: not known to be
        std::uint64_t known_token = 0;  // the highest of the name when it was asked for
        std::uint64_t token = 0;
        boot_clock::time_point since;
    };
    struct resource {
        std::uint64_t highest = 0;
        attempt_id writer = 0;
        std::map<std::uint64_t, attempt_id> owners;  // of each token
    };

    [[nodiscard]] std::uint64_t tick() { return ++order_; }

    world& world_;
    std::uint64_t order_ = 0;
    std::vector<attempt> attempts_;
    std::set<attempt_id> waiting_;
    std::map<std::string, std::uint32_t> permits_;  // of semaphores
    std::map<std::string, std::uint64_t> highest_;  // token granted, by name
    std::map<std::string, std::set<std::uint64_t>> tokens_;
    std::map<std::string, boot_clock::time_point> last_grant_;
    std::map<std::string, resource> resources_;
    std::optional<boot_clock::time_point> live_from_;
    boot_clock::duration bound_{};
    std::vector<std::string> violations_;
    evidence seen_;
};

}  // namespace trinco::sim
