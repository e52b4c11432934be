// TLS over real sockets, against OpenSSL's own server and against peers that do not behave.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "net/tls_factory.hpp"
#include "stream_harness.hpp"
#include "tls_world.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

const certificates& papers() {
    static const certificates all;
    return all;
}

class Tls : public stream_test {
protected:
    Tls() {
        EXPECT_TRUE(papers().made());
        close();
        open("every name is this machine", [](const std::string&) {
            return name_answer{{}, {"127.0.0.1"}};
        });
        on_loop([this] { tls_ = make_tls_factory(*on_, *factory_); });
    }
    ~Tls() override {
        on_loop([this] {
            near_.reset();
            tls_.reset();
        });
    }
    static stream_address to(const std::string& host, std::uint16_t port) {
        auto address = stream_address::tcp(host, port);
        address.tls = tls_settings{.ca_file = papers().at("ca.pem")};
        return address;
    }
    // near_, or an error.
    std::error_code connect(const stream_address& to, std::chrono::milliseconds within = patience) {
        awaited<stream_ptr> connected;
        op connecting;
        on_loop([&] {
            near_.reset();  // the peers of these tests talk to one at a time
            connecting = tls_->connect(to, on_->now() + within, connected.next());
        });
        EXPECT_TRUE(connected.wait());
        on_loop([&] {
            near_ = std::move(connected.value());
            connecting.cancel();
        });
        EXPECT_EQ(near_ == nullptr, static_cast<bool>(connected.error()));
        return connected.error();
    }
    void expect_talk() {
        ASSERT_NE(near_, nullptr);
        write(*near_, "hello\n");
        EXPECT_EQ(read_all(*near_, 6), "olleh\n");
    }

    std::unique_ptr<stream_factory> tls_;
};

TEST_F(Tls, the_right_name_of_a_believed_authority_is_talked_to) {
    const tls_peer peer(papers(), "server");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    expect_talk();
    expect_talk();
}

TEST_F(Tls, an_address_in_figures_is_proved_as_well) {
    const tls_peer peer(papers(), "server");
    EXPECT_EQ(connect(to("127.0.0.1", peer.port())), std::error_code());
    expect_talk();
    auto address = to("localhost", peer.port());
    address.tls->server_name = "127.0.0.2";
    EXPECT_EQ(connect(address), tls_errc::wrong_name);
}

TEST_F(Tls, a_wrong_name_is_refused_unless_the_right_one_is_asked_for) {
    const tls_peer peer(papers(), "server");
    auto address = to("bad.test", peer.port());
    EXPECT_EQ(connect(address), tls_errc::wrong_name);
    address.tls->server_name = "good.test";
    EXPECT_EQ(connect(address), std::error_code());
    expect_talk();
}

TEST_F(Tls, an_unknown_authority_is_refused) {
    const tls_peer peer(papers(), "server");
    auto address = to("good.test", peer.port());
    address.tls->ca_file = papers().at("other_ca.pem");
    EXPECT_EQ(connect(address), tls_errc::unknown_authority);
    address.tls->ca_file = "";  // those of the system
    EXPECT_EQ(connect(address), tls_errc::unknown_authority);
}

TEST_F(Tls, an_expired_certificate_is_refused) {
    const tls_peer peer(papers(), "old");
    EXPECT_EQ(connect(to("good.test", peer.port())), tls_errc::expired);
}

TEST_F(Tls, who_verifies_nothing_believes_all) {
    const tls_peer peer(papers(), "old");
    auto address = to("bad.test", peer.port());
    address.tls = tls_settings{.verify = false};
    EXPECT_EQ(connect(address), std::error_code());
    expect_talk();
}

TEST_F(Tls, a_peer_that_wants_our_certificate_gets_it) {
    const tls_peer peer(papers(), "server",
                        {"-Verify", "1", "-verify_return_error", "-CAfile", papers().at("ca.pem")});
    auto address = to("good.test", peer.port());
    // With TLS 1.3 it lets us in first, and looks then.
    ASSERT_EQ(connect(address), std::error_code());
    EXPECT_EQ(read(*near_, tls_errc::certificate_wanted), "");
    EXPECT_EQ(read(*near_, tls_errc::certificate_wanted), "");
    address.tls->certificate_file = papers().at("client.pem");
    address.tls->key_file = papers().at("client.key");
    ASSERT_EQ(connect(address), std::error_code());
    expect_talk();
}

// OpenSSL finds the system's authorities by this variable, too.
TEST_F(Tls, what_the_system_believes_is_read_once_whatever_certificate_is_ours) {
    const auto of_system = papers().at("of_system.pem");
    std::filesystem::copy_file(papers().at("ca.pem"), of_system);
    ASSERT_EQ(::setenv("SSL_CERT_FILE", of_system.c_str(), 1), 0);
    const tls_peer peer(papers(), "server",
                        {"-Verify", "1", "-verify_return_error", "-CAfile", papers().at("ca.pem")});
    auto address = to("good.test", peer.port());
    address.tls = tls_settings{.certificate_file = papers().at("client.pem"),
                               .key_file = papers().at("client.key")};
    ASSERT_EQ(connect(address), std::error_code());
    expect_talk();
    std::filesystem::remove(of_system);
    ASSERT_EQ(connect(address), std::error_code()) << "read again";
    expect_talk();
    address.tls->certificate_file = papers().at("make");
    EXPECT_EQ(connect(address), tls_errc::certificate_unreadable) << "ours is";
    address.tls = tls_settings{};
    EXPECT_EQ(connect(address), std::error_code());
    ::unsetenv("SSL_CERT_FILE");
}

TEST_F(Tls, with_the_older_version_it_shows_when_connecting) {
    const tls_peer peer(
        papers(), "server",
        {"-tls1_2", "-Verify", "1", "-verify_return_error", "-CAfile", papers().at("ca.pem")});
    auto address = to("good.test", peer.port());
    EXPECT_EQ(connect(address), tls_errc::refused_by_peer);
    address.tls->certificate_file = papers().at("client.pem");
    address.tls->key_file = papers().at("client.key");
    ASSERT_EQ(connect(address), std::error_code());
    expect_talk();
}

TEST_F(Tls, a_peer_that_does_not_agree_to_the_protocol_is_refused) {
    auto address = to("good.test", 0);
    const auto connect_to = [&](const std::vector<std::string>& more) {
        const tls_peer peer(papers(), "server", more);
        address.port = peer.port();
        const auto error = connect(address);
        if (!error) expect_talk();
        return error;
    };
    address.tls->protocol = "h2";
    EXPECT_EQ(connect_to({"-alpn", "http/1.1,h2"}), std::error_code());
    EXPECT_EQ(connect_to({}), tls_errc::other_protocol) << "it says nothing about it";
    EXPECT_EQ(connect_to({"-alpn", "http/1.1"}), tls_errc::other_protocol) << "it refuses";
    address.tls->protocol = "";
    EXPECT_EQ(connect_to({"-alpn", "http/1.1"}), std::error_code());
}

TEST_F(Tls, files_that_are_of_no_use_are_named_by_what_they_are_for) {
    const tls_settings all{.ca_file = papers().at("ca.pem"),
                           .certificate_file = papers().at("client.pem"),
                           .key_file = papers().at("client.key")};
    auto address = to("good.test", 1);
    address.tls = all;
    address.tls->ca_file = papers().at("missing.pem");
    EXPECT_EQ(connect(address), tls_errc::ca_unreadable);
    address.tls = all;
    address.tls->certificate_file = papers().at("make");
    EXPECT_EQ(connect(address), tls_errc::certificate_unreadable);
    for (const char* key : {"missing.key", "server.key", "locked.key"}) {
        address.tls = all;
        address.tls->key_file = papers().at(key);
        EXPECT_EQ(connect(address), tls_errc::key_unreadable) << key;
    }
    address = stream_address::local(papers().at("socket"));
    address.tls = tls_settings{};
    EXPECT_EQ(connect(address), tls_errc::no_name);
}

TEST_F(Tls, a_peer_that_ends_in_the_handshake_is_an_error) {
    for (const bool reset : {false, true}) {
        std::uint16_t port = 0;
        auto door = plain_socket::listening(4, port);
        std::thread peer([&] {
            plain_socket one(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
            std::array<char, 2'000> hello{};
            EXPECT_GT(::recv(one.get(), hello.data(), hello.size(), 0), 0);
            if (reset) one.reset();
        });
        const auto expected = reset ? std::errc::connection_reset : std::errc::connection_aborted;
        EXPECT_EQ(connect(to("good.test", port)), std::make_error_code(expected));
        peer.join();
    }
}

TEST_F(Tls, a_peer_without_tls_is_told_from_one_that_is_silent) {
    std::uint16_t port = 0;
    auto door = plain_socket::listening(4, port);
    std::thread peer([&] {
        plain_socket one(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const std::string_view words = "-ERR unknown command\r\n";
        EXPECT_GT(::send(one.get(), words.data(), words.size(), MSG_NOSIGNAL), 0);
        std::array<char, 2'000> hello{};
        while (::recv(one.get(), hello.data(), hello.size(), 0) > 0) continue;
    });
    EXPECT_EQ(connect(to("good.test", port)), tls_errc::not_tls);
    peer.join();
    const auto begin = boot_clock::now();
    EXPECT_EQ(connect(to("good.test", port), 200ms), std::make_error_code(std::errc::timed_out));
    EXPECT_LT(boot_clock::now() - begin, 5s);
}

TEST_F(Tls, nobody_there_is_the_error_of_the_stream_below) {
    std::uint16_t port = 0;
    plain_socket::listening(-1, port).close();
    EXPECT_EQ(connect(to("good.test", port)), std::make_error_code(std::errc::connection_refused));
}

TEST_F(Tls, much_goes_both_ways_in_order) {
    const tls_peer peer(papers(), "server");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    std::string lines;
    std::string reversed;
    for (int i = 0; i < 30'000; ++i) {
        auto line = std::to_string(i) + std::string(static_cast<std::size_t>(i % 90), 'x');
        lines += line + "\n";
        std::reverse(line.begin(), line.end());
        reversed += line + "\n";
    }
    awaited<std::size_t> written;
    op writing;
    on_loop([&] { writing = near_->write(lines, written.next()); });
    EXPECT_TRUE(read_all(*near_, reversed.size()) == reversed);
    ASSERT_TRUE(written.wait());
    EXPECT_EQ(written.error(), std::error_code());
    EXPECT_EQ(written.value(), lines.size());
    on_loop([&] { writing.cancel(); });
}

TEST_F(Tls, an_end_is_an_end_and_one_that_was_cut_off_is_an_error) {
    tls_peer peer(papers(), "server");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    write(*near_, "CLOSE\n");  // the peer ends with TLS's goodbye
    EXPECT_EQ(read(*near_), "");
    EXPECT_EQ(read(*near_), "");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    expect_talk();
    peer.end();
    awaited<std::string> got;
    op reading;
    on_loop([&] { reading = near_->read_some(got.next<std::string_view>()); });
    ASSERT_TRUE(got.wait());
    EXPECT_TRUE(got.error() == std::errc::connection_aborted ||
                got.error() == std::errc::connection_reset)
        << got.error().message();
    on_loop([&] { reading.cancel(); });
}

TEST_F(Tls, one_read_and_one_write_at_a_time_and_none_after_close) {
    const tls_peer peer(papers(), "server");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    awaited<std::string> first;
    awaited<std::string> second;
    op a;
    op b;
    on_loop([&] {
        a = near_->read_some(first.next<std::string_view>());
        b = near_->read_some(second.next<std::string_view>());
    });
    ASSERT_TRUE(second.wait());
    EXPECT_EQ(second.error(), errc::busy);
    on_loop([&] { a.cancel(); });  // loses nothing
    expect_talk();
    EXPECT_FALSE(first.came());
    on_loop([&] {
        a = near_->read_some(first.next<std::string_view>());
        near_->close();
    });
    ASSERT_TRUE(first.wait());
    EXPECT_EQ(first.error(), errc::shut_down);
    write(*near_, "x", errc::shut_down);
    EXPECT_EQ(read(*near_, errc::shut_down), "");
    on_loop([&] {
        a.cancel();
        b.cancel();
    });
}

TEST_F(Tls, nothing_more_can_be_written_after_a_dropped_write) {
    const tls_peer peer(papers(), "server");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    awaited<std::size_t> dropped;
    on_loop([&] { near_->write("dropped\n", dropped.next()).cancel(); });
    write(*near_, "x\n", errc::canceled);
    EXPECT_FALSE(dropped.came());
}

TEST_F(Tls, finishing_lets_the_peer_see_the_end) {
    const tls_peer peer(papers(), "server");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    expect_talk();
    on_loop([&] { near_->finish(); });
    write(*near_, "x", errc::shut_down);
    EXPECT_EQ(read(*near_), "");  // it ends, too
}

TEST_F(Tls, may_end_in_its_own_completion) {
    const tls_peer peer(papers(), "server");
    ASSERT_EQ(connect(to("good.test", peer.port())), std::error_code());
    awaited<std::string> got;
    op reading;
    on_loop([&] {
        reading =
            near_->read_some([&, done = got.next()](std::error_code e, std::string_view v) mutable {
                near_.reset();
                done(e, std::string(v));
            });
    });
    // Written below: the stream is the loop's.
    awaited<std::size_t> written;
    op writing;
    on_loop([&] { writing = near_->write("ab\n", written.next()); });
    ASSERT_TRUE(got.wait());
    EXPECT_EQ(got.value().size(), 3U);
    on_loop([&] {
        reading.cancel();
        writing.cancel();
    });
}

TEST_F(Tls, a_completion_that_owns_its_stream_ends_with_the_loop) {
    const tls_peer peer(papers(), "server");
    for (const bool at_once : {true, false}) {
        const auto watched = std::make_shared<int>(0);
        event_loop own;
        const auto sockets = make_socket_factory(own);
        const auto factory = make_tls_factory(own, *sockets);
        own.start();
        awaited<stream_ptr> connected;
        op connecting;
        ASSERT_FALSE(run_and_wait(own, patience, [&] {
            connecting = factory->connect(to("127.0.0.1", peer.port()), own.now() + patience,
                                          connected.next());
        }));
        ASSERT_TRUE(connected.wait());
        ASSERT_FALSE(run_and_wait(own, patience, [&] {
            auto* stream = connected.value().get();
            const auto holder =
                std::make_shared<std::pair<stream_ptr, op>>(std::move(connected.value()), op());
            holder->second =
                stream->read_some([holder, watched](std::error_code, std::string_view) {});
        }));
        if (!at_once) std::this_thread::sleep_for(20ms);
        ASSERT_TRUE(own.stop(5s));
        EXPECT_EQ(watched.use_count(), 1);
    }
}

TEST_F(Tls, addresses_without_tls_are_left_to_the_factory_below) {
    std::uint16_t port = 0;
    const auto door = plain_socket::listening(4, port);
    ASSERT_EQ(connect(stream_address::tcp("127.0.0.1", port)), std::error_code());
    const plain_socket peer(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    write(*near_, "plain");
    std::array<char, 10> bytes{};
    ASSERT_EQ(::recv(peer.get(), bytes.data(), bytes.size(), 0), 5);
    EXPECT_EQ(std::string_view(bytes.data(), 5), "plain");
}

}  // namespace
}  // namespace trinco::detail::test
