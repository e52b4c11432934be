// A descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace trinco::detail {

// Closes it unless it is taken.
class own_descriptor {
public:
    explicit own_descriptor(int fd) noexcept : fd_(fd) {}
    own_descriptor(own_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    own_descriptor& operator=(own_descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~own_descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] int take() noexcept { return std::exchange(fd_, -1); }

private:
    int fd_;
};

}  // namespace trinco::detail
