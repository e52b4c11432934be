// A real loop with sockets for tests, whose answers a test waits for; each test ends with as many
// descriptors as it began with.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/event_loop.hpp"
#include "net/socket_factory.hpp"

namespace trinco::detail::test {

using namespace std::chrono_literals;
constexpr auto patience = 20s;  // after which a test has failed

inline std::size_t open_descriptors() {
    std::size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        n += entry.is_symlink() ? 1 : 0;
    }
    return n - 1;  // the listing's own
}

// An answer that comes on the loop's thread and is waited for on the test's.
template <class T>
class awaited {
public:
    // What a completion says; may be asked for again when the last one has come.
    template <class Given = T>
    completion<Given> next() {
        const std::lock_guard hold(state_->m);
        state_->came = false;
        return [state = state_](std::error_code error, Given value) {
            const std::lock_guard hold2(state->m);
            state->error = error;
            state->value = T(std::move(value));
            state->came = true;
            ++state->times;
            state->changed.notify_all();
        };
    }
    [[nodiscard]] bool wait(std::chrono::milliseconds bound = patience) {
        std::unique_lock hold(state_->m);
        return state_->changed.wait_for(hold, bound, [this] { return state_->came; });
    }
    [[nodiscard]] bool came() const {
        const std::lock_guard hold(state_->m);
        return state_->came;
    }
    [[nodiscard]] int times() const {
        const std::lock_guard hold(state_->m);
        return state_->times;
    }
    [[nodiscard]] std::error_code error() const { return state_->error; }
    T& value() { return state_->value; }

private:
    struct shared {
        std::mutex m;
        std::condition_variable changed;
        bool came = false;
        int times = 0;
        std::error_code error;
        T value{};
    };
    std::shared_ptr<shared> state_ = std::make_shared<shared>();
};

using stream_ptr = std::unique_ptr<byte_stream>;

class stream_test : public testing::Test {
protected:
    stream_test() { open("a run"); }
    ~stream_test() override {
        close();
        // A thread that looks a name up may be about to end.
        const auto until = boot_clock::now() + patience;
        while (open_descriptors() != descriptors_ && boot_clock::now() < until) ::sched_yield();
        EXPECT_EQ(open_descriptors(), descriptors_);
    }

    // A new loop, with another way of looking names up.
    void open(const std::string&, name_lookup names = look_up_by_system) {
        on_.emplace();
        factory_ = make_socket_factory(*on_, std::move(names));
        on_->start();
    }
    void close() {
        on_loop([this] {
            near_.reset();
            far_.reset();
            listener_.reset();
            factory_.reset();
        });
        on_.reset();
    }

    template <class F>
    void on_loop(F f) {
        ASSERT_EQ(run_and_wait(*on_, patience, std::move(f)), std::error_code());
    }
    // Waits until everything that was posted before has run, and what that posted.
    void settle() {
        for (int i = 0; i < 3; ++i) on_loop([] {});
    }

    void listen(const stream_address& at = stream_address::tcp("127.0.0.1", 0)) {
        std::error_code error;
        on_loop([&] { listener_ = factory_->listen(at, error); });
        ASSERT_EQ(error, std::error_code());
        ASSERT_NE(listener_, nullptr);
    }
    // near_ and far_: both ends of one connection.
    void connect_both(const stream_address& at = stream_address::tcp("127.0.0.1", 0)) {
        listen(at);
        awaited<stream_ptr> accepted;
        awaited<stream_ptr> connected;
        op a;
        op c;
        on_loop([&] {
            a = listener_->accept(accepted.next());
            c = factory_->connect(listener_->where(), on_->now() + patience, connected.next());
        });
        ASSERT_TRUE(accepted.wait() && connected.wait());
        ASSERT_EQ(accepted.error(), std::error_code());
        ASSERT_EQ(connected.error(), std::error_code());
        on_loop([&] {
            far_ = std::move(accepted.value());
            near_ = std::move(connected.value());
            a.cancel();
            c.cancel();
        });
    }

    // One read, waited for.
    std::string read(byte_stream& from, std::error_code expected = {}) {
        awaited<std::string> got;
        op reading;
        on_loop([&] { reading = from.read_some(got.next<std::string_view>()); });
        EXPECT_TRUE(got.wait());
        EXPECT_EQ(got.error(), expected);
        on_loop([&] { reading.cancel(); });
        return got.value();
    }
    // Reads until it has so many bytes, or the end.
    std::string read_all(byte_stream& from, std::size_t bytes) {
        std::string all;
        while (all.size() < bytes) {
            const auto part = read(from);
            if (part.empty()) break;
            all += part;
        }
        return all;
    }
    void write(byte_stream& to, std::string bytes, std::error_code expected = {}) {
        awaited<std::size_t> done;
        op writing;
        const auto size = bytes.size();
        on_loop([&] { writing = to.write(std::move(bytes), done.next()); });
        ASSERT_TRUE(done.wait());
        EXPECT_EQ(done.error(), expected);
        EXPECT_EQ(done.value(), expected ? 0U : size);
        on_loop([&] { writing.cancel(); });
    }

    const std::size_t descriptors_ = open_descriptors();
    std::optional<event_loop> on_;
    std::unique_ptr<stream_factory> factory_;
    std::unique_ptr<stream_listener> listener_;
    stream_ptr near_;
    stream_ptr far_;
};

// A socket without Asio, blocking, for what a decent peer would not do.
class plain_socket {
public:
    explicit plain_socket(int fd) noexcept : fd_(fd) {}
    plain_socket(plain_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    plain_socket& operator=(plain_socket&&) = delete;
    ~plain_socket() { close(); }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

    // Listens on a free port of 127.0.0.1.
    static plain_socket listening(int queue, std::uint16_t& port) {
        plain_socket s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof at;
        EXPECT_EQ(::bind(s.fd_, reinterpret_cast<::sockaddr*>(&at), size), 0);
        EXPECT_TRUE(queue < 0 || ::listen(s.fd_, queue) == 0);
        EXPECT_EQ(::getsockname(s.fd_, reinterpret_cast<::sockaddr*>(&at), &size), 0);
        port = ntohs(at.sin_port);
        return s;
    }
    static plain_socket connected(std::uint16_t port) {
        plain_socket s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ::sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(port);
        EXPECT_EQ(::connect(s.fd_, reinterpret_cast<::sockaddr*>(&to), sizeof to), 0);
        return s;
    }
    // Ends the connection with a reset instead of an end.
    void reset() {
        const ::linger now{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close();
    }

private:
    int fd_;
};

}  // namespace trinco::detail::test
