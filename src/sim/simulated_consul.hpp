// A cluster of Consul on the simulated loop: what of its API the locks use, and what goes wrong
// with it. One store of keys with indexes and transactions, and sessions; several servers, through
// which it is reached.
//
//     sim::simulated_consul consul(w, net, 3);
//     sim::simulated_consul_client link(client_node, consul);     // a consul::rpc
//
// A server that is paused (sim::node) does later what it was asked: a write that timed out lands.
// Sessions end by virtual time, between one TTL and two after they were last renewed; a new leader
// gives every one two TTLs again. Each server has lock-delays of its own, which begin anew when it
// does, and the leader's alone count. Nothing that is asked of a server without a leader is done.
//
// The rights of who asks, the size of a request and paths that the server would clean are looked at
// as Consul does; of rights there is one set for all.
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
#include "store/consul/consul_messages.hpp"

namespace trinco::sim {

// What hears of changes: watches of clients, told after each.
class consul_listener {
public:
    virtual ~consul_listener() = default;
    virtual void changed() = 0;
    // A change that no watch is told.
    virtual void missed() {}
    // What it was told last is all that it is told until then.
    virtual void deafen(boot_clock::time_point until) { (void)until; }
};

class simulated_consul {
public:
    using txn_request = detail::consul::txn_request;
    using txn_reply = detail::consul::txn_reply;
    using key_value = detail::consul::key_value;
    template <class T>
    struct answer {
        std::error_code error;
        T value{};
    };

    simulated_consul(world& w, network& net, std::size_t servers);
    simulated_consul(const simulated_consul&) = delete;
    simulated_consul& operator=(const simulated_consul&) = delete;

    [[nodiscard]] network& net() const noexcept { return net_; }
    [[nodiscard]] const std::vector<node*>& servers() const noexcept { return nodes_; }

    // Requests, as the leader carries them out.
    answer<txn_reply> txn(const txn_request& what);
    // Unless it is consistent, by whoever takes itself for the leader.
    [[nodiscard]] answer<detail::consul::read_reply> read(
        const detail::consul::read_request& what) const;
    [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;
    answer<std::string> create(const detail::consul::session_request& what);
    answer<std::chrono::seconds> renew(const std::string& session);
    void destroy(const std::string& session);
    [[nodiscard]] std::optional<detail::consul::session_facts> facts(
        const std::string& session) const;
    [[nodiscard]] std::vector<detail::consul::session_facts> sessions() const;

    // What goes wrong, or an operator does.
    // Nothing is carried out until then; afterwards another server leads, and sessions begin anew.
    void lose_leader(boot_clock::duration how_long);
    [[nodiscard]] bool has_leader() const noexcept { return world_.now() >= leader_again_; }
    // Another one leads from now on, which the old one does not know for so long: what is asked
    // without a majority, and renewals, are answered by it as if nothing had happened since.
    void depose_leader(boot_clock::duration unknown_for);
    // It applies its log again, and leads again: all lock-delays that ever were begin anew, and so
    // do sessions.
    void restart_leader();
    // The state of before, indexes included; sessions begin anew, and some watches are deaf.
    void take_snapshot() { snapshot_ = state_; }
    void restore_snapshot();
    // That share of those who watch hears nothing for so long, as after a snapshot was restored.
    void deafen(boot_clock::duration how_long, double share = 1);
    // The next changes are told to no watch; who watches is told without any.
    void lose_news(std::size_t how_many) noexcept { losing_ = how_many; }
    void tell_nothing_new() { tell(); }
    // From now on nobody may do that: to keys that begin so, as far as one is named.
    struct forbidden {
        std::optional<std::string> write = {};
        std::optional<std::string> read = {};
        bool sessions = false;  // making and renewing them
    };
    void forbid(forbidden what) { forbidden_ = std::move(what); }

    // For tests: what is there, what was asked.
    [[nodiscard]] std::uint64_t index() const noexcept { return state_.index; }
    [[nodiscard]] const std::map<std::string, key_value>& all() const noexcept {
        return state_.keys;
    }
    [[nodiscard]] boot_clock::duration left(const std::string& session) const;
    // Whether the leader keeps this key from everybody at present.
    [[nodiscard]] bool delays(const std::string& key) const;
    [[nodiscard]] std::uint64_t reads() const noexcept { return reads_; }
    [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }

    void listen(consul_listener& who) { listeners_.push_back(&who); }
    void forget(consul_listener& who) { std::erase(listeners_, &who); }
    // Whether this request came before: a connection delivers nothing twice.
    [[nodiscard]] bool seen_before(std::uint64_t request) { return !seen_.insert(request).second; }
    [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers_; }

private:
    struct session {
        detail::consul::session_facts facts;
        boot_clock::time_point ends;
    };
    struct state {
        std::uint64_t index = 1;
        std::map<std::string, key_value> keys;
        std::map<std::string, session> sessions;
    };

    using refusal = std::optional<detail::consul::refused>;
    refusal carry_out(const detail::consul::operation& what, state& on, std::uint64_t at,
                      std::vector<key_value>& rows);
    refusal lock(const detail::consul::operation& what, state& on, std::uint64_t at,
                 std::vector<key_value>& rows);
    refusal check(const detail::consul::operation& what, const state& on,
                  std::vector<key_value>& rows) const;
    static void set(const detail::consul::operation& what, state& on, std::uint64_t at,
                    std::vector<key_value>& rows, bool keeps_lock_index = false);
    [[nodiscard]] const state& told_by_leader() const noexcept {
        return world_.now() < deposed_until_ ? deposed_knows_ : state_;
    }
    [[nodiscard]] bool may_read(const std::string& key) const {
        return !forbidden_.read || !key.starts_with(*forbidden_.read);
    }
    [[nodiscard]] refusal refused_before(const detail::consul::operation& what) const;
    void end(const std::string& session);
    void begin_sessions_anew();
    void tell();
    void look_at_sessions();
    void lead_anew();

    world& world_;
    network& net_;
    std::vector<node*> nodes_;
    state state_;
    state snapshot_;
    std::vector<std::map<std::string, boot_clock::time_point>> delays_;  // of each server
    std::map<std::string, boot_clock::duration> logged_delays_;          // of the last end
    forbidden forbidden_;
    std::size_t leader_ = 0;
    boot_clock::time_point leader_again_{};
    boot_clock::time_point deposed_until_{};
    state deposed_knows_;
    std::size_t losing_ = 0;
    std::vector<consul_listener*> listeners_;  // in the order of coming
    std::set<std::uint64_t> seen_;
    std::uint64_t numbers_ = 0;
    std::uint64_t next_session_ = 1;
    mutable std::uint64_t reads_ = 0;
    std::uint64_t writes_ = 0;
};

}  // namespace trinco::sim
