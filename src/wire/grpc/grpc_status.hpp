// The status with which a call of gRPC ends. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trinco::detail {

// The numbers are part of the protocol.
enum class grpc_code : int {
    ok = 0,
    canceled = 1,
    unknown = 2,
    invalid_argument = 3,
    deadline_exceeded = 4,
    not_found = 5,
    already_exists = 6,
    permission_denied = 7,
    resource_exhausted = 8,
    failed_precondition = 9,
    aborted = 10,
    out_of_range = 11,
    unimplemented = 12,
    internal = 13,
    unavailable = 14,
    data_loss = 15,
    unauthenticated = 16,
};

struct grpc_status {
    grpc_code code = grpc_code::ok;
    std::string text;
    bool operator==(const grpc_status&) const = default;
};

// As it stands in grpc-status; what is no number of these is unknown.
[[nodiscard]] grpc_code grpc_code_of(std::string_view figures) noexcept;
// Of an answer that has a status of HTTP only, as the protocol demands.
[[nodiscard]] grpc_code grpc_code_of_http(int status) noexcept;
// grpc-message without its percent signs; what is no such sign stays as it is.
[[nodiscard]] std::string grpc_text_of(std::string_view encoded);

}  // namespace trinco::detail
