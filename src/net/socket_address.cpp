#include "net/socket_address.hpp"

#include <netdb.h>
#include <sys/un.h>

#include <array>
#include <cstring>

namespace trinco::detail {

std::optional<socket_address> address_in_figures(const std::string& host, std::uint16_t port) {
    ::addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    ::addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found) != 0) {
        return std::nullopt;
    }
    socket_address result;
    result.size = found->ai_addrlen;
    std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
    return result;
}

std::optional<socket_address> address_of_path(const std::string& path) {
    ::sockaddr_un local{};
    local.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof local.sun_path) return std::nullopt;
    path.copy(local.sun_path, path.size());
    socket_address result;
    result.size = sizeof local;
    std::memcpy(&result.storage, &local, sizeof local);
    return result;
}

std::string figures_of(const ::sockaddr* address, ::socklen_t size) {
    std::array<char, NI_MAXHOST> text{};
    const int failed =
        ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    return failed != 0 ? std::string() : std::string(text.data());
}

own_descriptor open_socket(int family) noexcept {
    return own_descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace trinco::detail
