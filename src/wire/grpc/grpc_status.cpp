#include "wire/grpc/grpc_status.hpp"

#include <charconv>
#include <system_error>

namespace trinco::detail {

grpc_code grpc_code_of(std::string_view figures) noexcept {
    int number = -1;
    const auto* const end = figures.data() + figures.size();
    const auto [at, error] = std::from_chars(figures.data(), end, number);
    if (error != std::errc() || at != end || number < 0 ||
        number > static_cast<int>(grpc_code::unauthenticated)) {
        return grpc_code::unknown;
    }
    return static_cast<grpc_code>(number);
}

grpc_code grpc_code_of_http(int status) noexcept {
    switch (status) {
        case 400: return grpc_code::internal;
        case 401: return grpc_code::unauthenticated;
        case 403: return grpc_code::permission_denied;
        case 404: return grpc_code::unimplemented;
        case 429:
        case 502:
        case 503:
        case 504: return grpc_code::unavailable;
        default: return grpc_code::unknown;
    }
}

std::string grpc_text_of(std::string_view encoded) {
    std::string text;
    text.reserve(encoded.size());
    for (std::size_t i = 0; i < encoded.size(); ++i) {
        if (encoded[i] == '%' && i + 2 < encoded.size()) {
            unsigned byte = 0;
            const auto* const from = encoded.data() + i + 1;
            const auto [at, error] = std::from_chars(from, from + 2, byte, 16);
            if (error == std::errc() && at == from + 2) {
                text += static_cast<char>(byte);
                i += 2;
                continue;
            }
        }
        text += encoded[i];
    }
    return text;
}

}  // namespace trinco::detail
