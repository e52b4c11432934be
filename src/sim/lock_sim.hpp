// A history of sessions and mutexes on virtual time: processes that lock, work and release, a
// server, a cluster of etcd or of Consul (lock_ground.hpp), a network, and everything that can go
// wrong between them.
//
// Each seed draws its own parameters (how many of each, TTL, loss, delay, which faults and how
// often), so that some runs are calm in one respect and wild in another. First a phase in which
// anything may fail, then everything heals and must get going again; at the end nobody wants
// anything, and nothing may be left. A seed gives the same history, event by event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/lock_judge.hpp"

namespace trinco::sim {

struct lock_sim_result {
    std::vector<std::string> violations;
    std::vector<std::string> history;  // when it was asked for
    std::string parameters;
    std::uint64_t digest = 0;
    std::uint64_t events = 0;
    std::uint64_t messages = 0;
    std::uint64_t sessions_lost = 0;
    std::uint64_t faults = 0;
    lock_judge::evidence seen;
};

enum class lock_sim_ground : std::uint8_t { memory, etcd, consul };

[[nodiscard]] lock_sim_result run_lock_sim(std::uint64_t seed, bool keep_history = false,
                                           lock_sim_ground ground = lock_sim_ground::memory);

}  // namespace trinco::sim
