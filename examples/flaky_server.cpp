#include "flaky_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace flaky {
namespace {

using namespace std::chrono;
using namespace std::chrono_literals;

constexpr std::size_t connections_max = 512;
constexpr std::size_t head_max = 16 * 1024;

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

class descriptor {
public:
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

descriptor listen_on(std::uint16_t port) {
    descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) fail("cannot open a socket");
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(fd.get(), reinterpret_cast<::sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), SOMAXCONN) != 0) {
        fail("cannot listen on 127.0.0.1");
    }
    return fd;
}

struct connection {
    descriptor fd;
    std::string head;
    bool hangs = false;
};

constexpr std::string_view well =
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
constexpr std::string_view unwell =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsick\n";

std::optional<milliseconds> parse_length(std::string_view text) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number > 86'400'000) return std::nullopt;
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (unit == "ms") return milliseconds(number);
    if (unit == "s") return seconds(number);
    return std::nullopt;
}

}  // namespace

std::string_view to_string(mood m) noexcept {
    switch (m) {
        case mood::healthy: return "healthy";
        case mood::hanging: return "hanging";
        case mood::failing: return "failing";
    }
    return "?";
}

std::variant<std::vector<phase>, std::string> parse_story(std::string_view text) {
    const auto quote = [](std::string_view word) { return "'" + std::string(word) + "'"; };
    if (text.empty()) return "the story is empty";
    std::vector<phase> story;
    for (bool more = true; more;) {
        const auto comma = text.find(',');
        const auto one = text.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) text.remove_prefix(comma + 1);
        const auto colon = one.find(':');
        const auto word = one.substr(0, colon);
        phase p;
        bool known = false;
        for (const auto m : {mood::healthy, mood::hanging, mood::failing}) {
            if (word != to_string(m)) continue;
            p.how = m;
            known = true;
        }
        if (!known) {
            return "the story has " + quote(word) + "; a phase is healthy, hanging or failing";
        }
        if (colon != std::string_view::npos) {
            const auto length = parse_length(one.substr(colon + 1));
            if (!length) {
                return "the length of " + quote(one) + " is " + quote(one.substr(colon + 1)) +
                       "; it must be like 500ms or 3s";
            }
            p.length = *length;
        } else if (more) {
            return "the phase " + quote(one) + " needs a length, as in " +
                   quote(std::string(one) + ":3s") + ": only the last one stays for ever";
        }
        story.push_back(p);
    }
    return story;
}

struct server::impl {
    impl(std::vector<phase> s, std::uint16_t port, watcher w)
        : story(std::move(s)),
          watch(std::move(w)),
          listener(listen_on(port)),
          wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (wake.get() < 0) fail("cannot create an event");
        thread = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }

    void serve(const std::stop_token& stop);
    int advance();  // the milliseconds until the next phase, -1: none
    void accept_all();
    bool read(connection& c);  // false: close it
    bool answer(connection& c);

    std::vector<phase> story;
    watcher watch;
    descriptor listener;
    descriptor wake;
    std::vector<connection> connections;
    std::size_t now_in = 0;
    steady_clock::time_point phase_began = steady_clock::now();
    std::jthread thread;  // last: it uses all of the above
};

int server::impl::advance() {
    while (now_in + 1 < story.size()) {
        const auto end = phase_began + story[now_in].length;
        const auto left = ceil<milliseconds>(end - steady_clock::now());
        if (left > 0ms) return static_cast<int>(left.count());
        phase_began = end;
        ++now_in;
        if (watch.on_mood) watch.on_mood(story[now_in].how);
    }
    return -1;
}

void server::impl::accept_all() {
    for (;;) {
        descriptor fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd.get() < 0) return;
        if (connections.size() < connections_max) connections.push_back({std::move(fd), {}, false});
    }
}

bool server::impl::answer(connection& c) {
    const auto how = story[now_in].how;
    if (watch.on_request) watch.on_request(how);
    if (how == mood::hanging) {
        c.hangs = true;  // until the client goes away
        return true;
    }
    const auto text = how == mood::healthy ? well : unwell;
    // A fresh connection takes these few bytes at once, or its client is gone.
    static_cast<void>(::send(c.fd.get(), text.data(), text.size(), MSG_NOSIGNAL));
    return false;
}

bool server::impl::read(connection& c) {
    std::array<char, 4096> buffer{};
    for (;;) {
        const auto n = ::recv(c.fd.get(), buffer.data(), buffer.size(), 0);
        if (n == 0) return false;
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        if (c.hangs) continue;
        c.head.append(buffer.data(), static_cast<std::size_t>(n));
        if (c.head.size() > head_max) return false;
        if (c.head.find("\r\n\r\n") != std::string::npos) return answer(c);
    }
}

void server::impl::serve(const std::stop_token& stop) {
    std::vector<::pollfd> waits;
    while (!stop.stop_requested()) {
        const int timeout = advance();
        waits.assign({{wake.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}});
        for (const auto& c : connections) waits.push_back({c.fd.get(), POLLIN, 0});
        if (::poll(waits.data(), waits.size(), timeout) < 0 && errno != EINTR) return;
        advance();  // a request belongs to the phase in which it is read
        std::vector<connection> open;
        for (std::size_t i = 0; i < connections.size(); ++i) {
            if (waits[i + 2].revents == 0 || read(connections[i])) {
                open.push_back(std::move(connections[i]));
            }
        }
        connections = std::move(open);
        if (waits[1].revents != 0) accept_all();
    }
}

server::server(std::vector<phase> story, std::uint16_t port, watcher watch)
    : impl_(std::make_unique<impl>(std::move(story), port, std::move(watch))) {}

server::~server() {
    impl_->thread.request_stop();
    const std::uint64_t one = 1;
    static_cast<void>(!::write(impl_->wake.get(), &one, sizeof one));
}

std::string server::url() const {
    ::sockaddr_in address{};
    ::socklen_t size = sizeof address;
    ::getsockname(impl_->listener.get(), reinterpret_cast<::sockaddr*>(&address), &size);
    return "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
}

}  // namespace flaky
