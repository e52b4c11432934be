// The client's side of one connection of HTTP/2: bytes in, bytes out.
//
//     client.begin(stream, head);      // a request; its body comes by send()
//     write(client.take());            // after each call that may have made something due
//     client.feed(bytes);              // what came, however it is cut
//     if (client.is_over()) ...        // write what take() has left, and close
//
// Telling      Streams are told in feed() and take(), which nothing that is told may call; nor may
//              it destroy the client. It may begin, send and cancel.
// Peer         The first thing that it says must be its settings: who speaks something else is
//              known by that. What is said against the rules of the protocol ends the connection.
// Windows      A stream may send us 1 MiB ahead, all of them together 4 MiB; what came is taken,
//              and room is made anew, without being asked. What we send waits for the peer's room.
// Bounds       Fields of one head are at most 16 KiB, and the stream ends otherwise. Streams over
//              the number that the peer allows wait. A peer that floods us with pings or settings
//              ends the connection. Nothing is pushed.
// Threads: one at a time an object. Never throws but for lack of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trinco::detail {

struct http2_field {
    std::string_view name;  // in small letters
    std::string_view value;
};

// Of the protocol, those that mean something to us.
enum class http2_code : std::uint32_t {
    none = 0,
    protocol = 1,
    internal = 2,
    refused_stream = 7,
    cancel = 8,
    enhance_your_calm = 11,
    inadequate_security = 12,
    http_1_1_required = 13,
};
// "REFUSED_STREAM".
[[nodiscard]] std::string http2_code_name(http2_code code);

struct http2_end {
    enum class kind_t : std::uint8_t {
        complete,  // all that the peer has to say has come
        refused,   // the peer says that it did nothing about it, or was never told
        reset,     // the peer gave it up, or broke the rules
        too_large  // its fields; we gave it up
    };
    kind_t kind = kind_t::complete;
    http2_code code = http2_code::none;  // of refused and reset
};

// A request and its response. Must stay until it has ended or was cancelled.
class http2_stream {
public:
    http2_stream() = default;
    http2_stream(const http2_stream&) = delete;
    http2_stream& operator=(const http2_stream&) = delete;
    virtual ~http2_stream() = default;

    // Of the head, and behind the data of the trailers.
    virtual void on_field(std::string_view name, std::string_view value) = 0;
    virtual void on_fields_end() = 0;
    virtual void on_data(std::string_view bytes) = 0;
    virtual void on_end(http2_end how) = 0;  // the last

    // All of it, with its end, has been given out by take().
    [[nodiscard]] bool was_sent() const noexcept { return sent_; }

private:
    friend class http2_client;
    std::int32_t id_ = 0;
    std::deque<std::string> out_;
    std::size_t out_from_ = 0;  // of the first of them
    bool ends_ = false;         // nothing follows what is in out_
    bool waits_ = false;        // the protocol's side has nothing to send
    bool begun_ = false;        // its head was given out
    bool sent_ = false;
};

struct http2_fault {
    enum class kind_t : std::uint8_t { http1, not_http2, broken };
    kind_t kind = kind_t::broken;
    std::string sentence;
};

struct http2_goodbye {
    http2_code code = http2_code::none;
    std::string text;
};

class http2_client {
public:
    http2_client();
    http2_client(const http2_client&) = delete;
    http2_client& operator=(const http2_client&) = delete;
    ~http2_client();

    // False: no stream can begin on this connection any more.
    [[nodiscard]] bool begin(http2_stream& stream, std::span<const http2_field> head);
    // In order. `last`: nothing follows.
    void send(http2_stream& stream, std::string bytes, bool last);
    // It is told nothing more, and may go.
    void cancel(http2_stream& stream);
    void ping();

    void feed(std::string_view bytes);
    // What is to be written next, at most about so many bytes; empty: nothing now.
    [[nodiscard]] std::string take(std::size_t most = 256 * 1024);

    // The peer's settings have come.
    [[nodiscard]] bool is_ready() const noexcept;
    // The peer wants no new streams; those that it has not begun have ended as refused.
    [[nodiscard]] const std::optional<http2_goodbye>& goodbye() const noexcept;
    // Nothing follows but what take() has. After a fault streams that are left are told nothing.
    [[nodiscard]] bool is_over() const noexcept;
    [[nodiscard]] const std::optional<http2_fault>& fault() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace trinco::detail
