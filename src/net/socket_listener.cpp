#include "net/socket_listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "net/pending.hpp"
#include "net/socket_address.hpp"
#include "net/socket_stream.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr int queue_most = 511;  // of connections not accepted yet; the system may allow fewer

// Errors of one connection that is gone already, not of listening.
bool concerns_the_connection(int error) {
    switch (error) {
        case EAGAIN:
        case EINTR:
        case ECONNABORTED:
        case EPROTO:
        case EPERM:
        case ENETDOWN:
        case ENETUNREACH:
        case EHOSTDOWN:
        case EHOSTUNREACH: return true;
        default: return false;
    }
}

// The file of a Unix socket, removed at the end unless another one lies there by then.
class socket_file {
public:
    explicit socket_file(std::string path) : path_(std::move(path)) {
        struct ::stat found {};
        if (::lstat(path_.c_str(), &found) != 0) return;
        device_ = found.st_dev;
        number_ = found.st_ino;
    }
    socket_file(const socket_file&) = delete;
    ~socket_file() {
        struct ::stat found {};
        if (::getpid() != owner_ || ::lstat(path_.c_str(), &found) != 0) return;
        if (found.st_dev == device_ && found.st_ino == number_) ::unlink(path_.c_str());
    }

private:
    std::string path_;
    const ::pid_t owner_ = ::getpid();
    ::dev_t device_ = 0;
    ::ino_t number_ = 0;
};

class waiting_socket final : public loop_member,
                             watched_descriptor::waiter,
                             public std::enable_shared_from_this<waiting_socket> {
public:
    waiting_socket(std::shared_ptr<event_loop::impl> on, own_descriptor fd, std::error_code& error)
        : on_(std::move(on)), socket_(on_, std::move(fd), *this, error) {
        on_->members.insert(this);
    }
    waiting_socket(const waiting_socket&) = delete;
    ~waiting_socket() {
        if (!on_->foreign()) on_->members.erase(this);
    }

    op accept(completion<std::unique_ptr<byte_stream>> done) {
        if (!on_->runs()) return {};
        if (accepting_) return refuse(*on_, std::move(done), errc::busy);
        const auto ticket = accepting_.put(std::move(done));
        socket_.wait(watched_descriptor::readable);
        return op([weak = weak_from_this(), ticket] {
            const auto self = weak.lock();
            if (!self || self->on_->foreign() || !self->accepting_.is(ticket)) return;
            const auto dropped = self->accepting_.take();
        });
    }

    void loop_ended() noexcept override {
        const auto alive = shared_from_this();
        const auto dropped = accepting_.take();
    }

private:
    void ready_for(watched_descriptor::event) override {
        if (accepting_) accept_now();
    }

    void accept_now() {
        own_descriptor fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        const int failed = fd.get() < 0 ? errno : 0;
        if (concerns_the_connection(failed)) {
            return socket_.wait(watched_descriptor::readable);
        }
        std::error_code error = system_error_of(failed);
        std::unique_ptr<byte_stream> stream;
        if (!error) stream = make_socket_stream(on_, std::move(fd), error);
        complete(accepting_.take(), error, std::move(stream));
    }

    std::shared_ptr<event_loop::impl> on_;
    watched_descriptor socket_;
    pending<std::unique_ptr<byte_stream>> accepting_;
};

class listener final : public stream_listener {
public:
    listener(stream_address where, std::shared_ptr<waiting_socket> what)
        : where_(std::move(where)), what_(std::move(what)) {
        if (where_.kind == stream_address::kind_t::local) file_.emplace(where_.path);
    }
    const stream_address& where() const override { return where_; }
    op accept(completion<std::unique_ptr<byte_stream>> done) override {
        return what_->accept(std::move(done));
    }

private:
    stream_address where_;
    std::optional<socket_file> file_;
    std::shared_ptr<waiting_socket> what_;
};

std::optional<socket_address> address_of(const stream_address& at) {
    if (at.kind == stream_address::kind_t::local) return address_of_path(at.path);
    return address_in_figures(at.host == "localhost" ? "127.0.0.1" : at.host, at.port);
}

// Whether this is a Unix socket, and nobody listens at it any more. Connecting to another kind of
// file is refused in the same way.
bool is_left_over(const std::string& path, const socket_address& at) {
    struct ::stat found {};
    if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
    const auto probe = open_socket(AF_UNIX);
    return probe.get() >= 0 && ::connect(probe.get(), at.get(), at.size) != 0 &&
           errno == ECONNREFUSED;
}

int bind_to(int fd, const stream_address& at, const socket_address& address) {
    if (at.kind == stream_address::kind_t::tcp) {
        const int yes = 1;
        ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    }
    if (::bind(fd, address.get(), address.size) == 0) return 0;
    if (errno != EADDRINUSE || at.kind == stream_address::kind_t::tcp) return errno;
    if (!is_left_over(at.path, address)) return EADDRINUSE;
    ::unlink(at.path.c_str());
    return ::bind(fd, address.get(), address.size) == 0 ? 0 : errno;
}

std::uint16_t port_of(int fd) {
    socket_address own;
    own.size = sizeof own.storage;
    if (::getsockname(fd, own.get(), &own.size) != 0) return 0;
    // The port lies at the same place in both families.
    return ntohs(reinterpret_cast<const ::sockaddr_in*>(own.get())->sin_port);
}

}  // namespace

std::unique_ptr<stream_listener> listen_at(const std::shared_ptr<event_loop::impl>& on,
                                           const stream_address& at, std::error_code& error) {
    error.clear();
    const auto address = address_of(at);
    if (!address) {
        error = std::make_error_code(std::errc::invalid_argument);
        return nullptr;
    }
    auto fd = open_socket(address->family());
    if (fd.get() < 0) {
        error = system_error_of(errno);
        return nullptr;
    }
    error = system_error_of(bind_to(fd.get(), at, *address));
    if (!error && ::listen(fd.get(), queue_most) != 0) error = system_error_of(errno);
    if (error) return nullptr;
    auto where = at;
    if (at.kind == stream_address::kind_t::tcp) where.port = port_of(fd.get());
    auto made = std::make_shared<waiting_socket>(on, std::move(fd), error);
    if (error) return nullptr;
    return std::make_unique<listener>(std::move(where), std::move(made));
}

}  // namespace trinco::detail
