// Finds the messages in the bytes of a connection, however they are cut.
//
//     reader.feed(bytes);
//     while (auto request = reader.next()) ...
//     if (reader.fault()) ...          // answer status_for it, and close
//     reader.end();                    // the peer sends no more
//
// Framing      by Content-Length or chunks; of a response also by the end of the connection. What
//              is ambiguous about it (both at once, two lengths, an unknown transfer coding) is
//              malformed, so that no two readers can disagree about where a message ends. So is a
//              request of 1.1 with none or several Host fields.
// Pipelining   Messages may follow each other in one piece. Feed more only when next() has nothing:
//              what is fed is kept until it is asked for.
// Bounds       of http_limits; memory is at most both of them and one piece.
// A fault      is for ever: nothing more is read, since where a message begins is not known.
// Interim      responses (1xx) are skipped, except 101.
// Threads: one at a time an object. Never throws but for lack of memory.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "wire/http1/http_message.hpp"

namespace trinco::detail {

class http_request_reader {
public:
    explicit http_request_reader(const http_limits& limits = {});
    http_request_reader(http_request_reader&&) noexcept;
    http_request_reader& operator=(http_request_reader&&) noexcept;
    ~http_request_reader();

    void feed(std::string_view bytes);
    // Faults with cut_off when a message has begun.
    void end();
    [[nodiscard]] std::optional<http_request> next();
    [[nodiscard]] const http_fault* fault() const noexcept;
    // Nothing of a next message has come: the connection may be closed without harm.
    [[nodiscard]] bool idle() const noexcept;

    struct impl;

private:
    std::unique_ptr<impl> impl_;
};

class http_response_reader {
public:
    explicit http_response_reader(const http_limits& limits = {});
    http_response_reader(http_response_reader&&) noexcept;
    http_response_reader& operator=(http_response_reader&&) noexcept;
    ~http_response_reader();

    // The next response answers a HEAD request: it has no body, whatever its length says. To be
    // said before any of its bytes are fed.
    void expect_no_body();
    void feed(std::string_view bytes);
    // Completes a response that lasts until the end; otherwise as above.
    void end();
    [[nodiscard]] std::optional<http_response> next();
    [[nodiscard]] const http_fault* fault() const noexcept;
    [[nodiscard]] bool idle() const noexcept;

    struct impl;

private:
    std::unique_ptr<impl> impl_;
};

}  // namespace trinco::detail
