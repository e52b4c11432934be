// Finds messages and the status in what a peer answers to one call of gRPC, however it is cut.
//
//     answer.field(name, value) ...; answer.fields_end();    the head
//     answer.data(bytes); for (auto& m : answer.take()) ...
//     answer.field(name, value) ...; answer.fields_end();    the trailers; without data before
//     answer.verdict()                                       them both may be one
//
// Bounds       A message is at most `message_most`; its length alone is enough to refuse it.
// Who is no gRPC at all (another content type, a status of HTTP that no gRPC has) is told by the
// verdict, and its data are not looked at.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/grpc/grpc_status.hpp"

namespace trinco::detail {

struct grpc_verdict {
    enum class by_t : std::uint8_t {
        server,     // its own word
        not_grpc,   // somebody else's: no call was made
        too_large,  // a message was
        broken      // what came breaks the rules, or is not whole
    };
    by_t by = by_t::server;
    grpc_status status;
};

class grpc_answer {
public:
    explicit grpc_answer(std::size_t message_most) : most_(message_most) {}

    void field(std::string_view name, std::string_view value);
    void fields_end();
    void data(std::string_view bytes);
    // Whole messages, in order.
    [[nodiscard]] std::vector<std::string> take();
    // Nothing that comes can change the verdict: the rest need not be waited for.
    [[nodiscard]] bool is_lost() const noexcept { return fault_ != fault_t::none; }
    // At the end of the stream.
    [[nodiscard]] grpc_verdict verdict() const;

private:
    enum class fault_t : std::uint8_t { none, not_grpc, too_large, compressed };
    [[nodiscard]] std::string_view prefix(std::string_view bytes);

    std::size_t most_;
    bool has_head_ = false;
    int http_ = 0;          // the status of HTTP
    bool is_grpc_ = false;  // by the content type
    bool has_status_ = false;
    grpc_status status_;
    fault_t fault_ = fault_t::none;
    std::string prefix_;    // of the next message, as far as it has come
    std::size_t left_ = 0;  // of the message
    bool in_message_ = false;
    std::string message_;
    std::vector<std::string> whole_;
};

}  // namespace trinco::detail
