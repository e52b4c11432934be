// Byte streams with TLS over those of another factory: for addresses that ask for it
// (stream_address::tls); all others are the other factory's.
//
// Proof        By default the peer must show a certificate that an authority we believe has signed,
//              for the name (or the address in figures) that was asked for, and valid now.
//              Authorities are read only when a connection needs them; files that are named are
//              read again for each connection, so that new ones count without a restart.
// Versions     TLS 1.2 and 1.3, without renegotiation. Keys with a passphrase are not read.
// Deadline     connect ends by it, with the handshake in whatever phase.
// Errors       of tls_errc, of the other factory, and connection_aborted when the peer ends without
//              TLS's own goodbye: an end that was cut off is no end. With TLS 1.3 a peer looks at
//              our certificate after it let us in: what it thinks of it shows in the first read.
// Rules        of byte_stream, whose streams these are. Dropping a pending write always makes later
//              ones impossible. Server certificates are not made here: listening is never with TLS.
#pragma once

#include <memory>
#include <system_error>

#include "core/loop.hpp"
#include "net/stream_factory.hpp"

namespace trinco::detail {

// Both must outlive the factory and its streams.
[[nodiscard]] std::unique_ptr<stream_factory> make_tls_factory(loop& on, stream_factory& below);
// Owns what is below.
[[nodiscard]] std::unique_ptr<stream_factory> make_tls_factory(
    loop& on, std::unique_ptr<stream_factory> below);

enum class tls_errc {
    wrong_name = 1,      // the peer proved to be somebody else
    unknown_authority,   // nobody we believe has signed its certificate
    expired,             // its certificate is not valid any more
    not_yet_valid,       // ... yet; or a clock is wrong
    not_trusted,         // there is something else about it
    not_tls,             // what the peer says is not TLS
    certificate_wanted,  // the peer wants to know who we are
    refused_by_peer,     // the peer ended the handshake: versions, our certificate ...
    broken,              // what came was not what the peer can have meant
    ca_unreadable,       // of tls_settings
    certificate_unreadable,
    key_unreadable,  // or it does not belong to the certificate
    other_protocol,  // the peer speaks TLS, but not tls_settings::protocol
    no_name          // of a Unix socket: who the peer must prove to be is not said
};

[[nodiscard]] const std::error_category& tls_category() noexcept;
[[nodiscard]] std::error_code make_error_code(tls_errc e) noexcept;

}  // namespace trinco::detail

template <>
struct std::is_error_code_enum<trinco::detail::tls_errc> : std::true_type {};
