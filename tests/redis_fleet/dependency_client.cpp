#include "tests/redis_fleet/dependency_client.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <stdexcept>

namespace trinco::fleet_test {

dependency_client::dependency_client(const std::string& path)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto* const generic = reinterpret_cast<const ::sockaddr*>(&address);
    if (::connect(fd_, generic, sizeof address) != 0) {
        ::close(fd_);
        throw std::runtime_error("no dependency");
    }
}

dependency_client::~dependency_client() {
    ::close(fd_);
}

bool dependency_client::call(const std::string& instance, const std::string& breaker,
                             const std::string& kind, std::int64_t asked) {
    const std::string line =
        "call " + instance + " " + breaker + " " + kind + " " + std::to_string(asked) + "\n";
    if (::send(fd_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
        throw std::runtime_error("the dependency does not listen");
    }
    std::string answer;
    char c = 0;
    while (::recv(fd_, &c, 1, 0) == 1) {
        if (c == '\n') return answer == "good";
        answer += c;
    }
    throw std::runtime_error("the dependency is gone");
}

}  // namespace trinco::fleet_test
