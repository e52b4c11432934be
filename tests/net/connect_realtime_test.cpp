// Connecting and listening, with the ways in which they fail.
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <future>
#include <thread>
#include <vector>

#include "stream_harness.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

class Connecting : public stream_test {
protected:
    // One attempt, waited for; the stream goes to near_.
    std::error_code connect(const stream_address& to, std::chrono::milliseconds within = patience) {
        awaited<stream_ptr> got;
        op connecting;
        on_loop([&] { connecting = factory_->connect(to, on_->now() + within, got.next()); });
        EXPECT_TRUE(got.wait());
        on_loop([&] {
            near_ = std::move(got.value());
            connecting.cancel();
        });
        EXPECT_EQ(near_ == nullptr, static_cast<bool>(got.error()));
        return got.error();
    }

    // A factory that knows these names only.
    void know(name_lookup names) {
        on_loop([&] { factory_ = make_socket_factory(*on_, std::move(names)); });
    }
};

TEST_F(Connecting, to_a_port_where_nobody_listens_is_refused) {
    std::uint16_t port = 0;
    const auto bound = plain_socket::listening(-1, port);
    EXPECT_EQ(connect(stream_address::tcp("127.0.0.1", port)), std::errc::connection_refused);
    EXPECT_EQ(connect_sentence(stream_address::tcp("127.0.0.1", 9),
                               std::make_error_code(std::errc::connection_refused)),
              "cannot connect to 127.0.0.1:9: connection refused");
}

TEST_F(Connecting, to_a_free_port_over_and_over_never_reaches_itself) {
    // A port that the system has chosen for connecting; going through them it comes to it again.
    ::sockaddr_in own{};
    {
        std::uint16_t port = 0;
        const auto there = plain_socket::listening(1, port);
        auto here = plain_socket::connected(port);
        ::socklen_t size = sizeof own;
        ASSERT_EQ(::getsockname(here.get(), reinterpret_cast<::sockaddr*>(&own), &size), 0);
        here.reset();
    }
    const auto to = stream_address::tcp("127.0.0.1", ntohs(own.sin_port));
    int left = 30'000;
    int refused = 0;
    awaited<int> all_done;
    op connecting;
    auto done = all_done.next();
    std::function<void()> once_more = [&] {
        if (left-- == 0) return done({}, 0);
        connecting = factory_->connect(to, on_->now() + patience, [&](auto error, stream_ptr got) {
            EXPECT_EQ(got, nullptr);
            refused += error == std::errc::connection_refused ? 1 : 0;
            if (got != nullptr) left = 0;
            once_more();
        });
    };
    on_loop([&] { once_more(); });
    ASSERT_TRUE(all_done.wait());
    EXPECT_EQ(refused, 30'000);
    on_loop([&] { connecting.cancel(); });
}

TEST_F(Connecting, to_a_black_hole_ends_by_the_deadline) {
    std::uint16_t port = 0;
    const auto hole = plain_socket::listening(0, port);
    // Its queue is full after one or two; what comes then gets no answer at all.
    std::vector<plain_socket> fillers;
    for (int i = 0; i < 4; ++i) {
        plain_socket s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        ::sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(port);
        ::connect(s.get(), reinterpret_cast<::sockaddr*>(&to), sizeof to);
        fillers.push_back(std::move(s));
    }
    const auto begin = boot_clock::now();
    EXPECT_EQ(connect(stream_address::tcp("127.0.0.1", port), 100ms), std::errc::timed_out);
    EXPECT_GE(boot_clock::now() - begin, 100ms);
    EXPECT_LT(boot_clock::now() - begin, 5s);  // the system itself tries for minutes
}

TEST_F(Connecting, with_a_deadline_that_has_passed_times_out) {
    listen();
    EXPECT_EQ(connect(listener_->where(), -1s), std::errc::timed_out);
}

TEST_F(Connecting, by_name_looks_up_by_the_system) {
    listen();
    const auto port = listener_->where().port;
    EXPECT_EQ(connect(stream_address::tcp("localhost", port)), std::error_code());
    EXPECT_EQ(connect(stream_address::tcp("no such host", port)), net_errc::no_such_host);
}

TEST_F(Connecting, tries_every_address_until_one_answers) {
    listen();
    const auto port = listener_->where().port;
    std::atomic<int> asked = 0;
    know([&](const std::string& host) -> name_answer {
        ++asked;
        EXPECT_EQ(host, "shop.example.com");
        EXPECT_NE(std::this_thread::get_id(), std::thread::id());
        return {{}, {"127.0.0.2", "::1", "not figures", "127.0.0.3", "127.0.0.1"}};
    });
    EXPECT_EQ(connect(stream_address::tcp("shop.example.com", port)), std::error_code());
    EXPECT_EQ(asked, 1);
    know([](const std::string&) -> name_answer { return {{}, {"127.0.0.2", "127.0.0.3"}}; });
    EXPECT_EQ(connect(stream_address::tcp("x.example.com", port)), std::errc::connection_refused);
    know([](const std::string&) -> name_answer { return {}; });
    EXPECT_EQ(connect(stream_address::tcp("x.example.com", port)), net_errc::no_such_host);
    know([](const std::string&) -> name_answer { throw std::bad_alloc(); });
    EXPECT_EQ(connect(stream_address::tcp("x.example.com", port)), net_errc::names_unavailable);
}

TEST_F(Connecting, does_not_wait_long_for_an_address_that_is_a_black_hole) {
    std::uint16_t port = 0;
    const auto well = plain_socket::listening(8, port);  // 127.0.0.1
    plain_socket hole(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    ASSERT_EQ(::inet_pton(AF_INET, "127.0.0.2", &at.sin_addr), 1);
    ASSERT_EQ(::bind(hole.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(hole.get(), 0), 0);
    std::vector<plain_socket> fillers;
    for (int i = 0; i < 4; ++i) {
        fillers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        ::connect(fillers.back().get(), reinterpret_cast<::sockaddr*>(&at), sizeof at);
    }
    know([](const std::string&) -> name_answer { return {{}, {"127.0.0.2", "127.0.0.1"}}; });
    const auto begin = boot_clock::now();
    EXPECT_EQ(connect(stream_address::tcp("x.example.com", port)), std::error_code());
    EXPECT_LT(boot_clock::now() - begin, 5s);
}

TEST_F(Connecting, a_name_server_that_hangs_holds_up_neither_the_loop_nor_the_end) {
    std::promise<void> let_go;
    const auto gate = let_go.get_future().share();
    std::atomic<int> begun = 0;
    std::atomic<int> ended = 0;
    know([&, gate](const std::string&) -> name_answer {
        ++begun;
        gate.wait();
        ++ended;
        return {{}, {"127.0.0.1"}};
    });
    std::vector<awaited<stream_ptr>> got(6);
    std::vector<op> connecting(6);
    on_loop([&] {
        for (std::size_t i = 0; i < got.size(); ++i) {
            connecting[i] = factory_->connect(stream_address::tcp("hangs.example.com", 9),
                                              on_->now() + 50ms, got[i].next());
        }
    });
    for (auto& one : got) {
        ASSERT_TRUE(one.wait());
        EXPECT_EQ(one.error(), std::errc::timed_out);
    }
    EXPECT_LE(begun, 2);  // at most two threads, whoever asks
    on_loop([&] { connecting.clear(); });
    close();  // does not wait for them either
    EXPECT_EQ(ended, 0);
    let_go.set_value();
    while (ended < begun) std::this_thread::yield();
    open("another, so that the fixture can close it");
}

TEST_F(Connecting, dropped_at_any_point_answers_nothing_and_leaks_nothing) {
    listen();
    const auto to = listener_->where();
    know([](const std::string&) -> name_answer { return {{}, {"127.0.0.1"}}; });
    awaited<stream_ptr> never;
    std::optional<op> connecting;
    const auto begin = [&](const char* host) {
        connecting = factory_->connect(stream_address::tcp(host, to.port), on_->now() + patience,
                                       never.next());
    };
    for (int turns = 0; turns < 8; ++turns) {  // inside the call, and after each further turn
        for (const char* host : {"127.0.0.1", "x.example.com"}) {
            awaited<int> dropped;
            std::function<void(int)> later = [&](int left) {
                if (left > 0) return on_->post([&, left] { later(left - 1); });
                connecting.reset();
                dropped.next()({}, 0);
            };
            on_loop([&] {
                begin(host);
                later(turns);
            });
            ASSERT_TRUE(dropped.wait());
        }
    }
    settle();
    // Some may have come through before they were dropped; those are the listener's business.
    on_loop([&] { never.value().reset(); });
}

TEST_F(Connecting, to_unix_sockets_fails_with_a_reason) {
    EXPECT_EQ(connect(stream_address::local("/nonexistent/socket")),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(connect(stream_address::local(std::string(200, 'x'))), std::errc::filename_too_long);
    EXPECT_EQ(text_of(stream_address::local("/run/x.sock")), "unix:/run/x.sock");
    EXPECT_EQ(text_of(stream_address::tcp("::1", 80)), "[::1]:80");
}

class Listening : public Connecting {
protected:
    Listening() {
        std::string name = (std::filesystem::temp_directory_path() / "trinco-net-XXXXXX").string();
        EXPECT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    ~Listening() override {
        on_loop([this] { listener_.reset(); });
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    std::error_code try_to_listen(const stream_address& at) {
        std::error_code error;
        std::unique_ptr<stream_listener> another;
        on_loop([&] {
            another = factory_->listen(at, error);
            EXPECT_EQ(another == nullptr, static_cast<bool>(error));
            another.reset();
        });
        return error;
    }
    std::filesystem::path folder_;
};

TEST_F(Listening, says_why_it_cannot) {
    listen();
    EXPECT_NE(listener_->where().port, 0);
    EXPECT_EQ(try_to_listen(listener_->where()), std::errc::address_in_use);
    EXPECT_EQ(try_to_listen(stream_address::tcp("shop.example.com", 0)),
              std::errc::invalid_argument);
    EXPECT_EQ(try_to_listen(stream_address::tcp("localhost", 0)), std::error_code());
    EXPECT_EQ(try_to_listen(stream_address::local("")), std::errc::invalid_argument);
    EXPECT_EQ(try_to_listen(stream_address::local((folder_ / "none" / "s").string())),
              std::errc::no_such_file_or_directory);
}

TEST_F(Listening, replaces_a_unix_socket_that_nobody_listens_at) {
    const auto path = (folder_ / "s").string();
    {
        plain_socket left(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ::sockaddr_un at{};
        at.sun_family = AF_UNIX;
        path.copy(at.sun_path, path.size());
        ASSERT_EQ(::bind(left.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
    }
    ASSERT_TRUE(std::filesystem::exists(path));
    listen(stream_address::local(path));
    EXPECT_EQ(try_to_listen(stream_address::local(path)), std::errc::address_in_use);
    EXPECT_EQ(connect(stream_address::local(path)), std::error_code());  // still ours
}

TEST_F(Listening, never_replaces_what_is_no_socket) {
    const auto path = folder_ / "precious";
    std::ofstream(path) << "x";
    const auto link = folder_ / "link";
    std::filesystem::create_symlink(path, link);
    EXPECT_EQ(try_to_listen(stream_address::local(path.string())), std::errc::address_in_use);
    EXPECT_EQ(try_to_listen(stream_address::local(link.string())), std::errc::address_in_use);
    EXPECT_EQ(std::filesystem::file_size(path), 1U);
    EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(Listening, connecting_to_a_full_unix_queue_waits_for_a_place) {
    const auto path = (folder_ / "s").string();
    plain_socket full(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, path.size());
    ASSERT_EQ(::bind(full.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
    ASSERT_EQ(::listen(full.get(), 0), 0);
    plain_socket first(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(first.get(), reinterpret_cast<::sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(connect(stream_address::local(path), 50ms), std::errc::timed_out);
    awaited<stream_ptr> got;
    op connecting;
    on_loop([&] {
        connecting =
            factory_->connect(stream_address::local(path), on_->now() + patience, got.next());
    });
    settle();
    EXPECT_FALSE(got.came());
    const plain_socket accepted(::accept4(full.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(got.wait());
    EXPECT_EQ(got.error(), std::error_code());
    on_loop([&] {
        got.value().reset();
        connecting.cancel();
    });
}

TEST_F(Listening, a_dropped_accept_loses_no_connection_and_a_second_one_is_refused) {
    listen();
    awaited<stream_ptr> dropped;
    awaited<stream_ptr> first;
    awaited<stream_ptr> second;
    op a;
    op b;
    on_loop([&] {
        a = listener_->accept(dropped.next());
        a.cancel();
        a = listener_->accept(first.next());
        b = listener_->accept(second.next());
    });
    ASSERT_TRUE(second.wait());
    EXPECT_EQ(second.error(), errc::busy);
    const auto peer = plain_socket::connected(listener_->where().port);
    ASSERT_TRUE(first.wait());
    EXPECT_EQ(first.error(), std::error_code());
    EXPECT_EQ(dropped.times(), 0);
    on_loop([&] {
        first.value().reset();
        a.cancel();
        b.cancel();
    });
}

}  // namespace
}  // namespace trinco::detail::test
