#include "net/socket_stream.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "net/pending.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t read_most = 64 * 1024;
constexpr int unacknowledged_most_ms = 30'000;

// Harmless errors on a Unix socket, which knows neither.
void set_up(int fd) {
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_most_ms,
                 sizeof unacknowledged_most_ms);
}

bool is_not_ready(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

class connection final : watched_descriptor::waiter,
                         public loop_member,
                         public std::enable_shared_from_this<connection> {
public:
    connection(std::shared_ptr<event_loop::impl> on, own_descriptor fd, std::error_code& error)
        : on_(std::move(on)), socket_(on_, std::move(fd), *this, error) {
        on_->members.insert(this);
    }
    connection(const connection&) = delete;
    ~connection() {
        if (!on_->foreign()) on_->members.erase(this);
    }

    op read(completion<std::string_view> done, bool on);
    op write(std::string bytes, completion<std::size_t> done);
    void finish();
    void close();
    void abandon() noexcept;  // the stream is gone: nothing is answered
    void loop_ended() noexcept override;

private:
    void ready_for(watched_descriptor::event what) override;
    void read_now();
    void tell_each(std::string_view bytes);
    void drop_read(std::uint64_t ticket);
    void write_now();
    void written_later(std::error_code error);
    void drop_write(std::uint64_t ticket);
    void after_write();
    void read_shut_down();

    std::shared_ptr<event_loop::impl> on_;
    watched_descriptor socket_;
    bool reads_on_ = false;           // who reads is told of all that comes
    const std::error_code no_error_;  // making one asks the system's library for its category
    pending<std::string_view> reading_;
    pending<std::size_t> writing_;
    std::uint64_t write_ticket_ = 0;
    std::string bytes_;  // being written
    std::size_t sent_ = 0;
    bool torn_ = false;  // a write was dropped in the middle
    bool finished_ = false;
    bool closed_ = false;
};

op connection::read(completion<std::string_view> done, bool on) {
    if (!on_->runs()) return {};
    if (closed_) return refuse(*on_, std::move(done), errc::shut_down);
    if (reading_ || reads_on_) return refuse(*on_, std::move(done), errc::busy);
    const auto ticket = reading_.put(std::move(done));
    reads_on_ = on;
    socket_.wait(watched_descriptor::readable);
    return op([weak = weak_from_this(), ticket] {
        if (const auto self = weak.lock()) self->drop_read(ticket);
    });
}

// Dropped: what has come stays for the next read.
void connection::ready_for(watched_descriptor::event what) {
    if (what == watched_descriptor::readable && reading_) return read_now();
    if (what == watched_descriptor::writable && writing_) return write_now();
}

void connection::read_now() {
    auto& into = on_->scratch;
    if (into.empty()) into.resize(read_most);
    const auto n = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (n < 0) {
        const int error = errno;
        if (is_not_ready(error)) return socket_.wait(watched_descriptor::readable);
        reads_on_ = false;
        return complete<std::string_view>(reading_.take(), system_error_of(error), {});
    }
    const std::string_view bytes(into.data(), static_cast<std::size_t>(n));
    if (n == 0) reads_on_ = false;
    if (reads_on_) return tell_each(bytes);
    complete<std::string_view>(reading_.take(), {}, bytes);
}

// It may end its op inside, and all that keeps this alive.
void connection::tell_each(std::string_view bytes) {
    const auto alive = shared_from_this();
    socket_.wait(watched_descriptor::readable);
    auto each = reading_.take();
    try {
        each(no_error_, bytes);
    } catch (...) {
        report_failure();
    }
    if (!reads_on_ || reading_) return;
    reading_.put_back(std::move(each));
    if (closed_) read_shut_down();
}

void connection::drop_read(std::uint64_t ticket) {
    if (on_->foreign() || !reading_.was(ticket)) return;
    reads_on_ = false;
    const auto dropped = reading_.take();
}

op connection::write(std::string bytes, completion<std::size_t> done) {
    if (!on_->runs()) return {};
    if (closed_ || finished_) return refuse(*on_, std::move(done), errc::shut_down);
    if (torn_) return refuse(*on_, std::move(done), errc::canceled);
    if (writing_) return refuse(*on_, std::move(done), errc::busy);
    bytes_ = std::move(bytes);
    sent_ = 0;
    const auto ticket = write_ticket_ = writing_.put(std::move(done));
    write_now();
    return op([weak = weak_from_this(), ticket] {
        if (const auto self = weak.lock()) self->drop_write(ticket);
    });
}

void connection::write_now() {
    while (sent_ < bytes_.size()) {
        const auto n = ::send(socket_.get(), bytes_.data() + sent_, bytes_.size() - sent_,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            sent_ += static_cast<std::size_t>(n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return socket_.wait(watched_descriptor::writable);
        } else if (errno != EINTR) {
            return written_later(system_error_of(errno));
        }
    }
    written_later({});
}

void connection::written_later(std::error_code error) {
    on_->post([weak = weak_from_this(), ticket = write_ticket_, error] {
        const auto self = weak.lock();
        if (!self || !self->writing_.is(ticket)) return;
        auto done = self->writing_.take();
        const auto size = self->bytes_.size();
        self->after_write();
        if (error) {
            done(error, 0);
        } else if (self->closed_) {
            done(errc::shut_down, 0);
        } else {
            done({}, size);
        }
    });
}

void connection::drop_write(std::uint64_t ticket) {
    if (on_->foreign() || !writing_.is(ticket)) return;
    torn_ = sent_ > 0 && sent_ < bytes_.size();
    const auto dropped = writing_.take();
    after_write();
}

void connection::after_write() {
    bytes_ = {};
    sent_ = 0;
    if (finished_ && !closed_) ::shutdown(socket_.get(), SHUT_WR);
}

void connection::finish() {
    if (!on_->runs() || closed_ || std::exchange(finished_, true)) return;
    if (!writing_) ::shutdown(socket_.get(), SHUT_WR);
}

void connection::close() {
    if (!on_->runs() || std::exchange(closed_, true)) return;
    socket_.close();
    if (writing_) written_later(errc::shut_down);
    if (reading_) read_shut_down();
}

void connection::read_shut_down() {
    on_->post([weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self || !self->reading_) return;
        self->reads_on_ = false;
        self->reading_.take()(errc::shut_down, {});
    });
}

void connection::abandon() noexcept {
    closed_ = true;
    reads_on_ = false;
    socket_.close();
    const auto read = reading_.take();
    const auto write = writing_.take();
}

void connection::loop_ended() noexcept {
    const auto alive = shared_from_this();  // the completions may own the stream
    reads_on_ = false;
    const auto read = reading_.take();
    const auto write = writing_.take();
}

class socket_stream final : public byte_stream {
public:
    explicit socket_stream(std::shared_ptr<connection> what) noexcept : what_(std::move(what)) {}
    ~socket_stream() override { what_->abandon(); }

    op read_some(completion<std::string_view> done) override {
        return what_->read(std::move(done), false);
    }
    op read_each(completion<std::string_view> each) override {
        return what_->read(std::move(each), true);
    }
    op write(std::string bytes, completion<std::size_t> done) override {
        return what_->write(std::move(bytes), std::move(done));
    }
    void finish() override { what_->finish(); }
    void close() override { what_->close(); }

private:
    std::shared_ptr<connection> what_;
};

}  // namespace

std::unique_ptr<byte_stream> make_socket_stream(const std::shared_ptr<event_loop::impl>& on,
                                                own_descriptor connected, std::error_code& error) {
    set_up(connected.get());
    auto made = std::make_shared<connection>(on, std::move(connected), error);
    if (error) return nullptr;
    return std::make_unique<socket_stream>(std::move(made));
}

}  // namespace trinco::detail
