// A conversation with one Redis server, for a command that waits: connects, logs in, asks.
//
// It asks what no store asks (INFO, CONFIG, ACL ...), so it has a connection of its own.
// Threads: one, not the loop's. Errors are values. Both references must outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "net/event_loop.hpp"
#include "net/stream_factory.hpp"
#include "store/redis/redis_link.hpp"

namespace trinco::program::doctor {

struct told {
    std::error_code error;  // no reply came; of errc and std::errc
    trinco::detail::resp_reply reply = {};
    std::chrono::nanoseconds took{0};  // from sending to reading, without our own threads

    // A reply that is no error of the server.
    [[nodiscard]] bool good() const noexcept {
        return !error && !reply.is(trinco::detail::resp_reply::kind_t::error);
    }
    // "NOPERM", or empty.
    [[nodiscard]] std::string_view refusal() const noexcept {
        return error ? std::string_view() : reply.error_word();
    }
};

// Whether a TCP connection, or one to the socket, can be made at all, without TLS; how long that
// took.
struct knock {
    std::error_code error;
    std::chrono::nanoseconds took{0};
};
[[nodiscard]] knock knock_at(trinco::detail::event_loop& on, trinco::detail::stream_factory& by,
                             trinco::detail::stream_address where, std::chrono::milliseconds limit);

class server_talk {
public:
    using milliseconds = std::chrono::milliseconds;

    server_talk(trinco::detail::event_loop& on, trinco::detail::stream_factory& streams,
                trinco::detail::stream_address where,
                std::vector<trinco::detail::redis_step> steps);
    ~server_talk();
    server_talk(const server_talk&) = delete;
    server_talk& operator=(const server_talk&) = delete;

    // Waits until the connection is up; or why the first attempt failed. Once.
    [[nodiscard]] std::optional<trinco::detail::redis_refusal> reach(milliseconds limit);
    [[nodiscard]] told ask(const std::vector<std::string>& words,
                           milliseconds limit = milliseconds(2'000));

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace trinco::program::doctor
