// run_fleet_one_bad.
#include "sim/fleet_run.hpp"
#include "sim/fleet_runs.hpp"
#include "sim/fleet_swarm.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

fleet_plan plan_for(std::uint64_t seed, std::size_t n) {
    using enum fleet_fault;
    // A process that knows nothing before a record that knows nothing is a new fleet of one, which
    // may open as it likes: either processes are replaced, or the server forgets.
    auto p = seed % 2 == 0
                 ? draw_fleet_plan(
                       seed, {pause, replace, server_pause, cut_off, clog, break_connection, crash})
                 : draw_fleet_plan(seed, {pause, server_pause, cut_off, clog, break_connection,
                                          crash, data_loss, roll_back, flush_all});
    p.shape.instances = p.shape.voters = n;
    // Who is not heard for live_for is not counted, and leaves the bad one a quorum by itself.
    p.shape.options.live_for = 10s;
    p.shape.options.minimum_calls = 20;
    // So few calls that the fleet's window would not suffice are not what this is about.
    p.shape.calls_per_second = std::max(p.shape.calls_per_second, 30.0);
    return p;
}

class one_bad_run {
public:
    one_bad_run(std::uint64_t seed, std::size_t n, bool keep_history)
        : plan_(plan_for(seed, n)),
          fleet_(seed, plan_.shape, keep_history),
          swarm_(fleet_, plan_),
          bad_(fleet_.w.below(n)) {}

    fleet_result run() {
        auto& outside = fleet_.outside;
        outside.takes_min = 1ms;
        outside.takes_max = 10ms;
        fleet_.start();
        fleet_.run(500ms);
        fleet_.judge.note("voter " + std::to_string(bad_) + " goes bad");
        outside.bad_voter = bad_;
        swarm_.begin();
        if (swarm_.has(fleet_fault::data_loss)) forget_while_the_good_are_silent();
        stays_closed(fleet_.w.between(2s, 5s));
        swarm_.heal();
        stays_closed(plan_.longest_pause + plan_.shape.options.window);
        bad_is_open("while the fleet is closed");
        all_open_and_close_without_it();
        auto r = result_of(fleet_);
        r.parameters = plan_.text();
        r.faults = swarm_.inflicted();
        r.openings = 1;
        return r;
    }

private:
    // The worst moment: whoever comes first is the only one that the record knows.
    void forget_while_the_good_are_silent() {
        swarm_.inflict(fleet_fault::data_loss);
        for (std::size_t i = 0; i < fleet_.size(); ++i) {
            auto& m = fleet_.member(i);
            if (m.voter() == bad_) continue;
            m.where().pause_until(fleet_.w.now() + fleet_.w.between(100ms, 1500ms));
        }
    }

    void stays_closed(boot_clock::duration how_long) {
        const auto end = fleet_.w.now() + how_long;
        while (fleet_.w.now() < end && fleet_.judge.violations().empty()) {
            fleet_.run(50ms);
            if (closed_but_for_the_bad_one()) continue;
            fleet_.judge.violated("B7: one bad instance opened the fleet: " + states_of(fleet_));
        }
    }

    bool closed_but_for_the_bad_one() {
        if (fleet_.told_by_record().state != breaker_state::closed) return false;
        for (std::size_t i = 0; i < fleet_.size(); ++i) {
            auto& m = fleet_.member(i);
            if (m.known().state != breaker_state::closed) return false;
            if (m.voter() != bad_ && m.engine().state() != breaker_state::closed) return false;
        }
        return true;
    }

    // Its own breaker: open, or trying in half-open.
    void bad_is_open(const std::string& when) {
        const auto open = [&] {
            return fleet_.member(bad_).engine().snapshot().local_state != breaker_state::closed;
        };
        if (fleet_.run_until(5s, open)) return;
        fleet_.judge.violated("B7: the bad instance's own breaker is closed " + when + ": " +
                              states_of(fleet_));
    }

    void all_open_and_close_without_it() {
        if (!fleet_.judge.violations().empty()) return;
        const auto& o = plan_.shape.options;
        auto& outside = fleet_.outside;
        fleet_.judge.note("the dependency breaks for all");
        outside.p_fail = 1;
        // By the fleet's breaker or by their own: where the bad one has stopped calling already,
        // there may be no quorum left to open the fleet's.
        const auto all_open = [&] {
            for (std::size_t i = 0; i < fleet_.size(); ++i) {
                if (fleet_.member(i).engine().state() == breaker_state::closed) return false;
            }
            return true;
        };
        if (!fleet_.run_until(o.window + 3s, all_open, 20ms)) {
            fleet_.judge.violated("B7: broken for all, but not all are open: " + states_of(fleet_));
            return;
        }
        fleet_.run(fleet_.w.between(0s, 2s));
        fleet_.judge.note("healed, but for the bad one");
        outside.p_fail = 0;
        // What failed before may still open it while it is in the window.
        fleet_.run(o.window + 500ms);
        const auto bound = o.open_max * 7 / 2 + o.probe_timeout * 8 + 3s;
        if (!fleet_.run_until(bound, [&] { return closed_but_for_the_bad_one(); })) {
            fleet_.judge.violated("B7: one bad instance keeps the fleet open: " +
                                  states_of(fleet_));
            return;
        }
        stays_closed(1s);
        bad_is_open("after the fleet's recovery");
    }

    const fleet_plan plan_;
    fleet fleet_;
    fleet_swarm swarm_;
    const std::size_t bad_;
};

}  // namespace

fleet_result run_fleet_one_bad(std::uint64_t seed, std::size_t n, bool keep_history) {
    return one_bad_run(seed, n, keep_history).run();
}

}  // namespace trinco::sim
