// Where the processes of a history lock: a simulated server, the way to it, and what goes wrong
// with a server of its kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/network.hpp"
#include "sim/world.hpp"
#include "store/lock_store.hpp"
#include "store/memory/memory_lock_server.hpp"

namespace trinco::sim {

using lock_row = detail::memory_lock_server::row;

class lock_ground {
public:
    virtual ~lock_ground() = default;

    // The store of one process; this must outlive it.
    [[nodiscard]] virtual std::unique_ptr<detail::lock_store> store_for(node& client) = 0;
    // By the server's own account, at this moment.
    [[nodiscard]] virtual std::vector<lock_row> rows() const = 0;
    [[nodiscard]] virtual std::vector<std::string> leases() const = 0;
    // Its nodes, which may be paused, and cut off from clients.
    [[nodiscard]] virtual const std::vector<node*>& servers() const = 0;
    [[nodiscard]] virtual std::chrono::seconds least_ttl() const = 0;
    // Whether grants follow the order of entering.
    [[nodiscard]] virtual bool keeps_order() const { return true; }
    // Of a semaphore that is used besides the mutexes; 0: none is.
    [[nodiscard]] virtual std::uint32_t permits() const { return 0; }

    // Kinds of faults that only such a server has, and one of them, over by then.
    [[nodiscard]] virtual std::uint64_t own_faults() const = 0;
    virtual void fault(std::uint64_t kind, boot_clock::time_point over) = 0;
    // How much longer than its TTL a lease of somebody dead may stand, and a waiter not look.
    [[nodiscard]] virtual boot_clock::duration slack(std::chrono::seconds ttl) const = 0;
};

// One server that keeps its queues in a map, at the far end of lossy_locks.
[[nodiscard]] std::unique_ptr<lock_ground> make_memory_ground(world& w, network& net);
// Three members of etcd, with leases that a new leader begins anew, events that are lost,
// compaction, and a leader that was deposed and does not know it.
[[nodiscard]] std::unique_ptr<lock_ground> make_etcd_ground(world& w, network& net);
// Three servers of Consul, with sessions that a new leader begins anew, lock-delays that begin
// anew with a server, watches that are told nothing, and a leader that was deposed and does not
// know it.
[[nodiscard]] std::unique_ptr<lock_ground> make_consul_ground(world& w, network& net);

}  // namespace trinco::sim
