#include "sim/fleet_swarm.hpp"

#include <algorithm>

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t snapshots_kept = 8;

class dice {
public:
    explicit dice(std::uint64_t seed) : rng_(seed ^ 0x9e3779b97f4a7c15ULL) {}
    std::uint64_t below(std::uint64_t n) { return rng_() % n; }
    bool chance(double p) { return static_cast<double>(rng_() >> 11) * 0x1.0p-53 < p; }
    std::chrono::milliseconds ms(std::uint64_t from, std::uint64_t to) {
        return std::chrono::milliseconds(from + below(to - from + 1));
    }
    // Often nothing.
    double share(double most) {
        return chance(0.4) ? 0.0 : most * static_cast<double>(below(1000)) / 1000;
    }

private:
    std::mt19937_64 rng_;
};

constexpr const char* names[] = {"pause",     "replace",          "server_pause", "cut_off",
                                 "clog",      "break_connection", "crash",        "data_loss",
                                 "roll_back", "flush_all"};

}  // namespace

std::string fleet_plan::text() const {
    const auto ms = [](auto d) {
        return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
    };
    std::string s;
    s += std::to_string(shape.instances);
    s += " instances on ";
    s += std::to_string(shape.voters);
    s += " machines, drop ";
    s += std::to_string(net.p_drop);
    s += ", duplicate ";
    s += std::to_string(net.p_duplicate);
    s += ", delay up to ";
    s += ms(net.delay_max);
    s += " ms, slow ";
    s += std::to_string(net.p_slow);
    s += ", N ";
    s += std::to_string(shape.options.half_open_probes);
    s += ", probe_timeout ";
    s += ms(shape.options.probe_timeout);
    s += shape.options.consistency == consistency::strict ? " ms, strict" : " ms";
    s += ", a fault every ";
    s += ms(fault_every);
    s += " ms of";
    for (const auto f : faults) {
        s += ' ';
        s += names[static_cast<std::size_t>(f)];
    }
    return s;
}

fleet_plan draw_fleet_plan(std::uint64_t seed, const fleet_faults& allowed) {
    dice d(seed);
    fleet_plan p;
    p.shape.voters = 2 + d.below(4);
    p.shape.instances = p.shape.voters + d.below(3);
    p.shape.calls_per_second = 20 + static_cast<double>(d.below(40));
    auto& o = p.shape.options;
    o.window = d.ms(1500, 3000);
    o.minimum_calls = static_cast<std::uint32_t>(5 + d.below(15));
    o.open_for = d.ms(300, 1200);
    o.open_backoff = d.chance(0.5) ? 2.0 : 1.5;
    o.open_max = o.open_for + d.ms(0, 2000);
    o.half_open_probes = static_cast<std::uint32_t>(1 + d.below(6));
    o.probe_timeout = d.ms(200, 1000);
    o.recovery_ramp = d.chance(0.3) ? d.ms(100, 1000) : 0ms;
    o.live_for = d.ms(3000, 6000);
    o.sync_interval = d.ms(40, 120);
    o.store_timeout = d.ms(40, 150);
    o.degraded_after = o.store_timeout + d.ms(300, 900);
    o.key_ttl = 60s;

    p.net.p_drop = d.share(0.15);
    p.net.p_duplicate = d.share(0.1);
    p.net.delay_max = d.ms(1, 20);
    p.net.p_slow = d.share(0.05);
    p.net.slow_max = d.ms(50, 800);
    p.fault_every = d.ms(150, 1200);
    p.longest_pause = d.ms(100, 2000);
    for (const auto f : allowed) {
        if (d.chance(0.5)) p.faults.push_back(f);
    }
    if (d.chance(0.25)) o.consistency = consistency::strict;
    return p;
}

fleet_swarm::fleet_swarm(fleet& over, const fleet_plan& plan) : fleet_(over), plan_(plan) {}

void fleet_swarm::begin() {
    active_ = true;
    fleet_.net.set_faults(plan_.net);
    if (!plan_.faults.empty()) next_fault();
    if (has(fleet_fault::roll_back)) next_snapshot();
}

bool fleet_swarm::has(fleet_fault what) const {
    return std::count(plan_.faults.begin(), plan_.faults.end(), what) != 0;
}

void fleet_swarm::heal() {
    active_ = false;
    fleet_.net.heal();
    if (fleet_.server.is_down()) fleet_.server.start(fleet_.server.snapshot());
    fleet_.judge.note("healed");
}

void fleet_swarm::next_fault() {
    fleet_.w.schedule(fleet_.w.between(0s, plan_.fault_every * 2), [this] {
        if (!active_) return;
        inflict(plan_.faults[fleet_.w.below(plan_.faults.size())]);
        next_fault();
    });
}

void fleet_swarm::next_snapshot() {
    fleet_.w.schedule(fleet_.w.between(0s, plan_.snapshot_every * 2), [this] {
        if (!active_) return;
        snapshots_.push_back(fleet_.server.snapshot());
        if (snapshots_.size() > snapshots_kept) snapshots_.pop_front();
        next_snapshot();
    });
}

void fleet_swarm::note(fleet_fault what, const std::string& whom) {
    ++inflicted_;
    fleet_.judge.note(std::string(names[static_cast<std::size_t>(what)]) + " " + whom);
}

void fleet_swarm::inflict(fleet_fault what) {
    auto& w = fleet_.w;
    auto& server = fleet_.server;
    const auto index = w.below(fleet_.size());
    auto& member = fleet_.member(index);
    const auto pause = w.between(1ms, plan_.longest_pause);
    note(what, member.name());
    switch (what) {
        case fleet_fault::pause: member.where().pause_until(w.now() + pause); break;
        case fleet_fault::replace: fleet_.replace(index); break;
        case fleet_fault::server_pause: fleet_.server_node.pause_until(w.now() + pause / 2); break;
        case fleet_fault::cut_off:
            fleet_.net.partition(member.where(), fleet_.server_node);
            w.schedule(pause, [this] {
                if (active_) {  // heals all cuts; they overlap rarely
                    fleet_.net.heal();
                    fleet_.net.set_faults(plan_.net);
                }
            });
            break;
        case fleet_fault::clog:
            if (w.chance(0.5)) {
                fleet_.net.clog(member.where(), fleet_.server_node, w.now() + pause);
            } else {
                fleet_.net.clog(fleet_.server_node, member.where(), w.now() + pause);
            }
            break;
        case fleet_fault::break_connection:
            fleet_.net.break_connections(member.where(), fleet_.server_node);
            break;
        case fleet_fault::crash:
            if (server.is_down()) break;
            server.crash();
            w.schedule(pause, [this] {
                if (fleet_.server.is_down()) fleet_.server.start(fleet_.server.snapshot());
            });
            break;
        case fleet_fault::data_loss:
            forgot_ = true;
            server.restart({});
            break;
        case fleet_fault::roll_back:
            if (snapshots_.empty()) break;
            forgot_ = true;
            server.restart(snapshots_[w.below(snapshots_.size())],
                           w.chance(0.3) ? w.between(0s, 2s) : 0s);
            // Somebody who knows nothing comes right after it.
            if (has(fleet_fault::replace) && w.chance(0.3)) {
                fleet_.replace(w.below(fleet_.size()));
            }
            break;
        case fleet_fault::flush_all:
            forgot_ = true;
            server.flush_all();
            break;
    }
}

}  // namespace trinco::sim
