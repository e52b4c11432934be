// Calls one HTTP/1.1 server over byte streams, as many calls at a time as there are.
//
// The rules of core/loop.hpp hold: the loop's thread; a completion runs later and at most once;
// dropping the op drops the call, and its connection with it.
//
// Connections  are made as calls need them: a connection serves one call at a time. Some are kept
//              for later calls; one that the server closes meanwhile is noticed and forgotten.
// Repeated     is a GET or HEAD whose kept connection turns out to be closed, once, on a new one.
//              Nothing else ever is.
// Deadline     A call ends by it, in whatever phase, with std::errc::timed_out.
// Errors       http_answer says whether the server may have seen the request. Codes: those of
//              byte_stream and stream_factory; std::errc::protocol_error (what came is no response
//              of HTTP/1.1), message_size (too big a one), connection_aborted (the server ended
//              without one), invalid_argument (the request cannot be written). `why` is one
//              sentence about it.
// Destruction  closes all; completions do not run. It must end before its loop and its factory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

#include "core/loop.hpp"
#include "net/stream_factory.hpp"
#include "wire/http1/http_message.hpp"

namespace trinco::detail {

struct http_client_options {
    http_limits limits = {};
    std::size_t kept = 8;                        // connections for later calls, at most
    std::chrono::milliseconds kept_for{15'000};  // and no longer than that
};

struct http_answer {
    std::error_code error;  // none: there is a response, whatever its status says
    std::string why;        // one sentence, of an error
    bool sent = false;      // some of the request may have reached the server
    http_response response;
};

class http_client {
public:
    http_client(loop& on, stream_factory& streams, const stream_address& server,
                const http_client_options& options = {});
    ~http_client();
    http_client(const http_client&) = delete;
    http_client& operator=(const http_client&) = delete;

    // A Host field is added when there is none.
    [[nodiscard]] op call(http_request request, deadline by,
                          unique_function<void(http_answer)> done);

private:
    struct impl;
    std::shared_ptr<impl> impl_;
};

}  // namespace trinco::detail
