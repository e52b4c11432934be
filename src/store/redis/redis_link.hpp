// A connection to one Redis server that keeps itself up, and carries requests in a pipeline.
//
// The rules of core/loop.hpp hold: the loop's thread; a completion runs later and at most once;
// dropping the op drops the interest, and what was sent stays sent.
//
// Answers      Every request is answered exactly once, unless its op or the link is destroyed: with
//              the server's reply (also one of its errors), or with an error:
//                errc::unavailable      its deadline passed before it was sent; see keep_unsent
//                errc::unknown_outcome  it was sent, and then its deadline passed or the connection
//                                       ended: it may have happened
//                errc::denied           the server does not let us in (see steps); not sent
//                errc::busy             a bound of the options is reached; not sent
//                errc::invalid          there are no bytes
//              The link repeats nothing. What was not sent yet waits for the next connection.
// Deadlines    A deadline that passes leaves the connection alone: the late reply is thrown away,
//              and those behind it reach their requests. Only a server from which nothing at all
//              came for `stuck_after`, while a reply is due, costs the connection.
// Coming back  after a wait with full jitter (core/backoff.hpp, up to 1 s), and at once for a new
//              request, though not more often than every `demand_pause`. After `denied` there is no
//              hurry: only every `denied_retry`.
// Events       The owner learns when the connection is up and when it is not any more, in order.
//              After an interruption there may be another server, or one that lost its data.
// Subscribing  With `heard`, messages (message, pmessage, smessage) go there, and so does what
//              nobody asked for. Without, the latter ends the connection.
// Waiting      A message that `may_wait` says may wait is given to `heard` `held_for` later, and so
//              is what comes meanwhile, unless something comes that may not: then all of it is, in
//              its order, at once, and so it is before the end that shows in reading. A connection
//              that is given up loses what waits.
// Destruction  closes the connection; nothing runs any more. It may happen in any of our callbacks,
//              and must come before the end of the loop and of the factory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "core/backoff.hpp"
#include "core/loop.hpp"
#include "net/stream_factory.hpp"
#include "store/redis/redis_steps.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

// Where the server is now, or why nobody knows.
using redis_found = std::variant<stream_address, redis_refusal>;
// Asked before every attempt to connect. Completes by the deadline, later, at most once.
using redis_finder = std::function<op(deadline, unique_function<void(redis_found)>)>;
// Asked before a connection is up; nothing: it may be. As above.
using redis_admission =
    std::function<op(deadline, unique_function<void(std::optional<redis_refusal>)>)>;

struct redis_link_options {
    std::vector<redis_step> steps = {};
    std::chrono::milliseconds connect_within{1'000};  // with the steps
    redis_finder find = {};                           // empty: it stays where it is
    std::chrono::milliseconds find_within{1'000};     // before connect_within
    std::function<bool()> doubted = {};               // after the steps: whether to ask `admit`
    redis_admission admit = {};
    std::chrono::milliseconds admit_within{500};  // of connect_within
    std::chrono::milliseconds stuck_after{1'000};
    std::chrono::milliseconds ping_after{0};  // of silence; finds a peer that is gone; 0: never
    std::chrono::milliseconds demand_pause{20};
    std::chrono::milliseconds denied_retry{5'000};
    backoff retry{std::chrono::milliseconds(50), std::chrono::milliseconds(1'000)};
    // false: what was not sent when an attempt or the connection ends is answered `unavailable`
    // then, for who knows another server to ask.
    bool keep_unsent = true;
    // Of a message's payload, before anything else is done with it. Must not touch the link.
    std::function<bool(std::string_view)> may_wait = {};
    std::chrono::milliseconds held_for{3};
    std::size_t requests_most = 10'000;         // without an answer
    std::size_t bytes_most = 32 * 1024 * 1024;  // not yet sent
    resp_limits limits = {};
};

struct redis_link_event {
    bool up = false;
    bool again = false;    // up, and not for the first time: see Events
    redis_refusal reason;  // of not being up
};

// Since the beginning, over all connections.
struct link_traffic {
    std::uint64_t requests = 0;  // sent, without steps
    std::uint64_t bytes_out = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t reconnects = 0;

    constexpr link_traffic& operator+=(const link_traffic& more) noexcept {
        requests += more.requests;
        bytes_out += more.bytes_out;
        bytes_in += more.bytes_in;
        reconnects += more.reconnects;
        return *this;
    }
};

class redis_link {
public:
    using on_event = unique_function<void(const redis_link_event&)>;
    using on_message = unique_function<void(resp_reply)>;

    // Begins to connect.
    redis_link(loop& on, stream_factory& streams, stream_address to, redis_link_options options,
               on_event changed = {}, on_message heard = {});
    ~redis_link();
    redis_link(const redis_link&) = delete;
    redis_link& operator=(const redis_link&) = delete;

    // `command` as resp_command writes it: one command, to which one reply comes.
    [[nodiscard]] op request(std::string command, deadline by, completion<resp_reply> done);
    // Gives the connection up and makes a new one, to another address when one is given: the server
    // said that it is not the right one (READONLY, LOADING ...).
    void reconnect(redis_refusal reason, std::optional<stream_address> elsewhere = {});
    // As a new request does: the next attempt is made now, if it may.
    void wake();
    [[nodiscard]] bool up() const noexcept;
    // Whether somebody waits for the reply to what was sent.
    [[nodiscard]] bool awaits() const noexcept;
    [[nodiscard]] link_traffic traffic() const noexcept;
    // The address of the last attempt, or of the next one where nobody is asked for it.
    [[nodiscard]] const stream_address& where() const noexcept;

private:
    struct impl;
    std::shared_ptr<impl> impl_;
};

}  // namespace trinco::detail
