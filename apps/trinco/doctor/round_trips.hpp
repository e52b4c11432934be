// How long a store of servers takes for what locks ask of it. Pure.
#pragma once

#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/output/distribution.hpp"

namespace trinco::program::doctor {

// "round-trip": of commits, two of which a lock costs, and of reads.
void judge_round_trips(const distribution& commits, const distribution& reads, examination& to);

}  // namespace trinco::program::doctor
