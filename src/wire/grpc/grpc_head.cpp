#include "wire/grpc/grpc_head.hpp"

#include <algorithm>

namespace trinco::detail {

grpc_head::grpc_head(const grpc_request& of) {
    add(":method", "POST");
    add(":scheme", of.tls ? "https" : "http");
    add(":path", of.method);
    add(":authority", of.authority);
    add("te", "trailers");
    add("content-type", "application/grpc");
    add("user-agent", of.agent);
    if (of.within.count() > 0) {
        timeout_ = grpc_timeout(of.within);
        add("grpc-timeout", timeout_);
    }
    for (const auto& [name, value] :
         of.metadata.first(std::min(of.metadata.size(), most - size_))) {
        add(name, value);
    }
}

std::string grpc_timeout(std::chrono::nanoseconds within) {
    constexpr long long most = 99'999'999;  // eight figures
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(within).count();
    return std::to_string(std::clamp<long long>(seconds, 1, most)) + "S";
}

std::string grpc_prefix(std::size_t size) {
    std::string prefix(5, '\0');
    for (std::size_t i = 4; i > 0; --i, size >>= 8) prefix[i] = static_cast<char>(size & 255);
    return prefix;
}

}  // namespace trinco::detail
