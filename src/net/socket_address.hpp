// Addresses as the system takes them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "net/watched_descriptor.hpp"

namespace trinco::detail {

struct socket_address {
    ::sockaddr_storage storage{};
    ::socklen_t size = 0;

    [[nodiscard]] const ::sockaddr* get() const noexcept {
        return reinterpret_cast<const ::sockaddr*>(&storage);
    }
    [[nodiscard]] ::sockaddr* get() noexcept { return reinterpret_cast<::sockaddr*>(&storage); }
    [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

// An IPv4 or IPv6 address in figures; nothing when it is a name. Never asks anybody.
[[nodiscard]] std::optional<socket_address> address_in_figures(const std::string& host,
                                                               std::uint16_t port);
// Nothing when the path is empty or too long.
[[nodiscard]] std::optional<socket_address> address_of_path(const std::string& path);
// In figures, without the port.
[[nodiscard]] std::string figures_of(const ::sockaddr* address, ::socklen_t size);

// Non-blocking and close-on-exec; negative, with errno, on failure.
[[nodiscard]] own_descriptor open_socket(int family) noexcept;

}  // namespace trinco::detail
