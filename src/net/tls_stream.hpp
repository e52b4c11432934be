// A byte stream with TLS over another one.
#pragma once

#include <memory>
#include <string>

#include "core/loop.hpp"
#include "net/byte_stream.hpp"
#include "net/tls_session.hpp"

namespace trinco::detail {

// Makes the handshake, and then the stream; `protocol`: that must have been agreed on, unless it is
// empty. No deadline: dropping the op ends the connection.
[[nodiscard]] op begin_tls(loop& on, tls_session session, std::string protocol,
                           std::unique_ptr<byte_stream> below,
                           completion<std::unique_ptr<byte_stream>> done);

// Runs f when it is destroyed without release(): a completion of the stream below that was dropped
// because its loop has ended. What waits for it must be destroyed, too, since it may own us.
class unless_run {
public:
    explicit unless_run(unique_function<void()> f) : f_(std::move(f)) {}
    unless_run(unless_run&&) noexcept = default;
    unless_run& operator=(unless_run&&) = delete;
    ~unless_run() {
        if (f_) f_();
    }
    void release() noexcept { f_.reset(); }

private:
    unique_function<void()> f_;
};

}  // namespace trinco::detail
