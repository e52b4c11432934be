// run_fleet_forgets.
#include "sim/fleet_run.hpp"
#include "sim/fleet_runs.hpp"
#include "sim/fleet_swarm.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

fleet_plan plan_for(std::uint64_t seed) {
    using enum fleet_fault;
    // Whoever dies takes what it knows along; that is another story.
    auto p = draw_fleet_plan(seed, {pause, cut_off, clog, break_connection, server_pause});
    p.shape.options.open_for = 4s;
    p.shape.options.open_max = 5s;
    p.shape.options.recovery_ramp = 0ms;
    p.shape.options.minimum_calls = 20;
    p.shape.calls_per_second = std::max(p.shape.calls_per_second, 30.0);
    p.longest_pause = std::min<boot_clock::duration>(p.longest_pause, 1s);
    return p;
}

class forgets_run {
public:
    forgets_run(std::uint64_t seed, bool keep_history)
        : plan_(plan_for(seed)), fleet_(seed, plan_.shape, keep_history), swarm_(fleet_, plan_) {}

    fleet_result run() {
        fleet_.outside.takes_min = 1ms;
        fleet_.outside.takes_max = 10ms;
        fleet_.start();
        fleet_.run(1s);
        const auto closed = fleet_.server.snapshot();
        if (reaches(breaker_state::open)) {
            const auto open = fleet_.server.snapshot();
            if (fleet_.w.chance(0.5)) {
                stays_open(closed);
            } else if (reaches(breaker_state::closed)) {
                stays_closed(open);
            }
        }
        swarm_.heal();
        fleet_.run(plan_.longest_pause + plan_.shape.options.live_for);
        std::string why;
        if (!fleet_.run_until(3s, [&] { return fleet_.agrees(&why); })) {
            fleet_.judge.violated("disagreement of eras lasts: " + why);
        }
        auto r = result_of(fleet_);
        r.parameters = plan_.text();
        r.faults = swarm_.inflicted() + forgotten_;
        r.openings = 1;
        return r;
    }

private:
    bool reaches(breaker_state s) {
        fleet_.outside.p_fail = s == breaker_state::open ? 1 : 0;
        if (fleet_.run_until(
                10s, [&] { return fleet_.all_in_state(s); }, 20ms)) {
            // What is still under way of the transition arrives.
            fleet_.run(100ms);
            return true;
        }
        fleet_.judge.violated("does not get there: " + states_of(fleet_));
        return false;
    }

    void forget(const lossy_breaker_server::rows& older) {
        ++forgotten_;
        auto& server = fleet_.server;
        switch (fleet_.w.below(4)) {
            case 0:
                fleet_.judge.note("restarts empty");
                server.restart({});
                break;
            case 1:
                fleet_.judge.note("is flushed");
                server.flush_all();
                break;
            case 2:
                fleet_.judge.note("fails over to old data, with a clock behind");
                server.restart(older, fleet_.w.between(0s, 2s));
                break;
            default:
                fleet_.judge.note("is restored from old data");
                server.restart(older);
                break;
        }
    }

    [[nodiscard]] std::uint64_t ordinary_calls() {
        std::uint64_t n = 0;
        for (std::size_t i = 0; i < fleet_.size(); ++i) n += fleet_.member(i).seen().ordinary;
        return n;
    }

    // Until its time has run out nobody calls.
    void stays_open(const lossy_breaker_server::rows& older) {
        fleet_.outside.p_fail = 0;
        auto until = boot_clock::time_point::max();
        for (std::size_t i = 0; i < fleet_.size(); ++i) {
            const auto* terms = fleet_.member(i).sync().terms_of("b");
            until = std::min(until, terms->as_of + terms->fleet.remaining);
        }
        const auto before = ordinary_calls();
        swarm_.begin();
        while (fleet_.w.now() + 300ms < until) {
            if (fleet_.w.chance(0.3)) forget(older);
            fleet_.run(fleet_.w.between(10ms, 250ms));
            if (ordinary_calls() == before) continue;
            fleet_.judge.violated("open did not stay open: " + states_of(fleet_));
            return;
        }
    }

    void stays_closed(const lossy_breaker_server::rows& older) {
        const auto end = fleet_.w.now() + 3s;
        swarm_.begin();
        while (fleet_.w.now() < end) {
            if (fleet_.w.chance(0.3)) forget(older);
            fleet_.run(fleet_.w.between(10ms, 250ms));
            for (std::size_t i = 0; i < fleet_.size(); ++i) {
                if (fleet_.member(i).engine().state() == breaker_state::closed) continue;
                fleet_.judge.violated("closed did not stay closed: " + states_of(fleet_));
                return;
            }
        }
    }

    const fleet_plan plan_;
    fleet fleet_;
    fleet_swarm swarm_;
    std::uint64_t forgotten_ = 0;
};

}  // namespace

fleet_result run_fleet_forgets(std::uint64_t seed, bool keep_history) {
    return forgets_run(seed, keep_history).run();
}

}  // namespace trinco::sim
