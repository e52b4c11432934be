// The simulated network between nodes of a world: what may happen to a message on its way.
//
// A message is a function that runs on the receiving node, later. Each direction of each pair of
// nodes is a link, and every message draws its own fate: lost, sent twice, delayed. Delays are
// independent, so messages overtake each other; a store's stream that promises an order must keep
// it itself.
//
//     sim::network net(w);
//     net.set_faults({.p_drop = 0.05, .p_duplicate = 0.02, .delay_max = 20ms});
//     net.send(client, server, [] { ... });
//
// A message that has arrived at a paused node waits there until the node runs again. What a node
// sent before it was killed still arrives. A function that is never delivered is destroyed without
// being called. Single-threaded.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/world.hpp"

namespace trinco::sim {

struct net_faults {
    double p_drop = 0;       // the message is lost
    double p_duplicate = 0;  // it arrives twice, with two delays; both are drawn for loss alone
    boot_clock::duration delay_min = std::chrono::microseconds(100);
    boot_clock::duration delay_max = std::chrono::milliseconds(2);
    double p_slow = 0;  // a share of messages takes up to slow_max instead: the long tail
    boot_clock::duration slow_max = std::chrono::seconds(1);
};

class network {
public:
    // The world must not run any more once it is gone.
    explicit network(world& w) : world_(w) {}
    network(const network&) = delete;
    network& operator=(const network&) = delete;

    // Of every message sent from now on.
    void set_faults(const net_faults& f) noexcept { faults_ = f; }
    [[nodiscard]] const net_faults& faults() const noexcept { return faults_; }

    // `deliver` runs on `to` as often as the faults allow: never, once or twice. So it must not
    // give away what it owns. A killed node sends nothing.
    void send(node& from, node& to, unique_function<void()> deliver);

    // Messages of this direction are lost until heal(), also those under way.
    void cut(const node& from, const node& to);
    // Both directions.
    void partition(const node& a, const node& b);
    // Ends a cut and a clog of this direction; what waits for its time goes on waiting.
    void restore(const node& from, const node& to);
    // Messages of this direction wait until that time and then go on: a stalled connection, whose
    // sender retransmits. A longer clog under way stays.
    void clog(const node& from, const node& to, boot_clock::time_point until);
    // Ends cuts and clogs (a message that is held by a clog still waits for its time), and sets
    // harmless faults: no loss, no duplicates, the delays' lower part only.
    void heal();

    // All connections of the node, or of the pair, break: what is under way either way, or has
    // arrived at a paused node, is lost, and whoever asked by on_break is told.
    void break_connections(const node& of);
    void break_connections(const node& a, const node& b);

    // Tells `at` each time that its connection with `peer` breaks, until the op goes.
    [[nodiscard]] op on_break(node& at, const node& peer, unique_function<void()> told);

    // Grows with each break of the connection of the pair: two equal readings mean that what was
    // sent between them travelled on one connection.
    [[nodiscard]] std::uint64_t connection(const node& a, const node& b) const;

    [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
    [[nodiscard]] std::uint64_t duplicated() const noexcept { return duplicated_; }

private:
    using link = std::pair<const node*, const node*>;  // looked up only, never walked in order
    struct listener {
        node* at;
        const node* peer;
        std::shared_ptr<unique_function<void()>> told;
    };
    // Shared by its two copies.
    struct message {
        node& from;
        node& to;
        std::uint64_t sent_on;  // connection
        unique_function<void()> deliver;
    };

    void deliver_one(const std::shared_ptr<message>& m);
    void arrive(std::shared_ptr<message> m);
    void tell(const node& a, const node* b);
    [[nodiscard]] static link pair_of(const node& a, const node& b) noexcept;

    world& world_;
    net_faults faults_;
    std::map<link, bool> cut_;
    std::map<link, boot_clock::time_point> clogged_;
    std::map<link, std::uint64_t> pair_breaks_;
    std::map<const node*, std::uint64_t> node_breaks_;
    std::map<std::uint64_t, listener> listeners_;  // by number: in the order of asking
    std::uint64_t next_listener_ = 1;
    std::uint64_t sent_ = 0;
    std::uint64_t dropped_ = 0;
    std::uint64_t duplicated_ = 0;
    std::shared_ptr<network*> self_ = std::make_shared<network*>(this);
};

}  // namespace trinco::sim
