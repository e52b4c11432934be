// Real connections for a loop that a test turns by hand (tests/contract/driven_loop.hpp): a thread
// of each connection reads and posts what came. With the faults of a network: what goes one way or
// the other can be lost, and then the connection ends when the fault does, as TCP's would.
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "net/stream_factory.hpp"

namespace trinco::detail::test {

class threaded_streams final : public stream_factory {
public:
    explicit threaded_streams(loop& on) : on_(on) {}

    void drop_replies(bool drop) { set(faults_->replies, drop); }
    void drop_requests(bool drop) { set(faults_->requests, drop); }

    op connect(const stream_address& to, deadline,
               completion<std::unique_ptr<byte_stream>> done) override {
        std::error_code error;
        const int socket = connected(to, error);
        std::unique_ptr<stream> made;
        if (socket >= 0) {
            auto w = std::make_shared<wire>(on_, faults_, socket);
            wires_.push_back(w);
            made = std::make_unique<stream>(std::move(w));
        }
        auto interest = std::make_shared<completion<std::unique_ptr<byte_stream>>>(std::move(done));
        on_.post([interest, error, made = std::move(made)]() mutable {
            if (*interest) (*interest)(error, std::move(made));
        });
        return op([interest]() noexcept { interest->reset(); });
    }
    std::unique_ptr<stream_listener> listen(const stream_address&,
                                            std::error_code& error) override {
        error = std::make_error_code(std::errc::not_supported);
        return nullptr;
    }

private:
    struct faults {
        bool replies = false;
        bool requests = false;
    };

    // The loop's thread, but for the reader's.
    struct wire : std::enable_shared_from_this<wire> {
        struct piece {
            std::error_code error;
            std::string bytes;
        };

        wire(loop& l, std::shared_ptr<faults> f, int s) : on(l), drop(std::move(f)), socket(s) {}
        void begin() {
            reader = std::thread([this, self = weak_from_this()] {
                std::array<char, 65'536> bytes;
                for (;;) {
                    const auto n = ::recv(socket, bytes.data(), bytes.size(), 0);
                    piece p;
                    if (n < 0) p.error = {errno, std::generic_category()};
                    if (n > 0) p.bytes.assign(bytes.data(), static_cast<std::size_t>(n));
                    on.post([self, p = std::move(p)]() mutable {
                        if (const auto w = self.lock()) w->came(std::move(p));
                    });
                    if (n <= 0) return;
                }
            });
        }
        ~wire() {
            ::shutdown(socket, SHUT_RDWR);
            if (reader.joinable()) reader.join();
            ::close(socket);
        }
        void came(piece p) {
            if (drop->replies) {
                lossy = true;
                return;
            }
            said.push_back(std::move(p));
            pump();
        }
        void pump() {
            if (!reading || said.empty()) return;
            const piece p = said.front();
            if (!p.bytes.empty()) said.pop_front();  // an end stays
            auto done = std::move(reading);
            done(p.error, p.bytes);
        }
        void reset() {
            said = {{std::make_error_code(std::errc::connection_reset), {}}};
            pump();
        }

        loop& on;
        std::shared_ptr<faults> drop;
        const int socket;
        std::thread reader;
        std::deque<piece> said;
        completion<std::string_view> reading;
        std::uint64_t reads = 0;
        bool lossy = false;
    };

    class stream final : public byte_stream {
    public:
        explicit stream(std::shared_ptr<wire> w) : wire_(std::move(w)) { wire_->begin(); }
        ~stream() override { wire_->reading.reset(); }
        op read_some(completion<std::string_view> done) override {
            wire_->reading = std::move(done);
            const std::weak_ptr weak = wire_;
            wire_->on.post([weak] {
                if (const auto w = weak.lock()) w->pump();
            });
            return op([weak, mine = ++wire_->reads] {
                const auto w = weak.lock();
                if (w && mine == w->reads) w->reading.reset();
            });
        }
        op write(std::string bytes, completion<std::size_t> done) override {
            const auto size = bytes.size();
            std::error_code error;
            if (wire_->drop->requests) {
                wire_->lossy = true;
            } else {
                error = sent(bytes);
            }
            auto interest = std::make_shared<completion<std::size_t>>(std::move(done));
            wire_->on.post([interest, error, size] {
                if (*interest) (*interest)(error, error ? 0 : size);
            });
            return op([interest]() noexcept { interest->reset(); });
        }
        void finish() override { ::shutdown(wire_->socket, SHUT_WR); }
        void close() override { ::shutdown(wire_->socket, SHUT_RDWR); }

    private:
        std::error_code sent(std::string_view rest) const {
            while (!rest.empty()) {
                const auto n = ::send(wire_->socket, rest.data(), rest.size(), MSG_NOSIGNAL);
                if (n <= 0) return {errno, std::generic_category()};
                rest.remove_prefix(static_cast<std::size_t>(n));
            }
            return {};
        }

        std::shared_ptr<wire> wire_;
    };

    void set(bool& fault, bool drop) {
        fault = drop;
        std::erase_if(wires_, [](const auto& w) { return w.expired(); });
        const auto all = wires_;
        for (const auto& one : all) {
            if (const auto w = one.lock(); w && !drop && std::exchange(w->lossy, false)) w->reset();
        }
    }

    static int connected(const stream_address& to, std::error_code& error) {
        if (to.kind == stream_address::kind_t::tcp) return connected_by_tcp(to, error);
        const int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ::sockaddr_un at{};
        at.sun_family = AF_UNIX;
        to.path.copy(at.sun_path, sizeof at.sun_path - 1);
        return finished(s, reinterpret_cast<const ::sockaddr*>(&at), sizeof at, error);
    }
    static int connected_by_tcp(const stream_address& to, std::error_code& error) {
        ::addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        ::addrinfo* found = nullptr;
        if (::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0) {
            error = std::make_error_code(std::errc::host_unreachable);
            return -1;
        }
        const int s = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int connected_socket = finished(s, found->ai_addr, found->ai_addrlen, error);
        ::freeaddrinfo(found);
        return connected_socket;
    }
    static int finished(int s, const ::sockaddr* at, ::socklen_t size, std::error_code& error) {
        if (s >= 0 && ::connect(s, at, size) == 0) return s;
        error = {errno, std::generic_category()};
        if (s >= 0) ::close(s);
        return -1;
    }

    loop& on_;
    std::shared_ptr<faults> faults_ = std::make_shared<faults>();
    std::vector<std::weak_ptr<wire>> wires_;
};

}  // namespace trinco::detail::test
