#include "store/etcd/grpc_logs.hpp"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <cstdlib>

namespace trinco::detail::etcd {

void quiet_grpc() noexcept {
    if (std::getenv("GRPC_VERBOSITY") != nullptr || ::grpc_is_initialized() != 0) return;
    // Above the highest that there is: what GRPC_VERBOSITY=NONE means.
    ::gpr_set_log_verbosity(static_cast<::gpr_log_severity>(GPR_LOG_SEVERITY_ERROR + 1));
}

}  // namespace trinco::detail::etcd
