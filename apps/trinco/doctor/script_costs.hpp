// What each script of breakers costs a server: run there, in a namespace of its own that is removed
// afterwards, or, where that fails, is gone after a few seconds.
#pragma once

#include <cstdint>
#include <string>

#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/doctor/server_talk.hpp"

namespace trinco::program::doctor {

// Scripts are tried on keys of the slot of this one: in a cluster, ask the node that has it.
[[nodiscard]] std::string key_of_script_trial();

// Why a server took no writes when the scripts ran.
enum class write_refusal : std::uint8_t { none, memory, disk, replicas, replica };

// Adds "scripts": the server's own time; or why they do not run, with what stands behind it, which
// the checks of these things then tell as the cause. Scripts tell it by two readings of TIME; where
// the clock stands still while a script runs (Valkey, Redis from 7.2) it is taken from INFO
// commandstats, which may count scripts of others that come in between.
[[nodiscard]] write_refusal check_script_costs(server_talk& asking, examination& to);

}  // namespace trinco::program::doctor
