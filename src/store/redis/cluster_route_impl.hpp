// The parts of the way to a cluster, for its own files only: cluster_route.cpp has the requests,
// cluster_route_map.cpp the questions for the map, cluster_route_nodes.cpp the connections.
#pragma once

#include <bitset>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/backoff.hpp"
#include "store/redis/cluster_map.hpp"
#include "store/redis/redis_link.hpp"
#include "store/redis/redis_route.hpp"
#include "store/redis/server_life.hpp"

namespace trinco::detail {

// Of the servers at one address. It outlives the connection, which is closed when it is idle.
struct cluster_life {
    server_life life;
    bool is_another = false;  // and that has not been told yet
};

struct cluster_node {
    stream_address at;
    std::optional<redis_link> link;
    cluster_life* life = nullptr;
    bool serving = false;  // up, as far as we were told
    bool denied = false;
    bool doubted = false;  // until the map has been asked for
    std::string why;       // it does not serve
    std::size_t in_flight = 0;
    boot_clock::time_point used{};
};

struct cluster_request {
    std::uint64_t number = 0;  // in the order of coming
    std::string command;
    unsigned slot = 0;
    deadline by;
    completion<resp_reply> done;
    std::optional<stream_address> ask_at;  // next, instead of the owner
    unsigned detours = 0;
    cluster_node* at = nullptr;  // handed to its connection
    op timer;
    op asking;
    op sent;
};

struct cluster_route_impl : std::enable_shared_from_this<cluster_route_impl> {
    using request_ptr = std::shared_ptr<cluster_request>;
    using event_kind = route_event::kind_t;

    cluster_route_impl(loop& l, stream_factory& s, redis_target t, redis_route::on_event c);

    // Runs later, unless the route is gone by then.
    template <class F>
    void later(F f) {
        on.post([weak = weak_from_this(), f = std::move(f)]() mutable {
            if (const auto self = weak.lock(); self && !self->gone) f(*self);
        });
    }

    // ---- requests
    op request(std::string_view key, std::string command, deadline by, completion<resp_reply> done);
    void go(const request_ptr& r);
    void send(const request_ptr& r, cluster_node& to);
    void answered(const request_ptr& r, std::error_code error, resp_reply reply);
    void redirect(const request_ptr& r, const redirection& there);
    void try_later(const request_ptr& r);
    void wait(const request_ptr& r);
    void stop_waiting(cluster_request& r);
    void go_all();  // that wait, and can
    void finish(cluster_request& r, std::error_code error, resp_reply reply = {});
    void fail_later(const request_ptr& r, std::error_code error);
    void drop(cluster_request& r);
    [[nodiscard]] cluster_node* node_for(const cluster_request& r);

    // ---- the map
    void want_map();
    void hurry();  // somebody waits for the first map
    void mistrust(std::string_view key, redis_refusal why);
    void ask_for_map();
    void ask_next();
    void map_came(cluster_node& from, std::error_code error, const resp_reply& reply);
    void nobody_answered();
    void adopt(cluster_map made);
    [[nodiscard]] std::deque<stream_address> whom_to_ask();

    // ---- nodes
    cluster_node& node_at(const stream_address& where);
    [[nodiscard]] redis_link_options greeting() const;
    void node_changed(cluster_node& n, const redis_link_event& e);
    void forget_idle_nodes();
    void make_room();
    cluster_life& life_at(const stream_address& where);
    void retire(std::map<std::string, std::unique_ptr<cluster_node>>::iterator n);
    [[nodiscard]] bool owns_slots(const stream_address& where) const;
    void judge(const redis_refusal& why);
    void tell(route_event e);

    void listen(std::string name, redis_route::on_message h, redis_route::may_wait wait);
    void begin_hearing();
    void move_hearing();
    [[nodiscard]] stream_address next_to_hear();

    [[nodiscard]] bool up(std::string_view key) const;
    [[nodiscard]] bool awaits() const;
    [[nodiscard]] route_traffic traffic() const;
    void close();

    loop& on;
    stream_factory& streams;
    const redis_target target;
    redis_route::on_event changed;
    redis_route::on_message heard;
    redis_route::may_wait heard_may_wait;
    bool gone = false;

    std::uint64_t requests = 0;
    std::map<std::uint64_t, request_ptr> waiting;
    std::size_t waiting_bytes = 0;
    std::bitset<redis_slots> used;  // slots that were ever asked for

    std::optional<cluster_map> map;
    bool asking_for_map = false;
    bool map_wanted_again = false;
    bool map_timer_set = false;
    bool denied = false;        // nobody says where what is
    std::uint32_t in_vain = 0;  // rounds of asking, in a row
    std::uint32_t doubts = 0;
    boot_clock::time_point last_doubt{};
    boot_clock::time_point last_round{};
    std::deque<stream_address> to_ask;  // in this round
    bool all_denied = true;             // in this round
    std::string said;                   // in this round
    op map_timer;
    op map_asking;

    std::map<std::string, cluster_life> lives;  // by address; of all nodes, and of some before
    std::map<std::string, std::unique_ptr<cluster_node>> nodes;
    op sweeping;
    link_traffic retired;  // of connections that are no more
    std::uint64_t redirections = 0;
    bool told_up = false;
    bool is_another = false;  // to be told when up

    std::string channel;
    std::optional<redis_link> hearing;
    std::size_t next_hearing = 0;
};

}  // namespace trinco::detail
