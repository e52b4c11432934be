#include "apps/trinco/process/quiet_grpc.hpp"

#include <stdlib.h>

namespace trinco::program {

namespace {

// Becomes a part of the environment itself, not copied, and so is told from a user's.
char setting[] = "GRPC_VERBOSITY=NONE";

}  // namespace

void quiet_grpc() noexcept {
    if (::getenv("GRPC_VERBOSITY") == nullptr) ::putenv(setting);
}

bool is_quieting_grpc(const char* entry) noexcept {
    return entry == setting;
}

}  // namespace trinco::program
