// A descriptor of ours that a loop watches: sockets, on which we read and write ourselves, so that
// all are close-on-exec and none raises SIGPIPE.
#pragma once

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "net/event_loop_impl.hpp"
#include "net/own_descriptor.hpp"

namespace trinco::detail {

[[nodiscard]] inline std::error_code system_error_of(int number) noexcept {
    return number == 0 ? std::error_code() : std::error_code(number, std::generic_category());
}

class watched_descriptor final : watcher {
public:
    enum event { readable, writable };

    // Its owner, who waits. It may be gone after it was told.
    class waiter {
    public:
        virtual void ready_for(event what) = 0;

    protected:
        ~waiter() = default;
    };

    // The error: the system watches no more descriptors.
    watched_descriptor(std::shared_ptr<event_loop::impl> on, own_descriptor fd, waiter& owner,
                       std::error_code& error)
        : on_(std::move(on)), fd_(std::move(fd)), owner_(owner) {
        if (!change(EPOLL_CTL_ADD, 0)) error = system_error_of(errno);
    }
    watched_descriptor(const watched_descriptor&) = delete;
    watched_descriptor& operator=(const watched_descriptor&) = delete;
    ~watched_descriptor() { close(); }

    [[nodiscard]] int get() const noexcept { return fd_.get(); }

    // The owner is told once, on the loop's thread, later; never when this has ended.
    void wait(event what) noexcept {
        const std::uint32_t bit = bits[what];
        wanted_ |= bit;
        if ((watched_ & bit) == 0) change(EPOLL_CTL_MOD, watched_ | bit);
    }

    // No longer watched, and the taker's. In a child the set is shared with the parent, whose entry
    // stays.
    [[nodiscard]] own_descriptor release() noexcept {
        if (fd_.get() >= 0 && !on_->foreign()) {
            ::epoll_ctl(on_->watched.get(), EPOLL_CTL_DEL, fd_.get(), nullptr);
            on_->forget(*this);
        }
        if (bool* const told = std::exchange(ended_, nullptr); told != nullptr) *told = true;
        wanted_ = 0;
        return std::move(fd_);
    }

    void close() noexcept { const auto closed = release(); }

private:
    static constexpr std::uint32_t bits[] = {EPOLLIN, EPOLLOUT};

    // Of one that waits for nothing errors are told, too, but once.
    bool change(int how, std::uint32_t events) noexcept {
        ::epoll_event e{};
        e.events = events == 0 ? EPOLLONESHOT : events;
        e.data.ptr = static_cast<watcher*>(this);
        watched_ = events;
        return ::epoll_ctl(on_->watched.get(), how, fd_.get(), &e) == 0;
    }

    // Who reads waits again as a rule, for which nothing needs to be changed. Who does not is
    // noticed when there is something to read.
    void ready(std::uint32_t events) override {
        if ((events & (EPOLLERR | EPOLLHUP)) != 0) events |= EPOLLIN | EPOLLOUT;
        const bool in_vain = (watched_ & events & ~wanted_) != 0;
        bool ended = false;
        ended_ = &ended;
        for (const event what : {readable, writable}) {
            if ((wanted_ & events & bits[what]) == 0) continue;
            wanted_ &= ~bits[what];
            tell(what);
            if (ended) return;
        }
        ended_ = nullptr;
        if (in_vain || (watched_ & ~wanted_ & EPOLLOUT) != 0) change(EPOLL_CTL_MOD, wanted_);
    }

    void tell(event what) noexcept {
        try {
            owner_.ready_for(what);
        } catch (...) {
            report_failure();
        }
    }

    std::shared_ptr<event_loop::impl> on_;
    own_descriptor fd_;
    waiter& owner_;
    std::uint32_t wanted_ = 0;   // that the owner waits for
    std::uint32_t watched_ = 0;  // that the system tells
    bool* ended_ = nullptr;      // to be told so while the owner is told
};

}  // namespace trinco::detail
