// Bytes to the members of a cluster of etcd and back, as gRPC carries them, and nothing more. Which
// member is asked, what is repeated and what an answer means is decided above.
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
#include "wire/grpc/grpc_status.hpp"

namespace trinco::detail::etcd {

using wire_code = grpc_code;

// Whose word a status is.
enum class wire_cause : std::uint8_t {
    server,       // the member's own; or the deadline passed
    not_sent,     // there was no connection, or the member did not look at it: not carried out
    broken,       // the connection ended, or the answer is of no use: perhaps carried out
    misdirected,  // not carried out, nor will it be there: no etcd, no TLS, another name
    distrusted,   // as here: a certificate is not believed, theirs or ours
};

struct wire_status {
    wire_code code = wire_code::ok;
    std::string text;  // the server's; else a sentence about it, without its name
    wire_cause by = wire_cause::server;
    bool refused = false;  // not_sent, since nobody listens there
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
