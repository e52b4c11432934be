// What gRPC writes to standard error. For grpc_*.cpp only.
#pragma once

namespace trinco::detail::etcd {

// Errors of connections are told by rpc::trouble in a sentence; a library writes to nobody's
// terminal. So gRPC is silenced, unless somebody has a wish of his own: GRPC_VERBOSITY is set, or
// gRPC is in use in this process already. Whoever uses it later and wants its lines calls
// gpr_set_log_verbosity. Nothing of the environment is changed. Any thread.
void quiet_grpc() noexcept;

}  // namespace trinco::detail::etcd
