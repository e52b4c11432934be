#include "store/local/local_lives.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace trinco::detail {
namespace {

struct ::flock byte_of(std::int64_t session, short type) {
    struct ::flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = session;
    lock.l_len = 1;
    return lock;
}

[[noreturn]] void fail(const std::string& file) {
    throw std::system_error(errno, std::generic_category(), file);
}

}  // namespace

local_lives::local_lives(std::string file)
    : file_(std::move(file)), probe_(::open(file_.c_str(), O_RDWR | O_CLOEXEC)) {
    if (probe_.get() < 0) fail(file_);
}

bool local_lives::is_removed() const noexcept {
    struct ::stat found {};
    return ::fstat(probe_.get(), &found) == 0 && found.st_nlink == 0;
}

owned_descriptor local_lives::hold(std::int64_t session) const {
    if (is_removed()) {
        errno = ENOENT;
        fail(file_);
    }
    // The same file in any case, and an open file description of its own.
    const std::string same = "/proc/self/fd/" + std::to_string(probe_.get());
    owned_descriptor fd(::open(same.c_str(), O_RDWR | O_CLOEXEC));
    if (fd.get() < 0) fail(file_);
    struct ::flock lock = byte_of(session, F_WRLCK);
    if (::fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) return fd;
    if (errno != EAGAIN && errno != EACCES) fail(file_);
    return {};
}

bool local_lives::is_alive(std::int64_t session) const {
    struct ::flock lock = byte_of(session, F_WRLCK);
    if (::fcntl(probe_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK) return true;
    return is_removed();
}

void local_lives::keep(std::int64_t session, owned_descriptor held) {
    const std::lock_guard hold(m_);
    own_.insert_or_assign(session, std::move(held));
}

void local_lives::drop(std::int64_t session) {
    const std::lock_guard hold(m_);
    own_.erase(session);
}

void local_lives::drop_all() {
    const std::lock_guard hold(m_);
    own_.clear();
}

int local_lives::descriptor_of(std::int64_t session) const {
    const std::lock_guard hold(m_);
    const auto at = own_.find(session);
    return at == own_.end() ? -1 : at->second.get();
}

std::vector<std::int64_t> local_lives::own() const {
    std::vector<std::int64_t> all;
    const std::lock_guard hold(m_);
    for (const auto& one : own_) all.push_back(one.first);
    return all;
}

}  // namespace trinco::detail
