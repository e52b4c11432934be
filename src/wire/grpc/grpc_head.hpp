// What a call of gRPC begins with: the fields of its head, and the prefix of each message.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "wire/http2/http2_client.hpp"

namespace trinco::detail {

struct grpc_request {
    bool tls = false;
    std::string_view authority;          // "10.0.0.1:2379"
    std::string_view method;             // "/etcdserverpb.KV/Txn"
    std::string_view agent;              // "trinco/1.0"
    std::chrono::nanoseconds within{0};  // 0: as long as it takes
    std::span<const http2_field> metadata{};
};

// Fields in a place of their own. What they show must outlive it.
class grpc_head {
public:
    explicit grpc_head(const grpc_request& of);
    grpc_head(const grpc_head&) = delete;
    grpc_head& operator=(const grpc_head&) = delete;
    [[nodiscard]] std::span<const http2_field> fields() const noexcept {
        return {fields_.data(), size_};
    }

private:
    void add(std::string_view name, std::string_view value) { fields_[size_++] = {name, value}; }

    static constexpr std::size_t most = 12;
    std::array<http2_field, most> fields_;
    std::size_t size_ = 0;
    std::string timeout_;
};

// In whole seconds, rounded up: few different values cost few bytes, and who asked gives up by
// itself earlier.
[[nodiscard]] std::string grpc_timeout(std::chrono::nanoseconds within);
// Of a message of so many bytes, not compressed.
[[nodiscard]] std::string grpc_prefix(std::size_t size);

}  // namespace trinco::detail
