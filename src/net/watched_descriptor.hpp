// A descriptor of ours that a loop watches: sockets, on which we read and write ourselves, so that
// all are close-on-exec and none raises SIGPIPE. Asio tells when they are ready.
#pragma once

#include <unistd.h>

#include <memory>
#include <system_error>
#include <utility>

#include "net/event_loop_impl.hpp"

namespace trinco::detail {

[[nodiscard]] inline std::error_code system_error_of(int number) noexcept {
    return number == 0 ? std::error_code() : std::error_code(number, std::generic_category());
}

// Closes it unless it is taken.
class own_descriptor {
public:
    explicit own_descriptor(int fd) noexcept : fd_(fd) {}
    own_descriptor(own_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    own_descriptor& operator=(own_descriptor&&) = delete;
    ~own_descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] int take() noexcept { return std::exchange(fd_, -1); }

private:
    int fd_;
};

class watched_descriptor {
public:
    using event = asio::posix::stream_descriptor::wait_type;
    static constexpr event readable = asio::posix::stream_descriptor::wait_read;
    static constexpr event writable = asio::posix::stream_descriptor::wait_write;

    // The error: the system watches no more descriptors; this is closed then.
    watched_descriptor(std::shared_ptr<event_loop::impl> on, own_descriptor fd,
                       std::error_code& error)
        : on_(std::move(on)),
          watched_(std::make_unique<asio::posix::stream_descriptor>(on_->context)) {
        boost::system::error_code failed;
        watched_->assign(fd.get(), failed);
        if (failed) {
            error = system_error_of(failed.value());
        } else {
            (void)fd.take();
        }
    }
    watched_descriptor(const watched_descriptor&) = delete;
    watched_descriptor& operator=(const watched_descriptor&) = delete;
    ~watched_descriptor() { close(); }

    [[nodiscard]] int get() const { return watched_ ? watched_->native_handle() : -1; }

    // f(bool ready) on the loop's thread, later; not ready when this was closed.
    template <class F>
    void wait(event what, F f) {
        watched_->async_wait(what, [f = std::move(f)](const boost::system::error_code& failed) {
            unique_function<void()> call = [&] { f(!failed); };
            run_guarded(call);
        });
    }

    // No longer watched, and the taker's.
    [[nodiscard]] own_descriptor release() {
        own_descriptor fd(watched_->release());
        watched_.reset();
        return fd;
    }

    void close() noexcept {
        if (!watched_) return;
        if (on_->foreign()) {
            // The set of watched descriptors is shared with the parent, whose entry must stay.
            ::close(watched_->native_handle());
            (void)watched_.release();
            return;
        }
        watched_.reset();
    }

private:
    std::shared_ptr<event_loop::impl> on_;
    std::unique_ptr<asio::posix::stream_descriptor> watched_;
};

}  // namespace trinco::detail
