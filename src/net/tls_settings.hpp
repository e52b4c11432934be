// How a connection with TLS is made: whom to believe and who we are. A plain value.
#pragma once

#include <string>

namespace trinco::detail {

struct tls_settings {
    // Who the peer must prove to be, and whom it is asked for (SNI); empty: the host connected to.
    std::string server_name = {};
    // PEM, whose certificates are believed and no others; empty: those that the system believes.
    std::string ca_file = {};
    // PEM, when the peer wants to know who we are: both or none. The certificate may be followed by
    // those that lead to its authority.
    std::string certificate_file = {};
    std::string key_file = {};
    // false believes anybody: what is sent can be read and changed by whoever is in between.
    bool verify = true;
    // What is to be spoken over it, in the words of ALPN ("h2"): a peer that does not agree is
    // refused. Empty: nothing is said about it.
    std::string protocol = {};

    bool operator==(const tls_settings&) const = default;
};

}  // namespace trinco::detail
