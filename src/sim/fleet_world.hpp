// A fleet of instances with the real breaker, callers and a dependency, on virtual time.
//
//     sim::fleet f(seed, shape);
//     f.start();
//     f.outside.p_fail = 1.0;          // the dependency breaks
//     f.run(3s);
//     f.member(0).engine().state();    // open
//
// An instance is one process: a node, its own connection to the server, a fleet_sync and one
// breaker named "b". Its callers arrive at random (Poisson); a call that is admitted meets the
// dependency as it is then, and is settled when it returns. Instances of one voter share a machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "breaker/engine.hpp"
#include "breaker/fleet_sync.hpp"
#include "sim/fleet_judge.hpp"
#include "sim/lossy_breakers.hpp"
#include "sim/network.hpp"

namespace trinco::sim {

// What calls meet.
struct dependency {
    double p_fail = 0;
    std::optional<std::size_t> bad_voter;  // all its calls fail, whatever p_fail says
    double p_hang = 0;                     // of calls that take hang_for, then fail
    boot_clock::duration hang_for = std::chrono::seconds(2);
    boot_clock::duration takes_min{0};  // both 0: calls return at once
    boot_clock::duration takes_max{0};
};

struct fleet_shape {
    std::size_t instances = 3;
    std::size_t voters = 3;        // instance i lives on voter i mod voters
    double calls_per_second = 50;  // of each instance
    breaker_options options;
    bool watched = true;  // the judge looks at each message
};

class fleet;

class fleet_member {
public:
    fleet_member(fleet& of, std::size_t index, std::uint32_t life);
    ~fleet_member();
    fleet_member(const fleet_member&) = delete;
    fleet_member& operator=(const fleet_member&) = delete;

    void start();
    void call_regularly(bool on);
    // One call now.
    void call();
    // Sends what there is to the store; `stopped` turns true when that is done.
    void stop();
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }

    [[nodiscard]] detail::engine& engine() noexcept { return *engine_; }
    [[nodiscard]] detail::fleet_sync& sync() noexcept { return *sync_; }
    [[nodiscard]] node& where() noexcept { return node_; }
    [[nodiscard]] std::size_t voter() const noexcept { return voter_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    // What its sync knows of the fleet's breaker.
    [[nodiscard]] const detail::view& known() const;
    // The process dies where it stands.
    void kill();

    struct tally {
        std::uint64_t asked = 0;
        std::uint64_t admitted = 0;
        std::uint64_t ordinary = 0;  // admitted, no probe
        std::uint64_t refused_by_fleet = 0;
        std::uint64_t refused_locally = 0;
    };
    [[nodiscard]] const tally& seen() const noexcept { return seen_; }

private:
    void next_arrival();
    void admitted(permit p);
    void returned(std::size_t place, bool failed);

    fleet& fleet_;
    std::size_t voter_;
    std::string name_;
    node& node_;
    lossy_breakers* line_ = nullptr;  // within store_
    std::unique_ptr<detail::breaker_store> store_;
    std::unique_ptr<detail::fleet_sync> sync_;
    std::unique_ptr<detail::engine> engine_;
    std::vector<permit> calls_;             // under way
    std::vector<std::size_t> free_places_;  // of calls_
    std::uint64_t arrivals_ = 0;            // grows when those to come are others
    op stopping_;
    bool stopped_ = false;
    tally seen_;
};

class fleet {
public:
    fleet(std::uint64_t seed, const fleet_shape& shape, bool keep_history = false);
    ~fleet();
    fleet(const fleet&) = delete;
    fleet& operator=(const fleet&) = delete;

    // All instances join and their callers begin.
    void start();
    void run(boot_clock::duration d) { w.run_for(d); }
    // Runs until the condition holds, looking every `step`; false when `bound` passed before.
    bool run_until(boot_clock::duration bound, const std::function<bool()>& holds,
                   boot_clock::duration step = std::chrono::milliseconds(100));

    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    [[nodiscard]] fleet_member& member(std::size_t i) noexcept { return *members_[i]; }
    // Kills the process, and starts another in its place.
    void replace(std::size_t i);
    void call_regularly(bool on);

    [[nodiscard]] std::size_t replaced() const noexcept { return dead_.size(); }

    // Whether all living instances and the record have the same view, by (era, rev, state).
    [[nodiscard]] bool agrees(std::string* why = nullptr);
    [[nodiscard]] bool all_in_state(breaker_state s);
    [[nodiscard]] detail::fleet_record record() { return server.memory().record_of("b"); }
    // What the record says now, without its copy.
    [[nodiscard]] detail::view told_by_record() { return server.memory().look({"b", {}}).fleet; }

    world w;
    network net{w};
    node& server_node;
    lossy_breaker_server server;
    fleet_judge judge{w};
    dependency outside;
    const fleet_shape shape;
    std::atomic<std::int64_t> clock{0};

private:
    friend class fleet_member;
    std::vector<std::unique_ptr<fleet_member>> members_;
    std::vector<std::unique_ptr<fleet_member>>
        dead_;  // killed, not destroyed: nothing of them runs
    std::uint32_t lives_ = 0;
    bool calling_ = false;
};

}  // namespace trinco::sim
