// How long a store of servers may be away without harm to a command under a lock. Pure.
#pragma once

#include <chrono>
#include <string>

#include "apps/trinco/doctor/finding.hpp"

namespace trinco::program::doctor {

// A store may be away for so long, from any moment on, without a command under a lock of this TTL
// noticing.
[[nodiscard]] std::chrono::milliseconds survived_outage(std::chrono::seconds ttl);

struct leader_change {
    std::chrono::milliseconds takes{0};  // 0: not known, or there is none
    std::string advice = {};             // where it takes too long
    std::string remark = {};             // with its "; ", behind the sentence
};

// "outage".
void judge_outage(std::chrono::seconds least_ttl, const leader_change& change, examination& to);

}  // namespace trinco::program::doctor
