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

local_lives::local_lives(std::string file, unsigned mode) : file_(std::move(file)), probe_(open()) {
    // Only the owner can, and has.
    static_cast<void>(::fchmod(probe_.get(), mode));
}

owned_descriptor local_lives::open() const {
    owned_descriptor fd(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd.get() < 0) fail(file_);
    return fd;
}

owned_descriptor local_lives::hold(std::int64_t session) const {
    auto fd = open();
    struct ::flock lock = byte_of(session, F_WRLCK);
    if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) fail(file_);
    return fd;
}

bool local_lives::is_alive(std::int64_t session) const {
    struct ::flock lock = byte_of(session, F_WRLCK);
    // When the kernel cannot say, its time decides.
    return ::fcntl(probe_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
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
