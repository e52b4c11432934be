#include "store/etcd/http2_trouble.hpp"

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "core/quoted.hpp"
#include "net/stream_factory.hpp"
#include "net/tls_factory.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr const char* closes =
    "it takes connections and closes them, not as etcd does; does only one of the two speak TLS "
    "(etcd://, etcds://)?";

wire_status with(wire_cause by, std::string text) {
    return {wire_code::unavailable, std::move(text), by};
}

// OpenSSL says that it cannot be read, and not why.
std::string unreadable(const std::string& file, const std::string& otherwise) {
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    const int error = in ? 0 : errno;
    const bool empty = in && in.peek() == std::ifstream::traits_type::eof();
    const auto why = error != 0 ? std::generic_category().message(error)
                                : std::string(empty ? "it is empty" : otherwise);
    return "the file " + quoted(file, 256) + " cannot be read: " + why;
}

wire_status of_tls(tls_errc why, const tls_settings& tls, const std::string& message) {
    switch (why) {
        case tls_errc::wrong_name:
            return with(wire_cause::misdirected,
                        "its certificate is for another name; name it by server_name=");
        case tls_errc::unknown_authority:
        case tls_errc::not_trusted:
            return with(wire_cause::distrusted,
                        "its certificate is not of an authority that is believed; name it by ca=");
        case tls_errc::expired: return with(wire_cause::distrusted, "its certificate has expired");
        case tls_errc::not_yet_valid:
            return with(wire_cause::distrusted,
                        "its certificate is not valid yet; or a clock is wrong");
        case tls_errc::certificate_wanted:
            return with(wire_cause::distrusted,
                        "it wants to know who we are; name our certificate by cert= and key=");
        case tls_errc::refused_by_peer:
            return with(wire_cause::not_sent,
                        "it refuses TLS with us; does it want another certificate (cert=, key=)?");
        case tls_errc::not_tls:
            return with(wire_cause::misdirected, "it speaks no TLS; use etcd://");
        case tls_errc::other_protocol:
            return with(wire_cause::misdirected, "it speaks TLS, but not HTTP/2: it is no etcd");
        case tls_errc::ca_unreadable:
            return with(wire_cause::misdirected,
                        unreadable(tls.ca_file, "it is not PEM of certificates"));
        case tls_errc::certificate_unreadable:
            return with(wire_cause::misdirected,
                        unreadable(tls.certificate_file, "it is not PEM of a certificate"));
        case tls_errc::key_unreadable:
            return with(wire_cause::misdirected,
                        unreadable(tls.key_file,
                                   "it is not PEM of a key without a passphrase, or "
                                   "of another certificate"));
        case tls_errc::broken:
        case tls_errc::no_name: break;
    }
    return with(wire_cause::not_sent, message);
}

}  // namespace

wire_status no_connection(std::error_code why, const std::optional<tls_settings>& tls) {
    const auto says = [](std::string text) { return with(wire_cause::not_sent, std::move(text)); };
    if (tls && why.category() == tls_category()) {
        return of_tls(static_cast<tls_errc>(why.value()), *tls, why.message());
    }
    if (why == net_errc::no_such_host) return says("its name has no address");
    if (why == net_errc::names_unavailable) return says("its name cannot be looked up now");
    if (why == std::errc::connection_refused) {
        return says("connection refused; is etcd running there?");
    }
    if (why == std::errc::host_unreachable) return says("no way leads there (no route to host)");
    if (why == std::errc::network_unreachable) {
        return says("no way leads there (network is unreachable)");
    }
    if (why == std::errc::timed_out) return says("no connection within 2 s");
    if (why == std::errc::connection_aborted || why == std::errc::connection_reset ||
        why == std::errc::broken_pipe) {
        return says(closes);
    }
    return says("no connection: " + why.message());
}

wire_status connection_lost(std::error_code why, bool greeted) {
    // With TLS 1.3 a server says only now what it thinks of our certificate.
    if (why == tls_errc::certificate_wanted || why == tls_errc::refused_by_peer) {
        if (!greeted) return of_tls(static_cast<tls_errc>(why.value()), {}, why.message());
    } else if (!greeted) {
        return with(wire_cause::broken, closes);
    }
    return with(wire_cause::broken,
                why ? "the connection broke: " + why.message() : "it ended the connection");
}

wire_status not_understood(const http2_fault& what) {
    switch (what.kind) {
        case http2_fault::kind_t::http1:
            return with(wire_cause::misdirected, "it speaks HTTP/1, and not gRPC: it is no etcd");
        case http2_fault::kind_t::not_http2:
            return with(wire_cause::not_sent, "it answers, but not as etcd does");
        case http2_fault::kind_t::broken: break;
    }
    return with(wire_cause::broken, what.sentence);
}

}  // namespace trinco::detail::etcd
