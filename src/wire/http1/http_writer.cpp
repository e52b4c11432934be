#include "wire/http1/http_writer.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string_view>

#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

namespace http = boost::beast::http;

constexpr std::array<http::field, 3> ours = {http::field::connection, http::field::content_length,
                                             http::field::transfer_encoding};

http_fault unwritable(std::string what) {
    return {http_fault::kind_t::unwritable, std::move(what)};
}

// What names and methods are made of.
bool is_token(std::string_view text) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               marks.find(c) != std::string_view::npos;
    });
}

bool is_line_text(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
    });
}

// Blanks at the ends do not survive the way.
bool is_value(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    return is_line_text(text) && (text.empty() || (!blank(text.front()) && !blank(text.back())));
}

bool is_target(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

template <bool is_request>
std::optional<http_fault> add(const std::vector<http_field>& fields,
                              http::message<is_request, http::string_body>& to) {
    for (const auto& field : fields) {
        if (!is_token(field.name)) {
            return unwritable(detail::quoted(field.name) + " is no name of a field");
        }
        if (!is_value(field.value)) {
            return unwritable("the field " + field.name + " has a value that may not be written: " +
                              detail::quoted(field.value));
        }
        const auto known = http::string_to_field(field.name);
        if (std::find(ours.begin(), ours.end(), known) != ours.end()) {
            return unwritable("the field " + field.name + " is written by itself; leave it out");
        }
        to.insert(field.name, field.value);
    }
    return std::nullopt;
}

template <bool is_request>
std::string serialize(http::message<is_request, http::string_body>& message, bool header_only) {
    http::serializer<is_request, http::string_body> from(message);
    from.split(header_only);
    std::string bytes;
    boost::system::error_code error;
    while (!error && !(header_only ? from.is_header_done() : from.is_done())) {
        from.next(error, [&](boost::system::error_code&, const auto& buffers) {
            bytes += boost::beast::buffers_to_string(buffers);
            from.consume(boost::beast::buffer_bytes(buffers));
        });
    }
    return bytes;
}

// 0 or 1 of HTTP/1.
template <class Message>
std::optional<http_fault> check_version(const Message& message) {
    if (message.minor_version <= 1) return std::nullopt;
    return unwritable("there is no HTTP/1." + std::to_string(message.minor_version));
}

bool has_body(const http_request& request) {
    return !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
           request.method == "PATCH";
}

}  // namespace

std::variant<std::string, http_fault> bytes_of(const http_request& request) {
    if (auto bad = check_version(request)) return std::move(*bad);
    if (!is_token(request.method))
        return unwritable(detail::quoted(request.method) + " is no method");
    if (!is_target(request.target)) {
        return unwritable(detail::quoted(request.target) + " is no target of a request");
    }
    http::request<http::string_body> message;
    message.version(10 + request.minor_version);
    message.method_string(request.method);
    message.target(request.target);
    if (auto bad = add(request.fields, message)) return std::move(*bad);
    message.keep_alive(request.keep_alive);
    if (has_body(request)) message.content_length(request.body.size());
    message.body() = request.body;
    return serialize(message, false);
}

std::variant<std::string, http_fault> bytes_of(const http_response& response, bool to_head) {
    if (auto bad = check_version(response)) return std::move(*bad);
    if (response.status < 100 || response.status > 999) {
        return unwritable(std::to_string(response.status) + " is no status; it has three digits");
    }
    if (!is_line_text(response.reason)) {
        return unwritable("the reason may not be written: " + detail::quoted(response.reason));
    }
    http::response<http::string_body> message;
    message.version(10 + response.minor_version);
    message.result(response.status);
    message.reason(response.reason);
    if (auto bad = add(response.fields, message)) return std::move(*bad);
    message.keep_alive(response.keep_alive);
    const bool bodiless = response.status < 200 || response.status == 204 || response.status == 304;
    if (!bodiless) message.content_length(response.body.size());
    if (!bodiless && !to_head) message.body() = response.body;
    return serialize(message, bodiless || to_head);
}

}  // namespace trinco::detail
