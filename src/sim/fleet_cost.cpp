// run_fleet_cost.
#include <iterator>

#include "sim/fleet_run.hpp"
#include "sim/fleet_runs.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

fleet_result run_fleet_cost(std::uint64_t seed, const costly_fleet& of, bool keep_history) {
    // The window holds as many failures as it may without opening.
    constexpr double shares_failing[] = {0, 0.01, 0.3};
    fleet_shape shape;
    shape.instances = of.instances;
    shape.voters = of.instances;
    shape.calls_per_second = of.calls_per_second;
    shape.watched = false;
    fleet f(seed, shape, keep_history);
    f.outside.p_fail = shares_failing[seed % std::size(shares_failing)];
    net_faults net;
    net.delay_max = 5ms;
    f.net.set_faults(net);

    f.start();
    f.run(of.settles_for);
    const auto before = f.server.requests();
    f.run(of.watched_for);
    auto r = result_of(f);
    r.requests = f.server.requests() - before;
    r.seen.outcomes = f.record().totals.judged();
    r.parameters = std::to_string(of.instances) + " instances, of whose calls " +
                   std::to_string(f.outside.p_fail) + " fail";
    const auto allowed = shape.options.exchange_budget *
                         std::chrono::duration_cast<std::chrono::seconds>(of.watched_for).count();
    if (r.requests > static_cast<std::uint64_t>(allowed)) {
        r.violations.push_back("the server was asked " + std::to_string(r.requests) +
                               " times, and the budget is " + std::to_string(allowed));
    }
    if (f.record().state != breaker_state::closed) r.violations.emplace_back("it has opened");
    return r;
}

}  // namespace trinco::sim
