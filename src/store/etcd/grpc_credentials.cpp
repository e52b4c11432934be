#include "store/etcd/grpc_credentials.hpp"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "core/quoted.hpp"

namespace trinco::detail::etcd {
namespace {

// False when it cannot be read; then `wrong` says so.
bool read(const std::string& file, std::string& to, std::string& wrong) {
    if (file.empty()) return true;
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    to.assign(std::istreambuf_iterator<char>(in), {});
    if (in && !to.empty()) return true;
    const auto* const why = errno != 0 ? std::strerror(errno) : "it is empty";
    wrong = "the file " + quoted(file, 256) + " cannot be read: " + why;
    return false;
}

// Believes anybody, which gRPC offers only with a provider of certificates.
std::shared_ptr<grpc::ChannelCredentials> believing_anybody(const std::string& key,
                                                            const std::string& certificate) {
    namespace ex = grpc::experimental;
    ex::TlsChannelCredentialsOptions options;
    options.set_verify_server_certs(false);
    options.set_check_call_host(false);
    options.set_certificate_verifier(std::make_shared<ex::NoOpCertificateVerifier>());
    if (!key.empty()) {
        options.set_certificate_provider(std::make_shared<ex::StaticDataCertificateProvider>(
            std::vector<ex::IdentityKeyCertPair>{{key, certificate}}));
        options.watch_identity_key_cert_pairs();
    }
    return ex::TlsCredentials(options);
}

}  // namespace

grpc_credentials make_grpc_credentials(const std::optional<tls_settings>& tls) {
    if (!tls) return {grpc::InsecureChannelCredentials(), {}};
    grpc::SslCredentialsOptions options;
    std::string wrong;
    if (!read(tls->ca_file, options.pem_root_certs, wrong) ||
        !read(tls->certificate_file, options.pem_cert_chain, wrong) ||
        !read(tls->key_file, options.pem_private_key, wrong)) {
        return {nullptr, wrong};
    }
    if (!tls->verify) {
        return {believing_anybody(options.pem_private_key, options.pem_cert_chain), {}};
    }
    return {grpc::SslCredentials(options), {}};
}

}  // namespace trinco::detail::etcd
