// Act (d) of `trinco demo`: three nodes of etcd, and their leader is killed under a held lock and
// three waiters: the same holder afterwards, and the same order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/trinco/demo/stage.hpp"

namespace trinco::program::demo {

inline constexpr std::size_t leader_waiters = 3;

struct leader_outcome {
    std::vector<std::string> before;  // the queue, holder first, as `trinco locks show` lists it
    std::vector<std::string> after;
    bool killed = false;
    bool holder_kept = false;          // its command ran on until it was let go, and ended well
    bool early = false;                // somebody was granted the lock while another one held it
    std::vector<std::string> granted;  // in the order of their grants, the holder first
    std::vector<std::uint64_t> tokens;
    // Between the last grant of any lock before the leader was gone and the first one afterwards.
    std::optional<std::chrono::milliseconds> no_grant = {};
    std::size_t grants = 0;  // of that probe, before and after
};

// About 10 s; starts the program stage::etcd three times.
[[nodiscard]] act_result leader_story(const stage& on);

// What was seen of it.
[[nodiscard]] act_result judge_leader(const leader_outcome& seen);

}  // namespace trinco::program::demo
