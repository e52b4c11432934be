#include "sim/lock_sim.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "sim/lock_process.hpp"

namespace trinco::sim {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 100ms;  // of the judge
constexpr auto renewal_poll = 10ms;
constexpr std::uint64_t common_faults = 8;  // kinds, of whatever ground

// Long enough for leases to run out.
boot_clock::duration wild_phase(const lock_ground& ground) {
    return std::max<boot_clock::duration>(25s, 6 * ground.least_ttl());
}

std::unique_ptr<lock_ground> make_ground(lock_sim_ground kind, world& w, network& net) {
    switch (kind) {
        case lock_sim_ground::etcd: return make_etcd_ground(w, net);
        case lock_sim_ground::consul: return make_consul_ground(w, net);
        default: return make_memory_ground(w, net);
    }
}

class lock_run {
public:
    lock_run(std::uint64_t seed, bool keep_history, lock_sim_ground ground);
    lock_sim_result run();

private:
    void draw_parameters();
    void next_fault();
    void fault();
    [[nodiscard]] std::vector<node*> some_servers();
    void restore(node& client, node& server);
    void break_connections();
    void pause_somebody();
    void kill_somebody();
    void cut_somebody_off();
    void clog_somebody();
    void slow_then_silent();
    void delay_renewal(node& at, const std::string& lease, boot_clock::time_point until);
    void set_somebodys_clock();
    void look();
    void check_nothing_left();
    lock_process& somebody() { return *processes_[world_.below(processes_.size())]; }
    [[nodiscard]] std::string name_parameters() const;

    world world_;
    network net_;
    std::unique_ptr<lock_ground> ground_;
    node& resource_;
    lock_judge judge_;
    lock_scene scene_;
    std::vector<std::unique_ptr<lock_process>> processes_;
    boot_clock::time_point heals_;
    boot_clock::duration fault_every_{};
    std::uint64_t kinds_ = 0;  // of faults, as bits
    std::uint64_t faults_ = 0;
    bool looking_ = true;
};

lock_run::lock_run(std::uint64_t seed, bool keep_history, lock_sim_ground ground)
    : world_(seed),
      net_(world_),
      ground_(make_ground(ground, world_, net_)),
      resource_(world_.add_node("resource")),
      judge_(world_),
      scene_{world_, net_, resource_, *ground_, judge_, 0s, {}, {}, {}, {}} {
    world_.keep_history(keep_history);
    draw_parameters();
}

// One, or all of them.
std::vector<node*> lock_run::some_servers() {
    const auto& all = ground_->servers();
    if (all.size() == 1 || world_.chance(0.5)) return all;
    return {all[world_.below(all.size())]};
}

void lock_run::draw_parameters() {
    constexpr std::chrono::seconds ttls[] = {1s, 2s, 3s, 5s, 8s};
    scene_.ttl = std::max(ttls[world_.below(5)], ground_->least_ttl());
    scene_.think_max = world_.between(50ms, 2'000ms);
    // Long holds live through renewals, short ones make many grants.
    scene_.hold_max = world_.chance(0.5) ? world_.between(50ms, 1'500ms)
                                         : world_.between(1'500ms, 3 * scene_.ttl);
    for (std::uint64_t i = 0, n = 1 + world_.below(3); i < n; ++i) {
        scene_.names.emplace_back("lock/").push_back(static_cast<char>('a' + i));
    }
    if (ground_->permits() != 0) {
        scene_.semaphore = "semaphore";
        scene_.names.push_back(scene_.semaphore);
        judge_.counts(scene_.semaphore, ground_->permits());
    }
    net_faults f;
    const auto sometimes = [&](double most) {
        return world_.chance(0.4) ? 0.0 : most * static_cast<double>(world_.below(100)) / 100;
    };
    f.p_drop = sometimes(0.3);
    f.p_duplicate = sometimes(0.3);
    f.p_slow = sometimes(0.1);
    f.delay_max = world_.chance(0.7) ? world_.between(1ms, 80ms) : world_.between(80ms, 600ms);
    f.slow_max = world_.between(100ms, 2 * scene_.ttl);
    net_.set_faults(f);
    kinds_ = world_.random();
    fault_every_ = world_.between(300ms, 4'000ms);
    const auto clients = 2 + world_.below(3);
    for (std::uint64_t i = 0; i < clients; ++i) {
        processes_.push_back(std::make_unique<lock_process>(scene_, "p" + std::to_string(i),
                                                            1 + static_cast<int>(world_.below(3))));
    }
}

std::string lock_run::name_parameters() const {
    std::ostringstream out;
    const auto& f = net_.faults();
    out << processes_.size() << " processes, " << scene_.names.size() << " names, ttl "
        << scene_.ttl.count() << " s, drop " << f.p_drop << ", duplicate " << f.p_duplicate
        << ", slow " << f.p_slow << ", kinds " << (kinds_ & 0xfff);
    return out.str();
}

void lock_run::next_fault() {
    const auto wait = world_.between(10ms, 2 * fault_every_);
    if (world_.now() + wait >= heals_) return;
    world_.schedule(wait, [this] {
        fault();
        next_fault();
    });
}

void lock_run::fault() {
    const auto kind = world_.below(common_faults + ground_->own_faults());
    if ((kinds_ >> kind & 1) == 0) return;  // this run does not know it
    ++faults_;
    switch (kind) {
        case 0: return pause_somebody();
        case 1: return kill_somebody();
        case 2: return cut_somebody_off();
        case 3: return clog_somebody();
        case 4: return set_somebodys_clock();
        case 5:
            world_.note("the server pauses");
            for (auto* s : some_servers()) {
                s->pause_until(std::min(heals_, world_.now() + world_.between(10ms, scene_.ttl)));
            }
            return;
        case 6: return slow_then_silent();
        case 7: return break_connections();
        default: return ground_->fault(kind - common_faults, heals_);
    }
}

void lock_run::break_connections() {
    world_.note("connections break");
    if (world_.chance(0.5)) {
        for (auto* s : some_servers()) net_.break_connections(*s);
    } else if (auto& p = somebody(); p.alive()) {
        for (auto* s : some_servers()) net_.break_connections(p.at(), *s);
    }
}

// Shorter than the TTL, about as long, much longer.
void lock_run::pause_somebody() {
    auto& p = somebody();
    if (!p.alive()) return;
    const boot_clock::duration ttl = scene_.ttl;
    const boot_clock::duration lengths[] = {world_.between(10ms, ttl / 2),
                                            world_.between(ttl * 8 / 10, ttl * 12 / 10),
                                            world_.between(2 * ttl, 4 * ttl)};
    world_.note(p.at().name() + " pauses");
    p.at().pause_until(std::min(heals_, world_.now() + lengths[world_.below(3)]));
}

void lock_run::kill_somebody() {
    auto& p = somebody();
    if (!p.alive()) return;
    world_.note(p.at().name() + " is killed");
    p.kill();
    world_.schedule(world_.between(0ms, 2 * scene_.ttl), [&p] { p.start(); });
}

void lock_run::cut_somebody_off() {
    auto& p = somebody();
    if (!p.alive()) return;
    world_.note(p.at().name() + " is cut off");
    const auto way = world_.below(3);
    const auto from = some_servers();
    for (auto* s : from) {
        if (way != 0) net_.cut(p.at(), *s);
        if (way != 1) net_.cut(*s, p.at());
    }
    world_.schedule(world_.between(50ms, 2 * scene_.ttl), [this, from, &at = p.at()] {
        for (auto* s : from) restore(at, *s);
    });
}

void lock_run::clog_somebody() {
    auto& p = somebody();
    if (!p.alive()) return;
    world_.note("the connection of " + p.at().name() + " stalls");
    const auto until = std::min(heals_, world_.now() + world_.between(50ms, 2 * scene_.ttl));
    const bool asks = world_.chance(0.5);
    for (auto* s : some_servers()) {
        if (asks) net_.clog(p.at(), *s, until);
        if (!asks) net_.clog(*s, p.at(), until);
    }
}

// The reply to a renewal comes late, and then nothing does: the holder lives on what it was
// promised.
void lock_run::slow_then_silent() {
    auto rows = ground_->rows();
    std::erase_if(rows, [](const auto& r) { return !r.holds; });
    if (rows.empty()) return;
    const auto lease = rows[world_.below(rows.size())].lease;
    for (const auto& p : processes_) {
        if (!p->alive() || p->lease() != lease) continue;
        delay_renewal(p->at(), lease, world_.now() + scene_.ttl / 2);
    }
}

// Replies wait until a renewal of a holder has arrived, and no request after it does.
void lock_run::delay_renewal(node& at, const std::string& lease, boot_clock::time_point until) {
    const auto now = world_.now();
    if (now >= std::min(until, heals_)) return;
    const boot_clock::duration ttl = scene_.ttl;
    const auto rows = ground_->rows();
    const bool renewed = std::any_of(rows.begin(), rows.end(), [&](const auto& r) {
        return r.lease == lease && r.holds && r.left > ttl - 2 * renewal_poll;
    });
    if (!renewed) {
        for (auto* s : ground_->servers()) net_.clog(*s, at, now + 2 * renewal_poll);
        world_.schedule(renewal_poll,
                        [this, &at, lease, until] { delay_renewal(at, lease, until); });
        return;
    }
    world_.note("a renewal of " + at.name() + " is answered late, and nothing after it");
    const auto late = world_.between(ttl / 8, ttl / 5);  // as late as it may be
    for (auto* s : ground_->servers()) {
        net_.cut(at, *s);
        net_.clog(*s, at, std::min(heals_, now + late));
    }
    world_.schedule(late + world_.between(1ms, ttl / 40), [this, ttl, &at] {
        if (world_.now() >= heals_) return;
        for (auto* s : ground_->servers()) net_.cut(*s, at);
        world_.schedule(world_.between(ttl, 2 * ttl), [this, &at] {
            for (auto* s : ground_->servers()) restore(at, *s);
        });
    });
}

void lock_run::restore(node& client, node& server) {
    net_.restore(client, server);
    net_.restore(server, client);
}

void lock_run::set_somebodys_clock() {
    const auto by = world_.between(0ms, 120s) - 60s;
    somebody().step_wall_clock(by);
}

void lock_run::look() {
    if (!looking_) return;
    std::vector<belief> all;
    for (const auto& p : processes_) p->add_beliefs(all);
    judge_.check_believers(all, ground_->rows());
    judge_.check_liveness();
    world_.schedule(look_every, [this] { look(); });
}

void lock_run::check_nothing_left() {
    for (const auto& r : ground_->rows()) {
        judge_.violated("L9 " + r.name + " still has claim " + std::to_string(r.id.n) + " of " +
                        r.lease);
    }
    std::set<std::string> wanted;
    for (const auto& p : processes_) {
        if (!p->lease().empty()) wanted.insert(p->lease());
        if (p->debts() != 0) judge_.violated("L9 a session still has debts");
    }
    for (const auto& lease : ground_->leases()) {
        if (!wanted.contains(lease)) judge_.violated("L9 the lease " + lease + " is nobody's");
    }
}

lock_sim_result lock_run::run() {
    lock_sim_result out;
    out.parameters = name_parameters();
    heals_ = world_.now() + wild_phase(*ground_);
    for (auto& p : processes_) p->start();
    next_fault();
    look();
    world_.run_until(heals_);

    // Messages that were sent before may still be late by this much.
    const auto late = net_.faults().slow_max + ground_->slack(scene_.ttl);
    const boot_clock::duration ttl = scene_.ttl;
    net_.heal();
    world_.note("healed");
    judge_.begin_liveness(ttl + late + scene_.hold_max + 5s);
    world_.run_for(ttl + late + scene_.hold_max + 6s);

    scene_.quiet = true;
    for (auto& p : processes_) p->calm_down();
    world_.run_for(ttl + late + 2s);
    check_nothing_left();
    if (ground_->keeps_order()) judge_.check_order();
    looking_ = false;

    out.violations = judge_.violations();
    out.history = world_.history();
    out.digest = world_.digest();
    out.events = world_.events_run();
    out.messages = net_.sent();
    out.sessions_lost = scene_.sessions_lost;
    out.faults = faults_;
    out.seen = judge_.seen();
    return out;
}

}  // namespace

lock_sim_result run_lock_sim(std::uint64_t seed, bool keep_history, lock_sim_ground ground) {
    return lock_run(seed, keep_history, ground).run();
}

}  // namespace trinco::sim
