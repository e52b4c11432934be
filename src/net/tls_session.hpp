// OpenSSL's side of a connection: settings become a session, its failures become errors.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "net/tls_settings.hpp"

namespace trinco::detail {

struct tls_end {
    void operator()(SSL* s) const noexcept { ::SSL_free(s); }
    void operator()(SSL_CTX* c) const noexcept { ::SSL_CTX_free(c); }
};
using tls_session = std::unique_ptr<SSL, tls_end>;
using tls_context = std::unique_ptr<SSL_CTX, tls_end>;

// Null, and why. `like`: what the system believes is not read anew, but is that of this one.
[[nodiscard]] tls_context make_tls_context(const tls_settings& settings, std::error_code& error,
                                           SSL_CTX* like = nullptr);

// A client's session that has not begun, between two BIOs in memory. `name`: whom the peer must
// prove to be, a name or an address in figures; `protocol` as in tls_settings. Throws
// std::bad_alloc.
[[nodiscard]] tls_session make_tls_session(SSL_CTX& context, const std::string& name, bool verify,
                                           const std::string& protocol);

// Whether the peer agreed to this protocol, where one was asked for; after the handshake.
[[nodiscard]] bool speaks(const SSL& session, std::string_view protocol) noexcept;

// Why the last call of a function of OpenSSL on it failed for good.
[[nodiscard]] std::error_code tls_failure(const SSL& session);

}  // namespace trinco::detail
