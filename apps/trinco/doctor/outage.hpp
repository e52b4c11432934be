// How long a store of servers may be away without harm to a command under a lock. Pure.
#pragma once

#include <chrono>
#include <string>

#include "apps/trinco/doctor/finding.hpp"

namespace trinco::program::doctor {

// A store may be away for so long, from any moment on, without a command under a lock of this TTL
// noticing.
[[nodiscard]] std::chrono::milliseconds survived_outage(std::chrono::seconds ttl);

// Of a single server, which no other stands in for: behind how many there are, and what to do.
inline constexpr const char* nothing_without_it =
    ": while it is away no lock can be taken or renewed, and commands under locks are stopped";
inline constexpr const char* three_survive_one =
    "one is enough to develop with; else run three, each on a machine of its own, of which one may "
    "be lost";

struct leader_change {
    std::chrono::milliseconds takes{0};  // 0: not known, or there is none
    std::string advice = {};             // where it takes too long
    std::string remark = {};             // with its "; ", behind the sentence
};

// "outage".
void judge_outage(std::chrono::seconds least_ttl, const leader_change& change, examination& to);

}  // namespace trinco::program::doctor
