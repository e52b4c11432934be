// run_fleet_recovers and run_fleet_outlives.
#include <vector>

#include "sim/fleet_run.hpp"
#include "sim/fleet_runs.hpp"
#include "sim/fleet_swarm.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

// From the end of the last opening: probes, their notices, and probes of each instance's own.
constexpr boot_clock::duration probing = 1500ms;

fleet_plan plan_for(std::uint64_t seed) {
    auto p = draw_fleet_plan(seed, {});
    auto& o = p.shape.options;
    o.open_for = std::chrono::milliseconds(3000 + seed % 7 * 400);
    o.open_max = o.open_for;
    o.probe_timeout = 3s;
    o.recovery_ramp = 0ms;
    o.minimum_calls = 20;
    p.shape.calls_per_second = std::max(p.shape.calls_per_second, 30.0);
    return p;
}

class recovery_run {
public:
    recovery_run(std::uint64_t seed, bool keep_history)
        : plan_(plan_for(seed)), fleet_(seed, plan_.shape, keep_history) {
        fleet_.outside.takes_min = 1ms;
        fleet_.outside.takes_max = 10ms;
    }

    fleet_result recovers() {
        if (!all_open()) return result();
        // Each has its opening, and so has the fleet; nothing fails any more.
        if (!fleet_.run_until(
                longest_opening() + probing, [this] { return all_closed(); }, 20ms)) {
            fleet_.judge.violated("not all closed an open_for after all had opened: " +
                                  states_of(fleet_));
        }
        fleet_.run(1s);
        if (!all_closed()) fleet_.judge.violated("does not stay closed: " + states_of(fleet_));
        return result();
    }

    fleet_result outlives() {
        if (!all_open()) return result();
        const auto saved = fleet_.server.snapshot();
        fleet_.judge.note("the store dies");
        fleet_.server.crash();
        wait_alone();
        const bool empty = fleet_.w.chance(0.5);
        fleet_.judge.note(empty ? "the store is back, empty" : "the store is back");
        fleet_.server.start(empty ? lossy_breaker_server::rows() : saved);
        nobody_is_refused_again();
        // Leases from before are waited for; then the calls of those who go on are the probes.
        const auto bound = plan_.shape.options.probe_timeout * 2 + probing;
        std::string why;
        const auto settled = [&] { return all_closed() && fleet_.agrees(&why); };
        if (!fleet_.run_until(bound, settled)) {
            fleet_.judge.violated("the fleet does not recover: " + states_of(fleet_) + why);
        }
        return result();
    }

private:
    [[nodiscard]] bool all_closed() { return fleet_.all_in_state(breaker_state::closed); }

    [[nodiscard]] boot_clock::duration longest_opening() const {
        const auto& o = plan_.shape.options;
        return std::chrono::duration_cast<boot_clock::duration>(o.open_for * (1 + o.jitter));
    }

    // The dependency breaks, and heals as soon as all have heard that the fleet stops calling it.
    bool all_open() {
        fleet_.start();
        fleet_.run(1s);
        fleet_.outside.p_fail = 1;
        const auto open = [this] {
            for (std::size_t i = 0; i < fleet_.size(); ++i) {
                if (fleet_.member(i).known().state != breaker_state::open) return false;
            }
            return fleet_.all_in_state(breaker_state::open);
        };
        const bool all = fleet_.run_until(5s, open, 10ms);
        if (!all) fleet_.judge.violated("not all open: " + states_of(fleet_));
        fleet_.outside.p_fail = 0;
        return all;
    }

    // Until all, or in half of the histories only some, have recovered by themselves.
    void wait_alone() {
        const auto& o = plan_.shape.options;
        const std::size_t enough =
            fleet_.w.chance(0.5) ? fleet_.size() : 1 + fleet_.w.below(fleet_.size());
        const auto recovered = [&] {
            std::size_t n = 0;
            for (std::size_t i = 0; i < fleet_.size(); ++i) {
                if (fleet_.member(i).engine().state() == breaker_state::closed) ++n;
            }
            return n >= enough;
        };
        const auto bound = longest_opening() + o.degraded_after + o.open_for / 2 + probing;
        if (!fleet_.run_until(bound, recovered, 20ms)) {
            fleet_.judge.violated("they do not recover alone: " + states_of(fleet_));
        }
    }

    void nobody_is_refused_again() {
        struct one {
            std::size_t who;
            std::uint64_t refused;
        };
        std::vector<one> recovered;
        for (std::size_t i = 0; i < fleet_.size(); ++i) {
            if (fleet_.member(i).engine().state() != breaker_state::closed) continue;
            recovered.push_back({i, refused(i)});
            ++calls_on_;
        }
        fleet_.run(plan_.shape.options.probe_timeout + probing);
        for (const auto& r : recovered) {
            const auto more = refused(r.who) - r.refused;
            if (more == 0) continue;
            fleet_.judge.violated(fleet_.member(r.who).name() + " had recovered and was refused " +
                                  std::to_string(more) + " times more: " + states_of(fleet_));
        }
    }

    [[nodiscard]] std::uint64_t refused(std::size_t i) {
        const auto& seen = fleet_.member(i).seen();
        return seen.refused_by_fleet + seen.refused_locally;
    }

    [[nodiscard]] fleet_result result() {
        auto r = result_of(fleet_);
        r.parameters = plan_.text();
        r.openings = 1;
        r.faults = calls_on_;
        return r;
    }

    const fleet_plan plan_;
    fleet fleet_;
    std::uint64_t calls_on_ = 0;  // instances that had recovered when the store came back
};

}  // namespace

fleet_result run_fleet_recovers(std::uint64_t seed, bool keep_history) {
    return recovery_run(seed, keep_history).recovers();
}

fleet_result run_fleet_outlives(std::uint64_t seed, bool keep_history) {
    return recovery_run(seed, keep_history).outlives();
}

}  // namespace trinco::sim
