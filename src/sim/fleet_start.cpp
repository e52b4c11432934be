// run_fleet_start.
#include "sim/fleet_run.hpp"
#include "sim/fleet_runs.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

// Any opening makes a new era.
void check_closed(fleet& f, detail::era_t era) {
    const auto r = f.record();
    if (r.state == breaker_state::closed && r.era == era) return;
    f.judge.violated("B7: a healthy fleet opened at the start of a window: " + r.reason + ", " +
                     text_of(r.totals));
}

}  // namespace

fleet_result run_fleet_start(std::uint64_t seed, const healthy_fleet& of, bool keep_history) {
    fleet_shape shape;
    shape.instances = of.instances;
    shape.voters = of.machines;
    shape.calls_per_second = of.calls_per_second;
    shape.watched = of.instances <= 100;
    fleet f(seed, shape, keep_history);
    f.outside.p_fail = of.p_fail;
    net_faults net;
    net.p_drop = f.w.chance(0.5) ? 0.05 : 0;
    net.p_duplicate = f.w.chance(0.5) ? 0.05 : 0;
    net.delay_max = f.w.between(1ms, 40ms);
    f.net.set_faults(net);

    fleet_result r;
    f.start();
    detail::era_t era = 0;
    f.run(of.watched_for);
    check_closed(f, era);
    switch (seed % 3) {
        case 0: break;
        case 1:
            f.judge.note("the record is lost");
            f.server.restart({});
            break;
        default: {
            detail::control_request reset;
            reset.id = seed;
            reset.breaker = "b";
            reset.who = "scenario";
            reset.verb = detail::control_verb::reset;
            std::error_code error;
            era = f.server.memory().control(reset, error).era;
            if (error) f.judge.violated("reset refused: " + error.message());
            break;
        }
    }
    f.run(of.watched_for);
    check_closed(f, era);
    r = result_of(f);
    r.parameters = std::to_string(of.instances) + " instances, drop " + std::to_string(net.p_drop) +
                   ", start " + std::to_string(seed % 3);
    if (!shape.watched) r.seen.outcomes = f.record().totals.judged();
    return r;
}

}  // namespace trinco::sim
