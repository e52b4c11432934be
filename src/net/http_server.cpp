#include "net/http_server.hpp"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "wire/http1/http_reader.hpp"
#include "wire/http1/http_writer.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto accept_pause = 100ms;  // when this process has no descriptors left
// How long, and for how many bytes, a client that was refused is still listened to: closing with
// unread bytes would take the answer back.
constexpr auto refused_for = 1s;
constexpr std::size_t refused_most = 1024 * 1024;

}  // namespace

struct http_server::impl : std::enable_shared_from_this<http_server::impl> {
    impl(loop& l, std::unique_ptr<stream_listener> at, std::function<void(http_exchange)> h,
         const http_server_options& o)
        : on(l), listener(std::move(at)), handler(std::move(h)), options(o) {}

    loop& on;
    std::unique_ptr<stream_listener> listener;
    const std::function<void(http_exchange)> handler;
    const http_server_options options;
    std::set<std::shared_ptr<http_connection>> connections;
    bool accepts = false;
    op accepting;
    op pause;

    void accept_next();
    void gone(const std::shared_ptr<http_connection>& which);
};

class http_connection : public std::enable_shared_from_this<http_connection> {
public:
    http_connection(std::shared_ptr<http_server::impl> server, std::unique_ptr<byte_stream> stream)
        : server_(server),
          on_(server->on),
          options_(server->options),
          stream_(std::move(stream)),
          reader_(options_.limits) {}

    void serve() {
        wait(options_.idle_for);
        next();
    }
    void answer(const http_request& to, http_response response);
    void on_gone(unique_function<void()> f) { gone_ = std::move(f); }
    void close();

private:
    void wait(boot_clock::duration d) {
        timer_ = on_.after(d, [this] { close(); });
    }
    void next();
    void read();
    void came(std::string_view bytes);
    void handle(http_request request);
    void refuse(const http_fault& fault);
    void write(std::string bytes, unique_function<void()> then);
    void listen_on(std::size_t left);

    const std::weak_ptr<http_server::impl> server_;
    loop& on_;
    const http_server_options options_;
    std::unique_ptr<byte_stream> stream_;
    http_request_reader reader_;
    std::string ahead_;  // came while a request was handled
    bool handling_ = false;
    bool reads_ = false;
    bool ended_ = false;  // the client sends no more
    unique_function<void()> gone_;
    op timer_;
    op reading_;
    op writing_;
};

// The next request, from what has been read or what will be.
void http_connection::next() {
    const auto alive = shared_from_this();
    if (auto request = reader_.next()) return handle(std::move(*request));
    if (const auto* fault = reader_.fault()) return refuse(*fault);
    if (ended_) return close();
    if (!reader_.idle()) wait(options_.request_within);
    read();
}

void http_connection::read() {
    if (std::exchange(reads_, true)) return;
    reading_ = stream_->read_some([this](std::error_code error, std::string_view bytes) {
        const auto alive = shared_from_this();
        reads_ = false;
        if (error) {
            ended_ = true;
            if (auto tell = std::exchange(gone_, nullptr)) tell();
            return close();
        }
        came(bytes);
    });
}

void http_connection::came(std::string_view bytes) {
    const bool first = reader_.idle();
    ended_ = bytes.empty();
    if (handling_) {
        // One read ahead, mostly to see an end. More is read when this request is answered.
        ahead_ = std::string(bytes);
        auto tell = ended_ ? std::exchange(gone_, nullptr) : unique_function<void()>();
        if (tell) tell();
        return;
    }
    if (ended_) {
        reader_.end();
    } else {
        reader_.feed(bytes);
    }
    if (first && !reader_.idle()) wait(options_.request_within);
    if (auto request = reader_.next()) return handle(std::move(*request));
    if (const auto* fault = reader_.fault()) return ended_ ? close() : refuse(*fault);
    if (ended_) return close();
    read();
}

void http_connection::handle(http_request request) {
    const auto server = server_.lock();
    if (!server) return;
    handling_ = true;
    timer_.cancel();
    if (!ended_) read();
    server->handler(http_exchange(weak_from_this(), std::move(request)));
}

void http_connection::answer(const http_request& to, http_response response) {
    if (!handling_) return;
    gone_ = nullptr;
    response.minor_version = to.minor_version;
    response.keep_alive = response.keep_alive && to.keep_alive && !ended_;
    const bool goes_on = response.keep_alive;
    auto bytes = bytes_of(response, to.method == "HEAD");
    if (std::holds_alternative<http_fault>(bytes)) {
        bytes = bytes_of(http_response{.status = 500, .keep_alive = goes_on});
    }
    write(std::move(std::get<std::string>(bytes)), [this, goes_on] {
        handling_ = false;
        if (!goes_on) {
            stream_->finish();
            return listen_on(refused_most);
        }
        wait(options_.idle_for);
        if (!ahead_.empty()) reader_.feed(std::exchange(ahead_, {}));
        next();
    });
}

void http_connection::refuse(const http_fault& fault) {
    handling_ = true;  // what comes meanwhile is not looked at
    timer_.cancel();
    auto bytes = bytes_of(http_response{.status = status_for(fault),
                                        .fields = {{"Content-Type", "text/plain"}},
                                        .body = fault.sentence + "\n",
                                        .keep_alive = false});
    write(std::move(std::get<std::string>(bytes)), [this] {
        stream_->finish();
        listen_on(refused_most);
    });
}

void http_connection::write(std::string bytes, unique_function<void()> then) {
    wait(options_.answer_within);
    writing_ = stream_->write(std::move(bytes),
                              [this, then = std::move(then)](std::error_code error, auto) mutable {
                                  const auto alive = shared_from_this();
                                  if (error) return close();
                                  then();
                              });
}

// Until the client closes, too.
void http_connection::listen_on(std::size_t left) {
    if (ended_) return close();
    wait(refused_for);
    reading_.cancel();
    reading_ = stream_->read_some([this, left](std::error_code error, std::string_view bytes) {
        const auto alive = shared_from_this();
        if (error || bytes.empty() || bytes.size() > left) return close();
        listen_on(left - bytes.size());
    });
}

void http_connection::close() {
    const auto alive = shared_from_this();
    timer_.cancel();
    reading_.cancel();
    writing_.cancel();
    stream_->close();
    if (const auto server = server_.lock()) server->gone(alive);
}

void http_server::impl::accept_next() {
    if (connections.size() >= options.connections_most || std::exchange(accepts, true)) return;
    accepting = listener->accept([this](std::error_code error, std::unique_ptr<byte_stream> s) {
        const auto alive = shared_from_this();
        accepts = false;
        if (error) {
            pause = on.after(accept_pause, [this] { accept_next(); });
            return;
        }
        const auto made = std::make_shared<http_connection>(alive, std::move(s));
        connections.insert(made);
        made->serve();
        accept_next();
    });
}

void http_server::impl::gone(const std::shared_ptr<http_connection>& which) {
    connections.erase(which);
    accept_next();
}

http_server::http_server(loop& on, std::unique_ptr<stream_listener> at,
                         std::function<void(http_exchange)> handler,
                         const http_server_options& options)
    : impl_(std::make_shared<impl>(on, std::move(at), std::move(handler), options)) {
    impl_->accept_next();
}

http_server::~http_server() {
    impl_->accepting.cancel();
    impl_->pause.cancel();
    impl_->accepts = true;  // for good
    const auto closed = std::exchange(impl_->connections, {});
}

const stream_address& http_server::where() const {
    return impl_->listener->where();
}

std::size_t http_server::connections() const {
    return impl_->connections.size();
}

http_exchange::http_exchange(std::weak_ptr<http_connection> from, http_request request) noexcept
    : from_(std::move(from)), request_(std::move(request)) {}

http_exchange::~http_exchange() {
    if (const auto connection = std::exchange(from_, {}).lock()) connection->close();
}

void http_exchange::answer(const http_response& response) {
    if (const auto connection = std::exchange(from_, {}).lock()) {
        connection->answer(request_, response);
    }
}

void http_exchange::on_gone(unique_function<void()> f) {
    if (const auto connection = from_.lock()) connection->on_gone(std::move(f));
}

}  // namespace trinco::detail
