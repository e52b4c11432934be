// Requests and responses of HTTP/1.1 as values, and what is wrong with bytes that are none.
//
// What frames a message on the wire is no part of its fields: Content-Length, Transfer-Encoding and
// Connection are read into body and keep_alive, and written from them. Reading drops Keep-Alive and
// trailers, too. Fields of one name keep their order and come together, where the first of them
// was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trinco::detail {

struct http_field {
    std::string name;
    std::string value;
    bool operator==(const http_field&) const = default;
};

struct http_request {
    std::string method = "GET";
    std::string target = "/";
    std::vector<http_field> fields = {};
    std::string body = {};
    bool keep_alive = true;      // whether the connection may serve another request
    unsigned minor_version = 1;  // of HTTP/1: 0 or 1
    bool operator==(const http_request&) const = default;
};

struct http_response {
    unsigned status = 200;
    std::string reason = {};  // empty: written as the usual words for the status
    std::vector<http_field> fields = {};
    std::string body = {};
    bool keep_alive = true;
    unsigned minor_version = 1;
    bool operator==(const http_response&) const = default;
};

// The value of the first field of this name, in any case; empty when there is none.
[[nodiscard]] std::string_view field_of(const std::vector<http_field>& fields,
                                        std::string_view name) noexcept;

struct http_limits {
    std::size_t header = 16 * 1024;  // bytes of start line and fields
    std::size_t body = 1024 * 1024;  // bytes, after chunks have been put together
};

// Why bytes are not, or cannot become, a message.
struct http_fault {
    enum class kind_t : std::uint8_t {
        malformed,  // not HTTP/1.0 or 1.1, or ambiguous about where the message ends
        header_too_big,
        body_too_big,
        cut_off,    // the peer ended in the middle
        unwritable  // a value that may not be written, since it would change the message
    };
    kind_t kind = kind_t::malformed;
    std::string sentence;
};

// What a server answers to it: 400, 413 or 431.
[[nodiscard]] unsigned status_for(const http_fault& fault) noexcept;

}  // namespace trinco::detail
