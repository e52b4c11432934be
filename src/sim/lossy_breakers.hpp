// The store of breakers at the other end of a simulated network: the real record, behind everything
// that happens to messages, connections and servers.
//
// lossy_breaker_server is the server's process on its node; lossy_breakers is the store that one
// instance on its node has opened. Requests and replies are messages of sim::network: late, lost,
// doubled, overtaken. A request without an answer completes at its deadline with unknown_outcome,
// whether it was carried out or not; while the server is known to be down, at once with
// unavailable.
//
// Connections  A restart (from nothing, or from an older snapshot), a fail-over and a crash break
//              all connections: requests and replies under way are lost, their callers told
//              (unknown_outcome), and each client gets `new_server` before any later request of it
//              is answered; `gap` when the connection alone broke. flush_all() empties the server
//              and tells nobody.
// Notices      travel in order over the connection, or not at all: one that got lost shows as a
//              hole before the next one or in the server's heartbeat, and becomes a gap.
// Clock        The server's: world time, plus an offset that a fail-over may set back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/network.hpp"
#include "sim/world.hpp"
#include "store/breaker_store.hpp"
#include "store/memory/memory_breakers.hpp"

namespace trinco::sim {

class lossy_breakers;

class lossy_breaker_server {
public:
    using rows = detail::memory_breaker_server::rows;

    lossy_breaker_server(world& w, network& net, node& at);
    ~lossy_breaker_server();
    lossy_breaker_server(const lossy_breaker_server&) = delete;
    lossy_breaker_server& operator=(const lossy_breaker_server&) = delete;

    [[nodiscard]] detail::memory_breaker_server& memory() noexcept { return *memory_; }
    [[nodiscard]] node& where() noexcept { return at_; }
    // Grows with each life of the server: its run id.
    [[nodiscard]] std::uint64_t life() const noexcept { return life_; }
    [[nodiscard]] bool is_down() const noexcept { return down_; }
    // That have arrived, of all clients in all lives.
    [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }

    // ---- its fate
    [[nodiscard]] rows snapshot() const { return memory_->snapshot(); }
    // Another life with these data at once; `clock_back`: its clock is behind the one before.
    void restart(rows from, boot_clock::duration clock_back = {});
    // Refuses connections until start(), which begins another life.
    void crash();
    void start(rows from);
    // The client's process is gone: its connection closes.
    void hang_up(lossy_breakers& client);
    // FLUSHALL by a careless hand: the same life, no data.
    void flush_all();

private:
    friend class lossy_breakers;

    // The stream of notices to one client: numbered within one connection.
    struct stream {
        lossy_breakers& to;
        std::uint64_t connection = 0;
        std::uint64_t last = 0;
        std::uint64_t acknowledged = 0;
        op heartbeat;
    };

    void listen();
    void stop_listening();
    stream& attach(lossy_breakers& client);
    void publish(const detail::notice& n);
    void renew(stream& s);
    void beat(stream& s);
    world& world_;
    network& net_;
    node& at_;
    std::int64_t clock_offset_us_;
    std::unique_ptr<detail::memory_breaker_server> memory_;
    std::shared_ptr<detail::memory_breaker_server::listener> listener_;
    std::vector<std::unique_ptr<stream>> streams_;
    std::uint64_t life_ = 1;
    std::uint64_t requests_ = 0;
    bool down_ = false;
};

class lossy_breakers final : public detail::breaker_store {
public:
    // The server must outlive the store, as must the node.
    lossy_breakers(network& net, node& client, lossy_breaker_server& server,
                   detail::breaker_identity who);
    ~lossy_breakers() override;

    [[nodiscard]] op exchange(std::span<const detail::news> batch, detail::deadline by,
                              detail::completion<std::vector<detail::verdict>> done) override;
    [[nodiscard]] op look(const detail::look_request& request, detail::deadline by,
                          detail::completion<detail::glance> done) override;
    [[nodiscard]] op probe(const detail::probe_request& request, detail::deadline by,
                           detail::completion<detail::probe_reply> done) override;
    [[nodiscard]] op control(const detail::control_request& request, detail::deadline by,
                             detail::completion<detail::view> done) override;
    [[nodiscard]] op inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                             detail::deadline by, detail::completion<detail::page> done) override;
    [[nodiscard]] op subscribe(unique_function<void(const detail::notice&)> on_notice) override;
    void foretell(unique_function<bool(const detail::opening&)> on_opening) override;
    [[nodiscard]] op stop(detail::deadline by, detail::completion<int> done) override;

private:
    friend class lossy_breaker_server;
    using notice_ptr = std::shared_ptr<const detail::notice>;

    // A request on its way; finish() completes it once.
    struct pending {
        virtual ~pending() = default;
        virtual void fail(std::error_code ec) = 0;
        virtual void forget() = 0;     // whoever waits is gone
        void leave() noexcept;         // it is not under way any more
        lossy_breakers* of = nullptr;  // null: has left
        std::uint64_t connection = 0;
        op timer;
    };
    template <class T>
    struct pending_call;

    // What the server answers; run there, possibly twice.
    template <class T, class Serve>
    [[nodiscard]] op call(std::error_code error, detail::deadline by, detail::completion<T> done,
                          Serve serve);
    void broke();
    void arrived(std::uint64_t connection, std::uint64_t number, const notice_ptr& n);
    void beaten(std::uint64_t connection, std::uint64_t number);
    void look_for_holes();
    void give_up_on_holes();
    void tell(const detail::notice& n);
    [[nodiscard]] bool may_wait(const detail::notice& n);
    void tell_waiting();

    network& net_;
    node& client_;
    lossy_breaker_server& server_;
    detail::breaker_identity who_;
    std::vector<std::shared_ptr<pending>> calls_;  // in the order of asking
    lossy_breaker_server::stream* stream_;         // null: hung up
    std::shared_ptr<unique_function<void(const detail::notice&)>> subscriber_;
    unique_function<bool(const detail::opening&)> on_opening_;
    std::vector<detail::notice> waiting_;  // told a moment after their opening was foretold
    op waiting_timer_;
    op break_watch_;
    std::uint64_t known_life_ = 0;

    // The stream's receiving end.
    std::uint64_t expected_ = 1;
    std::uint64_t highest_beat_ = 0;
    std::map<std::uint64_t, notice_ptr> held_;  // arrived before their predecessors
    bool waits_for_hole_ = false;
    op hole_timer_;
    std::shared_ptr<lossy_breakers*> self_ = std::make_shared<lossy_breakers*>(this);
};

}  // namespace trinco::sim
