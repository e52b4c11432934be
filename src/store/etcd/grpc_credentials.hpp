// Whom to believe and who we are, in gRPC's terms. For grpc_*.cpp only.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "net/tls_settings.hpp"

namespace trinco::detail::etcd {

struct grpc_credentials {
    std::shared_ptr<grpc::ChannelCredentials> made;  // null: see `wrong`
    std::string wrong;                               // a sentence
};

// Reads the files anew each time, so that a renewed certificate is used by the next connection.
[[nodiscard]] grpc_credentials make_grpc_credentials(const std::optional<tls_settings>& tls);

}  // namespace trinco::detail::etcd
