// run_fleet_chaos.
#include <algorithm>

#include "sim/fleet_run.hpp"
#include "sim/fleet_runs.hpp"
#include "sim/fleet_swarm.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

constexpr boot_clock::duration longest_call = 2s;

class chaos_run {
public:
    chaos_run(std::uint64_t seed, bool keep_history)
        : plan_(draw_fleet_plan(seed, every_fleet_fault())),
          fleet_(seed, plan_.shape, keep_history),
          swarm_(fleet_, plan_) {}

    fleet_result run() {
        fleet_.outside.takes_min = 1ms;
        fleet_.outside.takes_max = 15ms;
        fleet_.outside.hang_for = fleet_.w.between(500ms, longest_call);
        fleet_.start();
        fleet_.run(fleet_.w.between(0s, 1s));
        swarm_.begin();
        for (std::uint64_t i = 3 + fleet_.w.below(3); i > 0; --i) {
            change_mood();
            fleet_.run(fleet_.w.between(300ms, 2500ms));
        }
        outcome_after_healing();
        check_sums();
        auto r = result_of(fleet_);
        r.parameters = plan_.text();
        r.faults = swarm_.inflicted();
        return r;
    }

private:
    void change_mood() {
        auto& w = fleet_.w;
        auto& outside = fleet_.outside;
        outside.p_fail = 0;
        outside.p_hang = 0;
        outside.bad_voter.reset();
        // Sometimes calls last longer than a probe may.
        outside.takes_max = w.chance(0.6) ? 15ms : w.between(15ms, longest_call);
        switch (w.below(6)) {
            case 0: break;
            case 1: outside.p_fail = static_cast<double>(w.below(100)) / 100; break;
            case 2: outside.bad_voter = w.below(plan_.shape.voters); break;
            case 3: outside.p_hang = static_cast<double>(w.below(100)) / 100; break;
            default: outside.p_fail = 1; break;
        }
        fleet_.judge.note("dependency fails " + std::to_string(outside.p_fail) + " hangs " +
                          std::to_string(outside.p_hang));
    }

    // Everything is well again: all close within the longest opening, the probes' time and some
    // slack, stay closed, and agree.
    void outcome_after_healing() {
        swarm_.heal();
        auto& outside = fleet_.outside;
        outside.p_fail = 0;
        outside.p_hang = 0;
        outside.bad_voter.reset();
        outside.takes_max = 15ms;
        const auto& o = plan_.shape.options;
        // Calls that hang now will still fail, and decide as long as they are in the window.
        fleet_.run(longest_call + o.window + plan_.longest_pause);
        // The fleet's openings and the local ones may follow each other.
        const auto bound = o.open_max * 7 / 2 + o.probe_timeout * 6 + o.live_for + 3s;
        std::string why;
        const auto settled = [&] {
            return fleet_.all_in_state(breaker_state::closed) && fleet_.agrees(&why);
        };
        if (!fleet_.run_until(bound, settled)) {
            fleet_.judge.violated(
                "B8: not all closed and agreed after healing: " + states_of(fleet_) + why);
            return;
        }
        const auto era = fleet_.told_by_record().era;
        fleet_.run(1s);
        if (fleet_.told_by_record().era != era) fleet_.judge.violated("B8: does not stay closed");
    }

    void check_sums() {
        fleet_.call_regularly(false);
        fleet_.run(longest_call);
        std::uint64_t asked = 0;
        for (std::size_t i = 0; i < fleet_.size(); ++i) fleet_.member(i).stop();
        const bool done = fleet_.run_until(11s, [&] {
            for (std::size_t i = 0; i < fleet_.size(); ++i) {
                if (!fleet_.member(i).stopped()) return false;
            }
            return true;
        });
        if (!done) fleet_.judge.violated("stop() did not come to an end");
        if (swarm_.forgot()) return;
        fleet_.judge.check_totals(fleet_.record().totals);
        if (fleet_.replaced() > 0) return;
        counts dropped;
        for (std::size_t i = 0; i < fleet_.size(); ++i) {
            asked += fleet_.member(i).seen().asked;
            dropped += fleet_.member(i).sync().report({}).dropped;
        }
        if (!dropped.empty()) return;
        // Every call once, in what was acknowledged and in what the record holds.
        for (const auto& n : {fleet_.judge.counted(), fleet_.record().totals}) {
            const auto counted = n.judged() + n.ignored + n.rejected;
            if (counted == asked) continue;
            fleet_.judge.violated("B5: " + std::to_string(asked) + " calls asked for, " +
                                  std::to_string(counted) + " counted: " + text_of(n));
        }
    }

    const fleet_plan plan_;
    fleet fleet_;
    fleet_swarm swarm_;
};

}  // namespace

fleet_result run_fleet_chaos(std::uint64_t seed, bool keep_history) {
    return chaos_run(seed, keep_history).run();
}

}  // namespace trinco::sim
