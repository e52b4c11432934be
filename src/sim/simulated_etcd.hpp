// A cluster of etcd on the simulated loop: what of its v3 API the locks use, and what goes wrong
// with it. One store with revisions, transactions, leases, watches with history, compaction;
// several members, through which it is reached.
//
//     sim::simulated_etcd etcd(w, net, 3);
//     sim::simulated_etcd_client link(client_node, etcd);     // an etcd::rpc
//
// A member that is paused (sim::node) does later what it was asked: a write that timed out lands.
// Leases end by virtual time, at the next look of the leader (every 500 ms), never sooner than
// their TTL; a new leader grants every one its whole TTL again. As in etcd nothing that is asked of
// a member without a leader is done.
//
// Single-threaded. The cluster must outlive the world's events.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "sim/network.hpp"
#include "sim/world.hpp"
#include "store/etcd/etcd_messages.hpp"

namespace trinco::sim {

// What hears of changes: watches of clients, told after each.
class etcd_listener {
public:
    virtual ~etcd_listener() = default;
    virtual void changed() = 0;
};

class simulated_etcd {
public:
    using txn_request = detail::etcd::txn_request;
    using txn_reply = detail::etcd::txn_reply;
    using key_value = detail::etcd::key_value;
    template <class T>
    struct answer {
        std::error_code error;
        T value{};
    };

    simulated_etcd(world& w, network& net, std::size_t members);
    simulated_etcd(const simulated_etcd&) = delete;
    simulated_etcd& operator=(const simulated_etcd&) = delete;

    [[nodiscard]] network& net() const noexcept { return net_; }
    [[nodiscard]] const std::vector<node*>& members() const noexcept { return members_; }

    // Requests, as the leader carries them out. `lost`: a lease that does not exist.
    answer<txn_reply> txn(const txn_request& what);
    answer<detail::etcd::lease_reply> grant(std::chrono::seconds ttl);
    void revoke(std::int64_t lease);
    answer<std::chrono::seconds> keep_alive(std::int64_t lease);
    detail::etcd::lease_facts facts(std::int64_t lease, bool with_keys);
    // All events of the watched keys from `next` on, and up to which revision; nullopt: compacted.
    std::optional<detail::etcd::watch_news> news(const detail::etcd::watch_request& what,
                                                 std::int64_t next);

    // What goes wrong, or an operator does.
    void compact();
    // Nothing is carried out until then; afterwards a new leader, and leases begin anew.
    void lose_leader(boot_clock::duration how_long);
    [[nodiscard]] bool has_leader() const noexcept { return world_.now() >= leader_again_; }
    // Another one leads from now on, which the old one does not know for so long. What etcd answers
    // without asking a majority, facts about leases, is what the old one knew.
    void depose_leader(boot_clock::duration unknown_for);
    // The state of before, revisions included; leases begin anew.
    void take_snapshot() { snapshot_ = state_; }
    void restore_snapshot();
    // The next transaction that puts something fills it: that one is carried out, and those behind
    // it are not, until there is room again; all are told the same.
    void fill_up() noexcept { space_ = space::filling; }
    void is_full() noexcept { space_ = space::none; }
    void make_room() noexcept { space_ = space::enough; }
    // The next events reach no watch, as with the bugs of servers that lose them.
    void lose_events(std::size_t how_many) noexcept { losing_ = how_many; }

    // For tests: what is there, what was asked.
    [[nodiscard]] std::int64_t revision() const noexcept { return state_.revision; }
    [[nodiscard]] const std::map<std::string, key_value>& keys() const noexcept {
        return state_.keys;
    }
    [[nodiscard]] std::vector<std::int64_t> leases() const;
    [[nodiscard]] boot_clock::duration left(std::int64_t lease) const;
    [[nodiscard]] std::uint64_t reads() const noexcept { return reads_; }
    [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }

    void listen(etcd_listener& who) { listeners_.push_back(&who); }
    void forget(etcd_listener& who) { std::erase(listeners_, &who); }
    // Whether this request came before: a connection delivers nothing twice.
    [[nodiscard]] bool seen_before(std::uint64_t request) { return !seen_.insert(request).second; }
    [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers_; }

private:
    struct lease {
        std::chrono::seconds ttl{0};
        boot_clock::time_point ends;
        std::set<std::string> keys;
    };
    struct state {
        std::int64_t revision = 1;
        std::int64_t compacted = 0;
        std::map<std::string, key_value> keys;
        std::vector<detail::etcd::watch_event> history;
        std::map<std::int64_t, lease> leases;
    };
    using kv_iterator = std::map<std::string, key_value>::const_iterator;

    [[nodiscard]] std::pair<kv_iterator, kv_iterator> find(
        const detail::etcd::key_range& keys) const;
    [[nodiscard]] bool holds(const detail::etcd::comparison& c) const;
    answer<txn_reply> carry_out(const txn_request& what);
    detail::etcd::operation_reply range(const detail::etcd::range_request& what);
    void put(const detail::etcd::put_request& what, std::int64_t at);
    std::int64_t erase(const detail::etcd::key_range& keys, std::int64_t at);
    void note(detail::etcd::watch_event event);
    void tell();
    void look_at_leases();
    void renew_all();

    world& world_;
    network& net_;
    std::vector<node*> members_;
    state state_;
    state snapshot_;
    std::int64_t next_lease_ = 0x1000;
    boot_clock::time_point leader_again_{};
    boot_clock::time_point deposed_until_{};
    std::map<std::int64_t, lease> deposed_knows_;
    enum class space : std::uint8_t { enough, filling, none };
    space space_ = space::enough;
    std::size_t losing_ = 0;
    std::set<std::int64_t> lost_events_;     // revisions
    std::vector<etcd_listener*> listeners_;  // in the order of coming
    std::set<std::uint64_t> seen_;
    std::uint64_t numbers_ = 0;
    std::uint64_t reads_ = 0;
    std::uint64_t writes_ = 0;
};

}  // namespace trinco::sim
