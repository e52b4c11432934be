#include "wire/http1/http_reader.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>
#include <utility>

namespace trinco::detail {
namespace {

namespace http = boost::beast::http;
using fault_kind = http_fault::kind_t;

constexpr std::size_t line_most = 16 * 1024;  // before a chunk, or of trailers

constexpr std::array<http::field, 4> framing = {http::field::connection, http::field::keep_alive,
                                                http::field::content_length,
                                                http::field::transfer_encoding};

http_fault fault_of(const boost::system::error_code& error, const http_limits& limits) {
    if (error == http::error::header_limit) {
        return {fault_kind::header_too_big,
                "the start line and the fields of the message are over " +
                    std::to_string(limits.header) + " bytes"};
    }
    if (error == http::error::body_limit) {
        return {fault_kind::body_too_big,
                "the body of the message is over " + std::to_string(limits.body) + " bytes"};
    }
    if (error == http::error::partial_message || error == http::error::end_of_stream) {
        return {fault_kind::cut_off, "the connection ended in the middle of a message"};
    }
    return {fault_kind::malformed,
            "the bytes received are not a message of HTTP/1.1: " + error.message()};
}

template <bool is_request>
using parser = http::parser<is_request, http::string_body>;

void translate_start(parser<true>& from, http_request& to) {
    to.method = std::string(from.get().method_string());
    to.target = std::string(from.get().target());
}
void translate_start(parser<false>& from, http_response& to) {
    to.status = from.get().result_int();
    to.reason = std::string(from.get().reason());
}

// Of a message whose header has been read: without the body, and without trailers, which the parser
// would take for fields.
template <bool is_request, class Message>
Message translate_header(parser<is_request>& from) {
    Message message;
    translate_start(from, message);
    for (const auto& field : from.get()) {
        if (std::find(framing.begin(), framing.end(), field.name()) != framing.end()) continue;
        message.fields.push_back({std::string(field.name_string()), std::string(field.value())});
    }
    message.keep_alive = from.keep_alive();
    message.minor_version = from.get().version() % 10;
    return message;
}

// What the parser does not ask of a message whose header it has read.
template <bool is_request>
std::optional<http_fault> check_header(const parser<is_request>& header) {
    // The parser looks at the end of the last such field, and not at the version.
    const auto codings = header.get().count(http::field::transfer_encoding);
    const bool is_chunked =
        codings == 1 && header.get().version() == 11 &&
        boost::beast::iequals(header.get()[http::field::transfer_encoding], "chunked");
    if (codings > 0 && !is_chunked) {
        return http_fault{fault_kind::malformed,
                          "the message has a transfer coding other than chunked"};
    }
    if (is_request && header.get().version() == 11 && header.get().count(http::field::host) != 1) {
        return http_fault{fault_kind::malformed, "a request of HTTP/1.1 has one Host field"};
    }
    return std::nullopt;
}

template <bool is_request, class Message>
class reader {
public:
    explicit reader(const http_limits& limits) : limits_(limits) {}

    void feed(std::string_view bytes) {
        if (fault_) return;
        input_.append(bytes);
        go_on();
    }

    void end() {
        if (fault_ || ready_ || idle()) return;
        boost::system::error_code error;
        if (parser_) {
            parser_->put_eof(error);
            if (!error && parser_->is_done()) return finish();
        }
        fail({fault_kind::cut_off, "the connection ended in the middle of a message"});
    }

    std::optional<Message> next() {
        if (!ready_) return std::nullopt;
        std::optional<Message> taken = std::exchange(ready_, std::nullopt);
        go_on();
        return taken;
    }

    void expect_no_body() { no_body_ = true; }
    [[nodiscard]] const http_fault* fault() const noexcept { return fault_ ? &*fault_ : nullptr; }
    [[nodiscard]] bool idle() const noexcept { return !parser_ && !ready_ && input_.empty(); }

private:
    void go_on() {
        while (!fault_ && !ready_ && begin()) {
            const bool knew_header = parser_->is_header_done();
            boost::system::error_code error;
            const auto used = parser_->put(
                boost::beast::net::const_buffer(input_.data() + used_, input_.size() - used_),
                error);
            used_ += used;
            if (!knew_header) header_ += used;
            if (error && error != http::error::need_more) return fail(fault_of(error, limits_));
            if (!knew_header && parser_->is_header_done()) {
                // The parser counts only what lies in one piece.
                if (header_ > limits_.header) error = http::error::header_limit;
                if (error) return fail(fault_of(error, limits_));
                if (auto bad = check_header(*parser_)) return fail(std::move(*bad));
                message_ = translate_header<is_request, Message>(*parser_);
                parser_->eager(true);
            }
            if (parser_->is_done()) {
                finish();
            } else if (error || used_ == input_.size()) {
                break;
            }
        }
        input_.erase(0, std::exchange(used_, 0));
        if (fault_ || ready_ || !parser_) return;
        const bool in_header = !parser_->is_header_done();
        if (in_header && header_ + input_.size() > limits_.header) {
            fail(fault_of(http::error::header_limit, limits_));
        } else if (input_.size() > line_most) {
            fail({fault_kind::malformed, "the message has a line that does not end"});
        }
    }

    // Whether there is something to parse; makes the parser for it.
    bool begin() {
        if (is_request && !parser_) {  // empty lines between requests are no fault
            while (used_ < input_.size() && (input_[used_] == '\r' || input_[used_] == '\n')) {
                ++used_;
            }
        }
        if (used_ == input_.size()) return false;
        if (!parser_) {
            parser_.emplace();
            header_ = 0;
            parser_->header_limit(static_cast<std::uint32_t>(limits_.header));
            parser_->body_limit(limits_.body);
            if constexpr (!is_request) parser_->skip(no_body_);
        }
        return true;
    }

    void finish() {
        message_.body = std::move(parser_->get().body());
        parser_.reset();
        if constexpr (!is_request) {
            if (message_.status < 200 && message_.status != 101) return;
            no_body_ = false;
        }
        ready_ = std::move(message_);
    }

    void fail(http_fault why) {
        fault_ = std::move(why);
        parser_.reset();
        input_ = {};
        used_ = 0;
    }

    const http_limits limits_;
    std::string input_;  // from used_ on not parsed yet
    std::size_t used_ = 0;
    std::size_t header_ = 0;                    // bytes of the header that were parsed
    std::optional<parser<is_request>> parser_;  // of the message that has begun
    Message message_;                           // of parser_, once it has read the header
    std::optional<Message> ready_;
    std::optional<http_fault> fault_;
    bool no_body_ = false;
};

}  // namespace

struct http_request_reader::impl : reader<true, http_request> {
    using reader::reader;
};
struct http_response_reader::impl : reader<false, http_response> {
    using reader::reader;
};

http_request_reader::http_request_reader(const http_limits& limits)
    : impl_(std::make_unique<impl>(limits)) {}
http_request_reader::http_request_reader(http_request_reader&&) noexcept = default;
http_request_reader& http_request_reader::operator=(http_request_reader&&) noexcept = default;
http_request_reader::~http_request_reader() = default;
void http_request_reader::feed(std::string_view bytes) {
    impl_->feed(bytes);
}
void http_request_reader::end() {
    impl_->end();
}
std::optional<http_request> http_request_reader::next() {
    return impl_->next();
}
const http_fault* http_request_reader::fault() const noexcept {
    return impl_->fault();
}
bool http_request_reader::idle() const noexcept {
    return impl_->idle();
}

http_response_reader::http_response_reader(const http_limits& limits)
    : impl_(std::make_unique<impl>(limits)) {}
http_response_reader::http_response_reader(http_response_reader&&) noexcept = default;
http_response_reader& http_response_reader::operator=(http_response_reader&&) noexcept = default;
http_response_reader::~http_response_reader() = default;
void http_response_reader::expect_no_body() {
    impl_->expect_no_body();
}
void http_response_reader::feed(std::string_view bytes) {
    impl_->feed(bytes);
}
void http_response_reader::end() {
    impl_->end();
}
std::optional<http_response> http_response_reader::next() {
    return impl_->next();
}
const http_fault* http_response_reader::fault() const noexcept {
    return impl_->fault();
}
bool http_response_reader::idle() const noexcept {
    return impl_->idle();
}

}  // namespace trinco::detail
