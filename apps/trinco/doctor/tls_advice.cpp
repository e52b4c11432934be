#include "apps/trinco/doctor/tls_advice.hpp"

#include <array>

#include "net/tls_factory.hpp"

namespace trinco::program::doctor {
namespace {

using trinco::detail::server_words;
using trinco::detail::tls_errc;

struct cure {
    tls_errc of;
    std::string_view advice;
};

constexpr std::array cures{
    cure{tls_errc::wrong_name,
         "use a name of its certificate in the URL, or give it by server_name=NAME; 'openssl "
         "s_client -connect HOST:PORT' shows which it has"},
    cure{tls_errc::unknown_authority,
         "give ca=FILE in the URL: the certificate of the authority that signed the server's "
         "(PEM); without it those count that this machine believes"},
    cure{tls_errc::expired,
         "give the server a new certificate; or is the clock of this machine ahead?"},
    cure{tls_errc::not_yet_valid,
         "set the clock right, of this machine or of the one that made the certificate"},
    cure{tls_errc::certificate_wanted,
         "give cert=FILE and key=FILE in the URL: a certificate of an authority that the server "
         "believes, and its key (PEM)"},
    cure{tls_errc::refused_by_peer,
         "give cert=FILE and key=FILE in the URL that the server believes; its log says what it "
         "refused"},
};

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

bool says(std::string_view why, tls_errc fault, const server_words& of) {
    return why.ends_with(trouble_of(fault, trinco::detail::tls_settings{}, of).sentence);
}

}  // namespace

std::string tls_advice(std::string_view why, const server_words& of) {
    for (const cure& one : cures) {
        if (says(why, one.of, of)) return std::string(one.advice);
    }
    const auto plain = std::string(of.scheme) + "://";
    const auto secured = std::string(of.scheme) + "s://";
    if (says(why, tls_errc::not_tls, of)) {
        return "write " + plain + " in the URL, or name the port at which it speaks TLS";
    }
    if (why.ends_with(closes_sentence(of))) {
        return "write " + secured + " in the URL when the server speaks TLS, and " + plain +
               " when it does not; or is this the port of another program?";
    }
    if (has(why, secured)) {
        return "write " + secured +
               " in the URL, with ca=FILE when this machine does not believe who signed its "
               "certificate";
    }
    if (has(why, "the file \"") && has(why, " cannot be read: ")) {
        return "name a file in the URL that is there, in PEM, and that this user may read";
    }
    return {};
}

}  // namespace trinco::program::doctor
