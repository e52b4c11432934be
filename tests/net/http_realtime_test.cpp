// The HTTP client and server over real sockets: with each other, and each with a peer that
// misbehaves.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "net/http_client.hpp"
#include "net/http_server.hpp"
#include "stream_harness.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

class Http : public stream_test {
protected:
    ~Http() override {
        on_loop([this] {
            held_.clear();
            client_.reset();
            server_.reset();
        });
    }

    void serve(std::function<void(http_exchange)> handler, const http_server_options& how = {}) {
        listen();
        on_loop([&] {
            address_ = listener_->where();
            server_.emplace(*on_, std::move(listener_), std::move(handler), how);
        });
        call_at(address_);
    }
    // Answers with what it was asked.
    void serve_echo(const http_server_options& how = {}) {
        serve(
            [](http_exchange asked) {
                const auto& r = asked.request();
                asked.answer({.body = r.method + " " + r.target + " " +
                                      std::string(field_of(r.fields, "Host")) + " " + r.body});
            },
            how);
    }
    // Keeps what it was asked; see held_.
    void serve_nothing() {
        serve([this](http_exchange asked) { held_.push_back(std::move(asked)); });
    }
    void call_at(const stream_address& at, const http_client_options& how = {}) {
        on_loop([&] { client_.emplace(*on_, *factory_, at, how); });
    }

    struct pending_answer {
        awaited<http_answer> got;
        op calling;
    };
    void begin(pending_answer& p, http_request request,
               std::chrono::milliseconds within = patience) {
        on_loop([&] {
            p.calling = client_->call(
                std::move(request), on_->now() + within,
                [done = p.got.next()](http_answer a) mutable { done({}, std::move(a)); });
        });
    }
    http_answer call(http_request request, std::chrono::milliseconds within = patience) {
        pending_answer p;
        begin(p, std::move(request), within);
        EXPECT_TRUE(p.got.wait());
        on_loop([&] { p.calling.cancel(); });
        return p.got.value();
    }
    std::size_t connections() {
        std::size_t n = 0;
        on_loop([&] { n = server_->connections(); });
        return n;
    }
    void wait_for(const std::function<bool()>& condition) {
        const auto until = boot_clock::now() + patience;
        bool met = false;
        while (!met && boot_clock::now() < until) {
            on_loop([&] { met = condition(); });
            ::sched_yield();
        }
        EXPECT_TRUE(met);
    }
    // What the server says to these bytes until it closes.
    std::string raw(const std::string& bytes, bool half_close = false) {
        const auto peer = plain_socket::connected(address_.port);
        EXPECT_EQ(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
        if (half_close) ::shutdown(peer.get(), SHUT_WR);
        std::string all;
        char part[4'096];
        for (ssize_t n = 0; (n = ::recv(peer.get(), part, sizeof part, 0)) > 0;) {
            all.append(part, static_cast<std::size_t>(n));
        }
        return all;
    }

    stream_address address_;
    std::optional<http_server> server_;
    std::optional<http_client> client_;
    std::deque<http_exchange> held_;
};

class HttpClient : public Http {};

TEST_F(HttpClient, calls_and_is_answered) {
    serve_echo();
    const auto got = call({.method = "POST", .target = "/pay?x=1", .body = "12 EUR"});
    EXPECT_EQ(got.error, std::error_code()) << got.why;
    EXPECT_EQ(got.response.status, 200U);
    EXPECT_EQ(got.response.body, "POST /pay?x=1 " + text_of(address_) + " 12 EUR");
    EXPECT_EQ(call({.method = "HEAD"}).response.body, "");
}

TEST_F(HttpClient, uses_a_connection_again_as_long_as_both_sides_keep_it) {
    serve_echo();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(call({}).response.status, 200U);
    EXPECT_EQ(connections(), 1U);
    EXPECT_EQ(call({.keep_alive = false}).response.status, 200U);
    wait_for([&] { return server_->connections() == 0; });
    call_at(address_, {.kept = 0});
    EXPECT_EQ(call({}).response.status, 200U);
    wait_for([&] { return server_->connections() == 0; });
}

TEST_F(HttpClient, makes_many_calls_at_a_time) {
    serve_nothing();
    std::vector<pending_answer> all(50);
    for (auto& one : all) begin(one, {});
    wait_for([&] { return held_.size() == all.size(); });  // all have come before one is answered
    on_loop([&] {
        for (auto& one : held_) one.answer({.status = 204});
    });
    for (auto& one : all) {
        ASSERT_TRUE(one.got.wait());
        EXPECT_EQ(one.got.value().response.status, 204U);
    }
    wait_for([&] { return server_->connections() == 8; });  // those that are kept
    on_loop([&] { all.clear(); });
}

TEST_F(HttpClient, gives_up_at_the_deadline_and_the_server_sees_it) {
    int gone = 0;
    serve([&](http_exchange asked) {
        asked.on_gone([&] { ++gone; });
        held_.push_back(std::move(asked));
    });
    const auto begin = boot_clock::now();
    const auto got = call({}, 60ms);
    EXPECT_EQ(got.error, std::errc::timed_out);
    EXPECT_TRUE(got.sent);
    EXPECT_EQ(got.why, "no answer in time");
    EXPECT_GE(boot_clock::now() - begin, 60ms);
    wait_for([&] { return gone == 1; });
}

TEST_F(HttpClient, says_that_nothing_was_sent_when_it_cannot_connect) {
    std::uint16_t port = 0;
    const auto bound = plain_socket::listening(-1, port);
    call_at(stream_address::tcp("127.0.0.1", port));
    const auto got = call({});
    EXPECT_EQ(got.error, std::errc::connection_refused);
    EXPECT_FALSE(got.sent);
    EXPECT_EQ(got.why,
              "cannot connect to 127.0.0.1:" + std::to_string(port) + ": connection refused");
    const auto bad = call({.target = "/a b"});
    EXPECT_EQ(bad.error, std::errc::invalid_argument);
    EXPECT_FALSE(bad.sent);
}

// A server that answers one request of a connection and closes at the second one, unanswered.
class HttpRepeat : public Http {
protected:
    void answer_once(const plain_socket& listening) {
        const plain_socket peer(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
        char request[4'096];
        ASSERT_GT(::recv(peer.get(), request, sizeof request, 0), 0);
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        ASSERT_GT(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL), 0);
        ASSERT_GT(::recv(peer.get(), request, sizeof request, 0), 0);
    }
};

TEST_F(HttpRepeat, a_get_on_a_kept_connection_that_is_closed_is_sent_again_a_post_is_not) {
    std::uint16_t port = 0;
    const auto listening = plain_socket::listening(8, port);
    call_at(stream_address::tcp("127.0.0.1", port));
    for (const char* method : {"GET", "POST"}) {
        pending_answer first;
        pending_answer second;
        std::thread peer([&] {
            answer_once(listening);
            if (std::string(method) == "GET") answer_once(listening);
        });
        begin(first, {});
        ASSERT_TRUE(first.got.wait());
        EXPECT_EQ(first.got.value().response.status, 200U);
        begin(second, {.method = method});
        ASSERT_TRUE(second.got.wait());
        if (std::string(method) == "GET") {
            EXPECT_EQ(second.got.value().response.status, 200U);
            EXPECT_EQ(call({.method = "POST"}).error, std::errc::connection_aborted);
        } else {
            EXPECT_TRUE(second.got.value().error);
            EXPECT_TRUE(second.got.value().sent);
        }
        peer.join();
        on_loop([&] {
            first.calling.cancel();
            second.calling.cancel();
        });
    }
}

TEST_F(HttpClient, refuses_an_answer_that_is_none_or_too_big) {
    const auto answered_with = [&](const std::string& bytes) {
        std::uint16_t port = 0;
        const auto listening = plain_socket::listening(1, port);
        call_at(stream_address::tcp("127.0.0.1", port), {.limits = {.header = 1'000, .body = 10}});
        pending_answer p;
        begin(p, {});
        const plain_socket peer(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
        EXPECT_GT(::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
        ::shutdown(peer.get(), SHUT_WR);
        EXPECT_TRUE(p.got.wait());
        on_loop([&] { p.calling.cancel(); });
        return p.got.value();
    };
    EXPECT_EQ(answered_with("220 mail.example.com\r\n\r\n").error, std::errc::protocol_error);
    const auto big = answered_with("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n");
    EXPECT_EQ(big.error, std::errc::message_size);
    EXPECT_NE(big.why.find("over 10 bytes"), std::string::npos);
    EXPECT_EQ(answered_with("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal").error,
              std::errc::connection_aborted);
    const auto to_the_end = answered_with("HTTP/1.1 200 OK\r\n\r\nto the end");
    EXPECT_EQ(to_the_end.error, std::error_code());
    EXPECT_EQ(to_the_end.response.body, "to the end");
}

TEST_F(HttpClient, dropped_at_any_point_answers_nothing) {
    serve_nothing();
    for (int turns = 0; turns < 12; ++turns) {
        pending_answer p;
        begin(p, {});
        for (int i = 0; i < turns; ++i) on_loop([] {});
        on_loop([&] { p.calling.cancel(); });
        EXPECT_EQ(p.got.times(), 0);
    }
    pending_answer last;
    begin(last, {});
    on_loop([&] { client_.reset(); });
    wait_for([&] {
        held_.clear();
        return server_->connections() == 0;
    });
    EXPECT_EQ(last.got.times(), 0);
    on_loop([&] { last.calling.cancel(); });
}

class HttpServer : public Http {};

TEST_F(HttpServer, answers_pipelined_requests_in_order) {
    serve_echo();
    const std::string get = " HTTP/1.1\r\nHost: h\r\n";
    const auto got = raw("GET /1" + get + "\r\nPOST /2" + get + "Content-Length: 2\r\n\r\nok" +
                         "GET /3" + get + "Connection: close\r\n\r\n");
    const auto first = got.find("GET /1 h ");
    const auto second = got.find("POST /2 h ok");
    const auto third = got.find("GET /3 h ");
    EXPECT_TRUE(first < second && second < third && third != std::string::npos) << got;
}

TEST_F(HttpServer, answers_a_fault_and_closes) {
    serve_echo({.limits = {.header = 1'000, .body = 100}});
    EXPECT_TRUE(raw("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    EXPECT_TRUE(raw("GET /" + std::string(2'000, 'x')).starts_with("HTTP/1.1 431 "));
    const auto big = raw("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" +
                         std::string(200'000, 'x'));
    EXPECT_TRUE(big.starts_with("HTTP/1.1 413 ")) << big;
    EXPECT_NE(big.find("Connection: close"), std::string::npos);
    EXPECT_NE(big.find("over 100 bytes"), std::string::npos);
    wait_for([&] { return server_->connections() == 0; });
}

TEST_F(HttpServer, answers_a_client_that_has_closed_its_half) {
    serve_echo();
    EXPECT_NE(raw("GET /half HTTP/1.1\r\nHost: h\r\n\r\n", true).find("GET /half h"),
              std::string::npos);
    EXPECT_EQ(raw("GET /cut HTTP/1.1\r\nHo", true), "");
    EXPECT_NE(raw("GET /old HTTP/1.0\r\n\r\n").find("HTTP/1.0 200 OK"), std::string::npos);
}

TEST_F(HttpServer, listens_on_after_its_last_answer_until_the_client_closes) {
    serve_echo();
    auto peer = plain_socket::connected(address_.port);
    const std::string get = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    ASSERT_GT(::send(peer.get(), get.data(), get.size(), MSG_NOSIGNAL), 0);
    char part[4'096];
    while (::recv(peer.get(), part, sizeof part, 0) > 0) {
    }
    settle();
    EXPECT_EQ(connections(), 1U);
    ASSERT_EQ(::send(peer.get(), "late", 4, MSG_NOSIGNAL), 4);
    settle();
    EXPECT_EQ(connections(), 1U);
    peer.close();
    wait_for([&] { return server_->connections() == 0; });
}

TEST_F(HttpServer, closes_what_is_slow_idle_or_given_up_by_its_handler) {
    serve([](http_exchange) {}, {.idle_for = 60ms, .request_within = 30ms, .answer_within = 30ms});
    const auto timed = [&](const std::string& bytes) {
        const auto begin = boot_clock::now();
        EXPECT_EQ(raw(bytes), "");
        return boot_clock::now() - begin;
    };
    EXPECT_GE(timed(""), 60ms);
    EXPECT_GE(timed("GET / HT"), 30ms);
    EXPECT_LT(timed("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), patience);
    wait_for([&] { return server_->connections() == 0; });
}

TEST_F(HttpServer, does_not_wait_for_a_client_that_takes_no_answer) {
    serve([](http_exchange asked) { asked.answer({.body = std::string(32'000'000, 'x')}); },
          {.answer_within = 50ms});
    const auto peer = plain_socket::connected(address_.port);
    const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    ASSERT_GT(::send(peer.get(), get.data(), get.size(), MSG_NOSIGNAL), 0);
    wait_for([&] { return server_->connections() == 1; });
    wait_for([&] { return server_->connections() == 0; });
}

TEST_F(HttpServer, serves_as_many_as_it_may_and_the_others_later) {
    serve(
        [this](http_exchange asked) {
            if (asked.request().target == "/quick") return asked.answer({});
            held_.push_back(std::move(asked));
        },
        {.connections_most = 2});
    pending_answer a;
    pending_answer b;
    pending_answer c;
    begin(a, {});
    begin(b, {});
    wait_for([&] { return held_.size() == 2; });
    begin(c, {.target = "/quick"});
    settle();
    EXPECT_EQ(connections(), 2U);
    EXPECT_FALSE(c.got.came());
    on_loop([&] { held_.clear(); });
    ASSERT_TRUE(c.got.wait());
    EXPECT_EQ(c.got.value().response.status, 200U);
    on_loop([&] {
        for (auto* one : {&a, &b, &c}) one->calling.cancel();
    });
}

TEST_F(HttpServer, an_answer_that_cannot_be_written_becomes_500) {
    serve([](http_exchange asked) { asked.answer({.fields = {{"X", "a\r\nSet-Cookie: y"}}}); });
    const auto got = call({});
    EXPECT_EQ(got.response.status, 500U);
    EXPECT_TRUE(got.response.fields.empty());
}

TEST_F(HttpServer, ends_with_calls_under_way) {
    serve_nothing();
    pending_answer p;
    begin(p, {.method = "POST"});
    wait_for([&] { return held_.size() == 1; });
    on_loop([&] { server_.reset(); });
    ASSERT_TRUE(p.got.wait());
    EXPECT_TRUE(p.got.value().error);
    on_loop([&] {
        held_.front().answer({});
        held_.clear();
        p.calling.cancel();
    });
}

}  // namespace
}  // namespace trinco::detail::test
