// When a session renews its lease, and for how long it may believe in it. All timing of renewal
// lives here and nowhere else; pure, with both clocks as inputs.
//
//   held        renewed lately: claims may be granted
//   uncertain   no renewal was acknowledged for half a TTL, or the clocks moved against each other:
//               what is held stays held, nothing new is granted
//   lost        the deadline passed, or the store said so: final
//
// The deadline is the time *before* the last acknowledged renewal was sent, plus the TTL granted,
// less a margin. The store counts from when it handled the request, which is later, so it ends the
// lease after the holder stopped believing in it.
//
// A virtual machine that is paused and resumed sees its boot clock stand still while the world went
// on; a wall clock corrected afterwards moves against the boot clock and betrays it. A moved
// difference therefore makes the lease uncertain, with no validity promised, until a renewal that
// was sent later is acknowledged.
#pragma once

#include <algorithm>
#include <chrono>

#include "core/loop.hpp"

namespace trinco::detail {

// Both clocks, read together.
struct clocks {
    boot_clock::time_point boot;
    std::chrono::system_clock::time_point wall;
};

enum class lease_state : std::uint8_t { held, uncertain, lost };

// What a lease is for at the moment. Of one that only keeps places in queues, a renewal that comes
// late costs nobody anything.
enum class lease_use : std::uint8_t { holding, waiting };

struct lease_timing {
    // Renewing at a third leaves room for two thirds of a TTL of retries. Many wait for one that
    // holds: they spare their store every sixth renewal.
    static constexpr boot_clock::duration renew_after(std::chrono::seconds ttl,
                                                      lease_use use = lease_use::holding) {
        return use == lease_use::holding ? span(ttl) / 3 : span(ttl) * 2 / 5;
    }
    // Ten attempts fit between the first renewal and the deadline.
    static constexpr boot_clock::duration retry_after(std::chrono::seconds ttl) {
        return span(ttl) / 15;
    }
    // Attempts overlap, so that a slow answer is still taken and a lost one costs little.
    static constexpr boot_clock::duration attempt(std::chrono::seconds ttl) {
        return span(ttl) / 5;
    }
    static constexpr boot_clock::duration uncertain_after(std::chrono::seconds ttl) {
        return span(ttl) / 2;
    }
    // Covers the drift of two clocks, the length of a timer's lateness and a stop's own time.
    static constexpr boot_clock::duration margin(std::chrono::seconds ttl) {
        return std::max<boot_clock::duration>(std::chrono::milliseconds(250), span(ttl) / 20);
    }
    static constexpr boot_clock::duration believed(std::chrono::seconds ttl) {
        return span(ttl) - margin(ttl);
    }
    static constexpr std::chrono::seconds default_ttl{15};
    static constexpr std::chrono::seconds shortest_ttl{1};
    static constexpr std::chrono::seconds longest_ttl{86'400};

    static constexpr bool sound(std::chrono::seconds ttl) {
        return retry_after(ttl) < attempt(ttl) && attempt(ttl) < renew_after(ttl) &&
               renew_after(ttl, lease_use::waiting) + retry_after(ttl) < uncertain_after(ttl) &&
               uncertain_after(ttl) + retry_after(ttl) < believed(ttl);
    }

private:
    static constexpr boot_clock::duration span(std::chrono::seconds ttl) { return ttl; }
};

// One retry fits before the doubt and one more before the end, whatever the TTL.
static_assert(lease_timing::sound(lease_timing::shortest_ttl));
static_assert(lease_timing::sound(std::chrono::seconds(2)));
static_assert(lease_timing::sound(std::chrono::seconds(5)));
static_assert(lease_timing::sound(lease_timing::default_ttl));
static_assert(lease_timing::sound(lease_timing::longest_ttl));

class lease_machine {
public:
    // Made when the store acknowledged the opening: both clocks before it was sent and now. More
    // than longest_ttl is not believed, here and at renewals.
    lease_machine(clocks sent, clocks now, std::chrono::seconds ttl);

    // Takes the time in: notes a passed deadline and clocks that moved. Call it before deciding.
    lease_state observe(clocks now);
    // As observe, but remembers nothing.
    [[nodiscard]] lease_state state(clocks now) const;

    // Says what it is for from now on; holding at first. One that begins to hold is due at once
    // when a third of its TTL has passed.
    void use(lease_use for_what);
    // Whether an attempt to renew is due.
    [[nodiscard]] bool renewal_due(clocks now) const;
    // Notes that one is being sent; it must be answered by the returned time.
    deadline renewal_sent(clocks now);
    // An attempt that was sent then is acknowledged. Attempts may be answered in any order; an
    // answer that comes after the deadline changes nothing.
    void renewed(clocks sent, clocks now, std::chrono::seconds ttl);
    // The store says that the lease is gone, or its holder ended it.
    void end() noexcept { ended_ = true; }

    // The next time at which observe() or renewal_due() may answer differently; max() once lost.
    [[nodiscard]] boot_clock::time_point next_wake(clocks now) const;
    // Until when the holder may believe.
    [[nodiscard]] boot_clock::time_point deadline_at() const noexcept { return deadline_; }
    // Time left to believe; zero when lost, and while the clocks are in doubt.
    [[nodiscard]] boot_clock::duration valid_for(clocks now) const;
    [[nodiscard]] std::chrono::seconds ttl() const noexcept { return ttl_; }

private:
    [[nodiscard]] bool moved(clocks now) const;

    std::chrono::seconds ttl_;
    clocks confirmed_;  // before the latest acknowledged request was sent
    boot_clock::time_point deadline_;
    boot_clock::time_point next_attempt_;
    lease_use use_ = lease_use::holding;
    bool attempted_ = false;  // since the latest acknowledged request
    bool clocks_moved_ = false;
    bool ended_ = false;
};

}  // namespace trinco::detail
