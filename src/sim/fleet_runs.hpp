// The histories of fleets that the suite and trinco-sim run, one per seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fleet_judge.hpp"

namespace trinco::sim {

struct fleet_result {
    std::vector<std::string> violations;
    std::vector<std::string> history;  // when it was asked for
    std::string parameters;
    std::uint64_t digest = 0;
    std::uint64_t events = 0;
    std::uint64_t messages = 0;
    std::uint64_t faults = 0;
    std::uint64_t openings = 0;  // of the fleet's breaker, as far as they were looked for
    std::uint64_t requests = 0;  // to the server, while they were counted
    fleet_judge::evidence seen;
};

// Anything may fail, the dependency too; then everything heals, and all must be closed and agree.
// Probes never exceed N; sums are exact where nothing was forgotten.
[[nodiscard]] fleet_result run_fleet_chaos(std::uint64_t seed, bool keep_history = false);

// A fleet that is half-open nearly all the time while the server keeps forgetting: B1.
[[nodiscard]] fleet_result run_fleet_probes(std::uint64_t seed, bool keep_history = false);

// One of `n` instances cannot reach the dependency: the fleet's breaker stays closed and that
// instance's own opens. Then the dependency breaks for all: all open. Then it heals for all but
// that one: the fleet's closes without it.
[[nodiscard]] fleet_result run_fleet_one_bad(std::uint64_t seed, std::size_t n,
                                             bool keep_history = false);

// A healthy fleet at the start of a window: after its own start, after a loss of the record, or
// after a reset. It must not open.
struct healthy_fleet {
    std::size_t instances;
    std::size_t machines;
    double calls_per_second;
    double p_fail;
    boot_clock::duration watched_for;  // after each of the two starts
};
[[nodiscard]] fleet_result run_fleet_start(std::uint64_t seed, const healthy_fleet& of,
                                           bool keep_history = false);

// A healthy fleet, some of whose calls fail. Its server is not asked more often than the breaker's
// exchange_budget allows, however many instances there are.
struct costly_fleet {
    std::size_t instances;  // each on a machine of its own
    double calls_per_second;
    boot_clock::duration settles_for;  // until all have been counted
    boot_clock::duration watched_for;
};
[[nodiscard]] fleet_result run_fleet_cost(std::uint64_t seed, const costly_fleet& of,
                                          bool keep_history = false);

// The record is lost, or rolled back to one of the opposite state, while the fleet is closed, or
// open: it stays what it was.
[[nodiscard]] fleet_result run_fleet_forgets(std::uint64_t seed, bool keep_history = false);

// The dependency breaks for all, and is well again as soon as all are open: all are closed after
// one opening, whichever of the breakers in series opened first.
[[nodiscard]] fleet_result run_fleet_recovers(std::uint64_t seed, bool keep_history = false);

// The same, but the server dies while all are open, and comes back, perhaps empty, after instances
// have recovered alone: those are refused nothing any more, and the fleet recovers.
[[nodiscard]] fleet_result run_fleet_outlives(std::uint64_t seed, bool keep_history = false);

}  // namespace trinco::sim
