#include "store/stream_trouble.hpp"

#include <cerrno>
#include <fstream>
#include <utility>

#include "core/quoted.hpp"
#include "net/stream_factory.hpp"
#include "net/tls_factory.hpp"

namespace trinco::detail {
namespace {

using kind = stream_trouble::kind_t;

stream_trouble of_tls(tls_errc why, const tls_settings& tls, const server_words& words,
                      const std::string& message) {
    switch (why) {
        case tls_errc::wrong_name:
            return {kind::misdirected,
                    "its certificate is for another name; name it by server_name="};
        case tls_errc::unknown_authority:
        case tls_errc::not_trusted:
            return {kind::distrusted,
                    "its certificate is not of an authority that is believed; name it by ca="};
        case tls_errc::expired: return {kind::distrusted, "its certificate has expired"};
        case tls_errc::not_yet_valid:
            return {kind::distrusted, "its certificate is not valid yet; or a clock is wrong"};
        case tls_errc::certificate_wanted:
            return {kind::distrusted,
                    "it wants to know who we are; name our certificate by cert= and key="};
        case tls_errc::refused_by_peer:
            return {kind::away,
                    "it refuses TLS with us; does it want another certificate (cert=, key=)?"};
        case tls_errc::not_tls:
            return {kind::misdirected,
                    "it speaks no TLS; use " + std::string(words.scheme) + "://"};
        case tls_errc::other_protocol:
            return {kind::misdirected,
                    "it speaks TLS, but not HTTP/2: it is no " + std::string(words.name)};
        case tls_errc::ca_unreadable:
            return {kind::misdirected,
                    unreadable_file(tls.ca_file, "it is not PEM of certificates")};
        case tls_errc::certificate_unreadable:
            return {kind::misdirected,
                    unreadable_file(tls.certificate_file, "it is not PEM of a certificate")};
        case tls_errc::key_unreadable:
            return {kind::misdirected,
                    unreadable_file(tls.key_file,
                                    "it is not PEM of a key without a passphrase, or "
                                    "of another certificate")};
        case tls_errc::broken:
        case tls_errc::no_name: break;
    }
    return {kind::away, message};
}

}  // namespace

std::string unreadable_file(const std::string& file, const std::string& otherwise) {
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    const int error = in ? 0 : errno;
    const bool empty = in && in.peek() == std::ifstream::traits_type::eof();
    const auto why = error != 0 ? std::generic_category().message(error)
                                : std::string(empty ? "it is empty" : otherwise);
    return "the file " + detail::quoted(file, 256) + " cannot be read: " + why;
}

std::string closes_sentence(const server_words& words) {
    const std::string scheme(words.scheme);
    return "it takes connections and closes them, not as " + std::string(words.name) +
           " does; does only one of the two speak TLS (" + scheme + "://, " + scheme + "s://)?";
}

stream_trouble trouble_of(std::error_code why, const std::optional<tls_settings>& tls,
                          const server_words& words) {
    const auto says = [](std::string text) { return stream_trouble{kind::away, std::move(text)}; };
    if (tls && why.category() == tls_category()) {
        return of_tls(static_cast<tls_errc>(why.value()), *tls, words, why.message());
    }
    if (why == net_errc::no_such_host) return says("its name has no address");
    if (why == net_errc::names_unavailable) return says("its name cannot be looked up now");
    if (why == std::errc::connection_refused) {
        return says("connection refused; is " + std::string(words.name) + " running there?");
    }
    if (why == std::errc::host_unreachable) return says("no way leads there (no route to host)");
    if (why == std::errc::network_unreachable) {
        return says("no way leads there (network is unreachable)");
    }
    if (why == std::errc::timed_out) return says("no connection within 2 s");
    if (why == std::errc::connection_aborted || why == std::errc::connection_reset ||
        why == std::errc::broken_pipe) {
        return says(closes_sentence(words));
    }
    return says("no connection: " + why.message());
}

}  // namespace trinco::detail
