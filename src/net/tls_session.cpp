#include "net/tls_session.hpp"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <new>

#include "net/tls_factory.hpp"

namespace trinco::detail {
namespace {

class tls_errors final : public std::error_category {
public:
    const char* name() const noexcept override { return "trinco-tls"; }
    std::string message(int value) const override {
        switch (static_cast<tls_errc>(value)) {
            case tls_errc::wrong_name: return "the certificate of the server is for another name";
            case tls_errc::unknown_authority:
                return "the certificate of the server is signed by nobody who is believed here";
            case tls_errc::expired: return "the certificate of the server has expired";
            case tls_errc::not_yet_valid: return "the certificate of the server is not yet valid";
            case tls_errc::not_trusted: return "the certificate of the server cannot be believed";
            case tls_errc::not_tls: return "the server does not speak TLS";
            case tls_errc::certificate_wanted: return "the server wants a certificate from us";
            case tls_errc::refused_by_peer:
                return "the server refused TLS with us: it may want another certificate or version";
            case tls_errc::broken: return "what came with TLS was damaged on its way";
            case tls_errc::ca_unreadable:
                return "the file of the authorities cannot be read, or is not PEM";
            case tls_errc::certificate_unreadable:
                return "the file of our certificate cannot be read, or is not PEM";
            case tls_errc::key_unreadable:
                return "the file of our key cannot be read, is not PEM without a passphrase, or is "
                       "of another certificate";
            case tls_errc::other_protocol:
                return "the server speaks TLS, but not the protocol that it was asked for";
            case tls_errc::no_name: return "TLS on a Unix socket needs the name of the server";
        }
        return "an unknown error of TLS";
    }
};

// Without it OpenSSL would ask at the terminal.
int no_passphrase(char*, int, int, void*) {
    return 0;
}

std::error_code of_certificate(long verdict) {
    switch (verdict) {
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH: return tls_errc::wrong_name;
        case X509_V_ERR_CERT_HAS_EXPIRED: return tls_errc::expired;
        case X509_V_ERR_CERT_NOT_YET_VALID: return tls_errc::not_yet_valid;
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: return tls_errc::unknown_authority;
        default: return tls_errc::not_trusted;
    }
}

void read_identity(SSL_CTX* context, const tls_settings& settings, std::error_code& error) {
    if (settings.certificate_file.empty()) return;
    const auto* certificate = settings.certificate_file.c_str();
    const auto* key = settings.key_file.c_str();
    if (::SSL_CTX_use_certificate_chain_file(context, certificate) != 1) {
        error = tls_errc::certificate_unreadable;
    } else if (::SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
               ::SSL_CTX_check_private_key(context) != 1) {
        error = tls_errc::key_unreadable;
    }
}

void read_authorities(SSL_CTX* context, const tls_settings& settings, SSL_CTX* like,
                      std::error_code& error) {
    if (!settings.verify) return;
    if (like != nullptr) {
        ::SSL_CTX_set1_cert_store(context, ::SSL_CTX_get_cert_store(like));
        return;
    }
    const int read = settings.ca_file.empty() ? ::SSL_CTX_set_default_verify_paths(context)
                                              : ::SSL_CTX_load_verify_locations(
                                                    context, settings.ca_file.c_str(), nullptr);
    if (read != 1) error = tls_errc::ca_unreadable;
}

}  // namespace

const std::error_category& tls_category() noexcept {
    static const tls_errors instance;
    return instance;
}

std::error_code make_error_code(tls_errc e) noexcept {
    return {static_cast<int>(e), tls_category()};
}

tls_context make_tls_context(const tls_settings& settings, std::error_code& error, SSL_CTX* like) {
    ::ERR_clear_error();
    tls_context made(::SSL_CTX_new(::TLS_client_method()));
    if (!made) throw std::bad_alloc();
    ::SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
    ::SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION);
    ::SSL_CTX_set_mode(made.get(), SSL_MODE_RELEASE_BUFFERS);
    ::SSL_CTX_set_default_passwd_cb(made.get(), no_passphrase);
    read_authorities(made.get(), settings, like, error);
    if (!error) read_identity(made.get(), settings, error);
    ::ERR_clear_error();
    if (error) return nullptr;
    return made;
}

tls_session make_tls_session(SSL_CTX& context, const std::string& name, bool verify,
                             const std::string& protocol) {
    tls_session made(::SSL_new(&context));
    BIO* in = ::BIO_new(::BIO_s_mem());
    BIO* out = ::BIO_new(::BIO_s_mem());
    if (!made || in == nullptr || out == nullptr) {
        ::BIO_free(in);
        ::BIO_free(out);
        throw std::bad_alloc();
    }
    // Empty means: more may come.
    ::BIO_set_mem_eof_return(in, -1);
    ::BIO_set_mem_eof_return(out, -1);
    ::SSL_set_bio(made.get(), in, out);
    ::SSL_set_connect_state(made.get());
    auto* wanted = ::SSL_get0_param(made.get());
    bool fits = true;
    if (::X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) != 1) {
        // Names only are asked for (SNI): figures must not be.
        ::X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        fits = ::X509_VERIFY_PARAM_set1_host(wanted, name.c_str(), name.size()) == 1 &&
               ::SSL_set_tlsext_host_name(made.get(), name.c_str()) == 1;
    }
    if (!protocol.empty()) {
        // Each name of the list is behind its length; 0 is success here.
        const auto list = static_cast<char>(protocol.size()) + protocol;
        fits = fits && ::SSL_set_alpn_protos(made.get(),
                                             reinterpret_cast<const unsigned char*>(list.data()),
                                             static_cast<unsigned>(list.size())) == 0;
    }
    ::ERR_clear_error();
    if (!fits) throw std::bad_alloc();
    ::SSL_set_verify(made.get(), verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    return made;
}

bool speaks(const SSL& session, std::string_view protocol) noexcept {
    if (protocol.empty()) return true;
    const unsigned char* agreed = nullptr;
    unsigned size = 0;
    ::SSL_get0_alpn_selected(&session, &agreed, &size);
    return protocol == std::string_view(reinterpret_cast<const char*>(agreed), size);
}

std::error_code tls_failure(const SSL& session) {
    const auto why = ::ERR_peek_error();
    ::ERR_clear_error();
    if (ERR_GET_LIB(why) != ERR_LIB_SSL) return tls_errc::broken;
    const int reason = ERR_GET_REASON(why);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        return of_certificate(::SSL_get_verify_result(&session));
    }
    if (reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED) return tls_errc::certificate_wanted;
    // Servers in Go 1.19 (etcd 3.4) say so of a certificate that they did not get.
    if (reason == SSL_AD_REASON_OFFSET + SSL_AD_BAD_CERTIFICATE &&
        ::SSL_get_certificate(&session) == nullptr) {
        return tls_errc::certificate_wanted;
    }
    if (reason == SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL) {
        return tls_errc::other_protocol;
    }
    if (reason >= SSL_AD_REASON_OFFSET) return tls_errc::refused_by_peer;
    if (::SSL_is_init_finished(&session) == 0) {
        switch (reason) {
            case SSL_R_WRONG_VERSION_NUMBER:
            case SSL_R_UNEXPECTED_MESSAGE:
            case SSL_R_PACKET_LENGTH_TOO_LONG:
            case SSL_R_RECORD_LENGTH_MISMATCH: return tls_errc::not_tls;
            default: break;
        }
    }
    return tls_errc::broken;
}

}  // namespace trinco::detail
