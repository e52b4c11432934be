// The one variable of our environment that the user has not given us.
#pragma once

namespace trinco::program {

// gRPC prints to stderr what trouble() says in a sentence. Sets GRPC_VERBOSITY, which gRPC reads
// when it begins, to NONE; who has set it keeps that. Before there is a thread.
void quiet_grpc() noexcept;

// Whether this entry of environ is that setting of ours, which commands do not inherit.
[[nodiscard]] bool is_quieting_grpc(const char* entry) noexcept;

}  // namespace trinco::program
