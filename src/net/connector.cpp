#include "net/connector.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "net/pending.hpp"
#include "net/socket_address.hpp"
#include "net/socket_stream.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto patience_with_one = 250ms;  // then the next address is tried as well
constexpr auto full_queue_pause = 10ms;    // of a Unix socket, which cannot be waited for

// A TCP socket that connects to a free local port may get that very port and reach itself.
bool reached_itself(int fd) {
    socket_address own;
    socket_address peer;
    own.size = peer.size = sizeof own.storage;
    if (::getsockname(fd, own.get(), &own.size) != 0) return false;
    if (::getpeername(fd, peer.get(), &peer.size) != 0) return false;
    return own.family() != AF_UNIX && own.size == peer.size &&
           std::memcmp(&own.storage, &peer.storage, own.size) == 0;
}

class connector final : public loop_member, public std::enable_shared_from_this<connector> {
public:
    connector(event_loop& on, std::shared_ptr<name_service> names, stream_address to,
              completion<std::unique_ptr<byte_stream>> done)
        : loop_(on),
          on_(loop_access::inside(on)),
          names_(std::move(names)),
          to_(std::move(to)),
          done_(std::move(done)) {
        on_->members.insert(this);
    }
    connector(const connector&) = delete;
    ~connector() {
        if (!on_->foreign()) on_->members.erase(this);
    }

    void start(deadline by);
    void drop();
    void loop_ended() noexcept override;

private:
    // A socket that connects.
    struct attempt final : watched_descriptor::waiter {
        attempt(connector& of, own_descriptor fd, std::error_code& error)
            : owner(of), socket(of.on_, std::move(fd), *this, error) {}
        void ready_for(watched_descriptor::event) override { owner.settled(place); }
        connector& owner;
        watched_descriptor socket;
        std::list<attempt>::iterator place;
    };
    using attempts = std::list<attempt>;

    void resolve();
    void try_next();
    void try_one(const socket_address& address);
    void settled(attempts::iterator which);
    void failed(std::error_code why);
    void end(std::error_code error, std::unique_ptr<byte_stream> stream = nullptr);

    event_loop& loop_;
    std::shared_ptr<event_loop::impl> on_;
    std::shared_ptr<name_service> names_;
    stream_address to_;
    completion<std::unique_ptr<byte_stream>> done_;
    std::deque<socket_address> addresses_;  // not tried yet
    attempts trying_;
    std::error_code last_error_ = net_errc::no_such_host;
    op lookup_;
    op deadline_;
    op pause_;
};

void connector::start(deadline by) {
    // Of this machine's own addresses one answers before any timer.
    if (by <= loop_.now()) return end(std::make_error_code(std::errc::timed_out));
    deadline_ = loop_.at(by, [this] { end(std::make_error_code(std::errc::timed_out)); });
    if (to_.kind == stream_address::kind_t::local) {
        const auto address = address_of_path(to_.path);
        if (!address) return end(std::make_error_code(std::errc::filename_too_long));
        addresses_.push_back(*address);
        return try_next();
    }
    if (const auto address = address_in_figures(to_.host, to_.port)) {
        addresses_.push_back(*address);
        return try_next();
    }
    lookup_ = names_->resolve(to_.host,
                              [this](std::error_code error, const std::vector<std::string>& found) {
                                  if (error) return end(error);
                                  for (const auto& figures : found) {
                                      const auto address = address_in_figures(figures, to_.port);
                                      if (address) addresses_.push_back(*address);
                                  }
                                  try_next();
                              });
}

void connector::try_next() {
    if (addresses_.empty()) {
        if (trying_.empty()) end(last_error_);
        return;
    }
    const auto address = addresses_.front();
    addresses_.pop_front();
    pause_ = loop_.after(patience_with_one, [this] { try_next(); });
    try_one(address);
}

void connector::try_one(const socket_address& address) {
    auto fd = open_socket(address.family());
    if (fd.get() < 0) return failed(system_error_of(errno));
    const int result = ::connect(fd.get(), address.get(), address.size);
    const int error = result == 0 ? 0 : errno;
    if (error == EAGAIN && address.family() == AF_UNIX) {
        pause_ = loop_.after(full_queue_pause, [this, address] { try_one(address); });
        return;
    }
    if (error != 0 && error != EINPROGRESS && error != EINTR) {
        return failed(system_error_of(error));
    }
    std::error_code unwatched;
    trying_.emplace_back(*this, std::move(fd), unwatched);
    const auto which = std::prev(trying_.end());
    which->place = which;
    if (unwatched) {
        trying_.erase(which);
        return failed(unwatched);
    }
    which->socket.wait(watched_descriptor::writable);
}

void connector::settled(attempts::iterator which) {
    const int fd = which->socket.get();
    int error = 0;
    ::socklen_t size = sizeof error;
    if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0 && reached_itself(fd)) error = ECONNREFUSED;
    if (error != 0) {
        trying_.erase(which);
        return failed(system_error_of(error));
    }
    auto connected = which->socket.release();
    trying_.erase(which);
    std::error_code unwatched;
    auto stream = make_socket_stream(on_, std::move(connected), unwatched);
    end(unwatched, std::move(stream));
}

void connector::failed(std::error_code why) {
    last_error_ = why;
    try_next();
}

void connector::end(std::error_code error, std::unique_ptr<byte_stream> stream) {
    if (!done_) return;
    const auto alive = shared_from_this();  // the completion may drop the op, and so us
    auto done = std::move(done_);
    drop();
    complete(std::move(done), error, std::move(stream));
}

void connector::drop() {
    if (on_->foreign()) return;
    const auto done = std::move(done_);
    addresses_.clear();
    trying_.clear();
    lookup_.cancel();
    pause_.cancel();
    deadline_.cancel();
}

void connector::loop_ended() noexcept {
    const auto alive = shared_from_this();
    drop();
}

}  // namespace

op connect_socket(event_loop& on, const std::shared_ptr<name_service>& names,
                  const stream_address& to, deadline by,
                  completion<std::unique_ptr<byte_stream>> done) {
    if (on.check()) return {};
    auto made = std::make_shared<connector>(on, names, to, std::move(done));
    on.post([weak = std::weak_ptr(made), by] {
        if (const auto self = weak.lock()) self->start(by);
    });
    return op([made] { made->drop(); });
}

}  // namespace trinco::detail
