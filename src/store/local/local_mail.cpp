#include "store/local/local_mail.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

namespace trinco::detail {
namespace {

// False when the name does not fit.
bool fill(::sockaddr_un& address, int folder, const std::string& name) noexcept {
    address = {};
    address.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.data(), path.size());
    return true;
}

const ::sockaddr* generic(const ::sockaddr_un& address) noexcept {
    return reinterpret_cast<const ::sockaddr*>(&address);
}

}  // namespace

local_mail::local_mail(const std::string& folder, std::string name, const local_rights& rights)
    : name_(std::move(name)) {
    const auto fail = [this](const char* what) {
        const int error = errno;
        if (socket_ >= 0) ::close(socket_);
        if (folder_ >= 0) ::close(folder_);
        throw std::system_error(error, std::generic_category(), what);
    };
    folder_ = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) fail("the folder cannot be opened");
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket_ < 0) fail("a socket cannot be made");
    ::sockaddr_un address{};
    if (!fill(address, folder_, name_)) {
        errno = ENAMETOOLONG;
        fail("the name of a socket is too long");
    }
    if (::bind(socket_, generic(address), sizeof address) != 0)
        fail("a socket cannot be made in the folder of the file");
    rights.give_to(folder_, name_);
}

void local_mail::check(const std::string& folder, const std::string& name) {
    constexpr int some_descriptor = 99;
    ::sockaddr_un address{};
    const bool fits = fill(address, some_descriptor, name);
    if (fits && ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return;
    throw std::system_error(fits ? errno : ENAMETOOLONG, std::generic_category(),
                            "a socket cannot be made in the folder of the file");
}

void local_mail::remove() const noexcept {
    ::unlinkat(folder_, name_.c_str(), 0);
}

local_mail::~local_mail() {
    remove();
    ::close(socket_);
    ::close(folder_);
}

bool local_mail::take_all() noexcept {
    bool any = false;
    char ring = 0;
    while (::recv(socket_, &ring, 1, MSG_DONTWAIT) >= 0) any = true;
    return any;
}

bool local_mail::ring(const std::string& other) noexcept {
    ::sockaddr_un address{};
    if (!fill(address, folder_, other)) return false;
    const char ring = 1;
    if (::sendto(socket_, &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL, generic(address),
                 sizeof address) >= 0) {
        return true;
    }
    const int error = errno;
    if (error == ECONNREFUSED) ::unlinkat(folder_, other.c_str(), 0);
    return error != ECONNREFUSED && error != ENOENT;
}

bool local_mail::is_dead(const std::string& other) const noexcept {
    ::sockaddr_un address{};
    if (!fill(address, folder_, other)) return false;
    const int probe = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) return false;
    const bool dead =
        ::connect(probe, generic(address), sizeof address) != 0 && errno == ECONNREFUSED;
    ::close(probe);
    return dead;
}

std::vector<std::string> local_mail::remove_dead(std::string_view beginning) noexcept {
    std::vector<std::string> removed;
    namespace fs = std::filesystem;
    try {
        // One that is being bound at this moment looks like a dead one.
        const auto before = fs::file_time_type::clock::now() - std::chrono::minutes(1);
        for (const auto& one : fs::directory_iterator("/proc/self/fd/" + std::to_string(folder_))) {
            const std::string name = one.path().filename().string();
            if (!name.starts_with(beginning) || !one.is_socket()) continue;
            if (one.last_write_time() < before && is_dead(name)) {
                ::unlinkat(folder_, name.c_str(), 0);
                removed.push_back(name);
            }
        }
    } catch (const std::exception&) {
        // Another was quicker, or this user may not; nothing depends on it.
    }
    return removed;
}

}  // namespace trinco::detail
