// Serves HTTP/1.1 on a listener: finds the requests, hands them to a handler, writes the answers.
//
//     http_server server(loop, std::move(listener), [](http_exchange asked) {
//         asked.answer({.status = 200, .body = "hello\n"});
//     });
//
// Handler      runs on the loop's thread, with one request of a connection at a time; it answers at
//              once or later, by keeping the exchange.
// Deadlines    a request must be complete within request_within of its first byte, an answer be
//              taken by the client within answer_within; a connection without a request is closed
//              after idle_for. The handler has as long as it likes.
// Faults       are answered (400, 413, 431) and the connection closed.
// Bounds       connections_most at a time; others wait in the system's queue. http_limits each.
// Destruction  closes all connections; exchanges that are still held do nothing any more. It must
//              end before its loop.
//
// The rules of core/loop.hpp hold.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "core/loop.hpp"
#include "net/stream_factory.hpp"
#include "wire/http1/http_message.hpp"

namespace trinco::detail {

struct http_server_options {
    http_limits limits = {};
    std::size_t connections_most = 512;
    std::chrono::milliseconds idle_for{30'000};
    std::chrono::milliseconds request_within{10'000};
    std::chrono::milliseconds answer_within{10'000};
};

class http_connection;

// A request that wants an answer. Move-only; one that is destroyed without an answer closes its
// connection.
class http_exchange {
public:
    http_exchange(std::weak_ptr<http_connection> from, http_request request) noexcept;
    http_exchange(http_exchange&& other) noexcept = default;
    http_exchange& operator=(http_exchange&&) = delete;
    ~http_exchange();

    [[nodiscard]] const http_request& request() const noexcept { return request_; }
    // Once. A response that cannot be written becomes 500.
    void answer(const http_response& response);
    // Called, before the answer, when the client closes its end: most have given up then. An answer
    // is sent all the same. The exchange may be destroyed in it.
    void on_gone(unique_function<void()> f);

private:
    std::weak_ptr<http_connection> from_;
    http_request request_;
};

class http_server {
public:
    http_server(loop& on, std::unique_ptr<stream_listener> at,
                std::function<void(http_exchange)> handler,
                const http_server_options& options = {});
    ~http_server();
    http_server(const http_server&) = delete;
    http_server& operator=(const http_server&) = delete;

    [[nodiscard]] const stream_address& where() const;
    [[nodiscard]] std::size_t connections() const;

private:
    friend class http_connection;
    struct impl;
    std::shared_ptr<impl> impl_;
};

}  // namespace trinco::detail
