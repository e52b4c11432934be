// What a seed does to a fleet: its size, its options, and what goes wrong how often.
//
// Each seed draws its own mixture (swarm testing): in some runs half of the kinds of faults never
// happen, so that the others get the time to do their worst.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "sim/fleet_world.hpp"

namespace trinco::sim {

enum class fleet_fault : std::uint8_t {
    pause,    // of an instance
    replace,  // an instance dies, another one takes its place
    server_pause,
    cut_off,  // one instance, both ways, for a while
    clog,     // one direction of one instance
    break_connection,
    crash,      // the server is away for a while, and comes back with its data
    data_loss,  // another life, empty
    roll_back,  // another life, older data; sometimes with a clock that is behind
    flush_all   // same life, empty
};
using fleet_faults = std::vector<fleet_fault>;

[[nodiscard]] inline fleet_faults every_fleet_fault() {
    using enum fleet_fault;
    return {pause, replace,   server_pause, cut_off,  clog, break_connection,
            crash, data_loss, roll_back,    flush_all};
}

struct fleet_plan {
    fleet_shape shape;
    net_faults net;
    fleet_faults faults;  // those of the allowed ones that this seed has
    boot_clock::duration fault_every{};
    boot_clock::duration longest_pause{};
    boot_clock::duration snapshot_every =
        std::chrono::milliseconds(400);  // on average, to roll back to
    [[nodiscard]] std::string text() const;
};

// Short windows and openings, so that much happens in few seconds.
[[nodiscard]] fleet_plan draw_fleet_plan(std::uint64_t seed, const fleet_faults& allowed);

class fleet_swarm {
public:
    fleet_swarm(fleet& over, const fleet_plan& plan);
    fleet_swarm(const fleet_swarm&) = delete;
    fleet_swarm& operator=(const fleet_swarm&) = delete;

    void begin();
    // No new faults, and the end of all that can be ended; pauses under way last at most
    // longest_pause.
    void heal();
    // One of these now.
    void inflict(fleet_fault what);

    [[nodiscard]] bool has(fleet_fault what) const;
    // The server has forgotten something at least once.
    [[nodiscard]] bool forgot() const noexcept { return forgot_; }
    [[nodiscard]] std::uint64_t inflicted() const noexcept { return inflicted_; }

private:
    void next_fault();
    void next_snapshot();
    void note(fleet_fault what, const std::string& whom);

    fleet& fleet_;
    const fleet_plan plan_;
    bool active_ = false;
    bool forgot_ = false;
    std::uint64_t inflicted_ = 0;
    std::deque<lossy_breaker_server::rows> snapshots_;  // oldest first
};

}  // namespace trinco::sim
