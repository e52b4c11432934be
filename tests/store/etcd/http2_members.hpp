// Members of etcd behind byte streams on virtual time: each connection has a server of HTTP/2,
// which a test lets answer.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "http2_peer.hpp"
#include "tests/store/redis/scripted_server.hpp"

namespace trinco::detail::test {

class http2_members {
public:
    explicit http2_members(loop& on) : streams(std::make_unique<scripted_server>(on)) {
        all = streams.get();
        all->heard = [this](scripted_wire& wire) { hear(wire); };
    }

    // The server's side of the connection that was made as the nth.
    [[nodiscard]] http2_peer& peer(std::size_t n) {
        while (peers.size() <= n) peers.push_back(std::make_unique<http2_peer>(settings));
        return *peers[n];
    }
    [[nodiscard]] http2_peer& last() { return peer(all->wires.size() - 1); }
    [[nodiscard]] scripted_wire& wire(std::size_t n) { return *all->wires.at(n); }
    // What the servers have to say goes out.
    void say() {
        const auto wires = all->wires;  // whoever is told may end the transport, which has them
        for (std::size_t n = 0; n < wires.size(); ++n) {
            auto bytes = is_silent ? std::string() : peer(n).take();
            if (!bytes.empty()) wires[n]->say(std::move(bytes));
        }
    }

    std::unique_ptr<scripted_server> streams;  // for the transport
    scripted_server* all = nullptr;
    peer_settings settings;  // of those that come
    bool is_silent = false;

private:
    void hear(scripted_wire& wire) {
        for (std::size_t n = 0; n < all->wires.size(); ++n) {
            if (all->wires[n].get() == &wire) peer(n).feed(std::exchange(wire.came, {}));
        }
        say();
    }

    std::deque<std::unique_ptr<http2_peer>> peers;
};

}  // namespace trinco::detail::test
