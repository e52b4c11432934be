// One simulated process that uses locks: a session, some workers with a mutex each, and what it
// takes to kill and restart it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lock/lock_claim.hpp"
#include "lock/session_core.hpp"
#include "sim/lock_ground.hpp"
#include "sim/lock_judge.hpp"
#include "sim/network.hpp"
#include "sim/world.hpp"

namespace trinco::sim {

// What all processes of a run share.
struct lock_scene {
    world& w;
    network& net;
    node& resource;  // where the protected writes arrive
    lock_ground& ground;
    lock_judge& judge;
    std::chrono::seconds ttl;
    std::vector<std::string> names;
    std::string semaphore = {};  // the one of them that is no mutex, if there is one
    boot_clock::duration think_max;
    boot_clock::duration hold_max;
    bool quiet = false;  // workers begin nothing new
    std::uint64_t sessions_lost = 0;
};

class lock_process {
public:
    lock_process(lock_scene& scene, std::string name, int workers);
    ~lock_process();
    lock_process(const lock_process&) = delete;
    lock_process& operator=(const lock_process&) = delete;

    void start();
    // As by SIGKILL: nothing of it runs or sends any more.
    void kill();
    [[nodiscard]] bool alive() const noexcept { return at_ != nullptr; }
    [[nodiscard]] node& at() const noexcept { return *at_; }
    // The wall clock of its machine is set.
    void step_wall_clock(boot_clock::duration by) noexcept { wall_offset_ += by; }

    // Gives up every wait and lock; nothing new is begun. The session stays.
    void calm_down();
    void close_session();
    void add_beliefs(std::vector<belief>& out) const;
    [[nodiscard]] std::string lease() const;
    [[nodiscard]] std::size_t debts() const;

private:
    struct worker {
        std::string who;
        std::unique_ptr<detail::lock_claim> lock;
        std::string name;  // that it asks for or holds
        lock_judge::attempt_id attempt = 0;
        detail::claim_id claim;  // of the grant
        bool asking = false;
        op next;      // what it does after some time
        op patience;  // of a wait that it will give up
    };

    void open_session();
    void session_ended();
    void think(worker& w);
    void begin(worker& w);
    void acquired(worker& w, std::error_code error, const detail::grant& g);
    void work(worker& w, boot_clock::time_point until);
    void release(worker& w);
    void lost(worker& w, std::error_code why);
    [[nodiscard]] detail::clocks read_clocks() const;

    lock_scene& scene_;
    const std::string name_;
    node* at_ = nullptr;
    int incarnation_ = 0;
    boot_clock::duration wall_offset_{};
    std::unique_ptr<detail::lock_store> store_;
    std::shared_ptr<detail::session_core> session_;
    std::vector<std::unique_ptr<worker>> workers_;
    op reopen_;
};

}  // namespace trinco::sim
