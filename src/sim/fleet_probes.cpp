// run_fleet_probes.
#include <algorithm>

#include "sim/fleet_run.hpp"
#include "sim/fleet_runs.hpp"
#include "sim/fleet_swarm.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

// Half-open nearly all the time, with probes that last about as long as they may, and a server that
// keeps forgetting to whom it gave them.
fleet_plan plan_for(std::uint64_t seed) {
    using enum fleet_fault;
    auto p = draw_fleet_plan(seed, every_fleet_fault());
    auto& o = p.shape.options;
    o.open_for = 60ms;
    o.open_max = 120ms;
    o.minimum_calls = 5;
    o.half_open_probes = 1 + o.half_open_probes % 3;
    p.faults.push_back(roll_back);
    p.faults.push_back(clog);
    p.fault_every = std::min<boot_clock::duration>(p.fault_every, 400ms);
    p.snapshot_every = 60ms;
    return p;
}

}  // namespace

fleet_result run_fleet_probes(std::uint64_t seed, bool keep_history) {
    const auto plan = plan_for(seed);
    fleet f(seed, plan.shape, keep_history);
    fleet_swarm swarm(f, plan);
    f.outside.p_fail = 1;
    f.start();
    f.run(500ms);
    f.outside.p_fail = 0.7;
    f.outside.takes_min = 5ms;
    f.outside.takes_max = plan.shape.options.probe_timeout * 5 / 4;
    swarm.begin();
    f.run(5s);
    auto r = result_of(f);
    r.parameters = plan.text();
    r.faults = swarm.inflicted();
    return r;
}

}  // namespace trinco::sim
