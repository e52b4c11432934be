#include "store/etcd/http2_trouble.hpp"

#include <string>
#include <utility>

#include "net/tls_factory.hpp"
#include "store/stream_trouble.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr server_words words{"etcd", "etcd"};

wire_status with(wire_cause by, std::string text) {
    return {wire_code::unavailable, std::move(text), by};
}

}  // namespace

wire_status no_connection(std::error_code why, const std::optional<tls_settings>& tls) {
    auto what = trouble_of(why, tls, words);
    switch (what.kind) {
        case stream_trouble::kind_t::away: break;
        case stream_trouble::kind_t::misdirected:
            return with(wire_cause::misdirected, std::move(what.sentence));
        case stream_trouble::kind_t::distrusted:
            return with(wire_cause::distrusted, std::move(what.sentence));
    }
    auto status = with(wire_cause::not_sent, std::move(what.sentence));
    status.refused = why == std::errc::connection_refused;
    return status;
}

wire_status connection_lost(std::error_code why, bool greeted) {
    // With TLS 1.3 a server says only now what it thinks of our certificate.
    if (why == tls_errc::certificate_wanted || why == tls_errc::refused_by_peer) {
        if (!greeted) return no_connection(why, tls_settings{});
    } else if (!greeted) {
        return with(wire_cause::broken, closes_sentence(words));
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
