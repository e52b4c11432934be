// Bytes to the members of a cluster of etcd and back: what gRPC does for us, and nothing more.
// Which member is asked, what is repeated and what an answer means is decided above.
//
// The rules of core/loop.hpp hold. Nothing is repeated, and there is no waiting for a member: a
// call begins to connect when it must, and fails when that fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/loop.hpp"
#include "core/unique_function.hpp"

namespace trinco::detail::etcd {

// gRPC's; the numbers are part of its protocol.
enum class wire_code : int {
    ok = 0,
    canceled = 1,
    unknown = 2,
    invalid_argument = 3,
    deadline_exceeded = 4,
    not_found = 5,
    already_exists = 6,
    permission_denied = 7,
    resource_exhausted = 8,
    failed_precondition = 9,
    aborted = 10,
    out_of_range = 11,
    unimplemented = 12,
    internal = 13,
    unavailable = 14,
    data_loss = 15,
    unauthenticated = 16,
};

struct wire_status {
    wire_code code = wire_code::ok;
    std::string text;
    [[nodiscard]] bool good() const noexcept { return code == wire_code::ok; }
};

// Connections of their own to one member, so that none holds another up.
enum class lane : std::uint8_t { requests, renewals, watches };

struct destination {
    std::size_t endpoint = 0;
    lane by = lane::requests;
};

struct wire_metadata {
    std::string token = {};     // empty: none
    bool needs_leader = false;  // a member without one refuses
};

// Ends silently with the object; what was sent stays sent.
class wire_stream {
public:
    virtual ~wire_stream() = default;
    // In order. After the end it does nothing.
    virtual void send(std::string message) = 0;
};

class transport {
public:
    virtual ~transport() = default;

    [[nodiscard]] virtual std::size_t endpoints() const noexcept = 0;
    [[nodiscard]] virtual std::string name(std::size_t endpoint) const = 0;  // "10.0.0.1:2379"

    // `method` is a string literal: "/etcdserverpb.KV/Txn".
    using on_answer = unique_function<void(wire_status, std::string reply)>;
    [[nodiscard]] virtual op call(destination to, const char* method, std::string request,
                                  wire_metadata with, deadline by, on_answer done) = 0;
    using on_message = unique_function<void(std::string)>;
    using on_end = unique_function<void(wire_status)>;  // at most once, as the last
    [[nodiscard]] virtual std::unique_ptr<wire_stream> open(destination to, const char* method,
                                                            wire_metadata with, on_message heard,
                                                            on_end ended) = 0;
    // Whether a connection is up at this moment.
    [[nodiscard]] virtual bool connected(destination to) const = 0;
    // What begins from now on gets a new connection; what is under way keeps the old one.
    virtual void renew(destination to) = 0;
    // Ends everything; completes when nothing of it is left, or at the deadline.
    [[nodiscard]] virtual op stop(deadline by, completion<int> done) = 0;
};

}  // namespace trinco::detail::etcd
