// What the histories of fleet_runs.hpp share.
#pragma once

#include <string>

#include "sim/fleet_runs.hpp"
#include "sim/fleet_world.hpp"

namespace trinco::sim {

[[nodiscard]] inline fleet_result result_of(fleet& f) {
    fleet_result r;
    r.violations = f.judge.violations();
    r.history = f.w.history();
    r.digest = f.w.digest();
    r.events = f.w.events_run();
    r.messages = f.net.sent();
    r.seen = f.judge.seen();
    return r;
}

// Of all instances and the record, for the explanation of a violation.
[[nodiscard]] std::string states_of(fleet& f);

}  // namespace trinco::sim
