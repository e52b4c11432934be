// redis: as a program opens it, by each kind of address and with each kind of proof, and what real
// servers answer when they cannot serve. Without servers the tests are skipped; `make servers`
// fetches Redis and Valkey, and each test runs on both.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "redis_client.hpp"
#include "store/redis/script_protocol.hpp"
#include "test_server.hpp"
#include "tests/net/tls_world.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

std::uint16_t free_port() {
    const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    ::socklen_t size = sizeof at;
    if (::bind(s, reinterpret_cast<const ::sockaddr*>(&at), size) != 0) return 0;
    ::getsockname(s, reinterpret_cast<::sockaddr*>(&at), &size);
    ::close(s);
    return ::ntohs(at.sin_port);
}

class RedisStore : public testing::TestWithParam<const char*> {
protected:
    void start(const std::vector<std::string>& arguments = {}) {
        const auto program = find_server_of(GetParam());
        if (!program) GTEST_SKIP() << "there is no " << GetParam() << "-server; try `make servers`";
        server_.emplace(*program, arguments);
        by_hand_.emplace(server_->socket());
    }
    [[nodiscard]] std::string socket_url(const std::string& user = {}) const {
        return "redis+unix:" + (user.empty() ? "" : "//" + user + "@") + server_->socket();
    }
    resp_reply call(const std::vector<std::string>& command) { return by_hand_->call(command); }
    // A user with the rights that trinco/redis.hpp names, and these changes of them.
    void make_user(const std::vector<std::string>& changes = {}) {
        auto words = rights_of_the_manual();
        words.insert(words.end(), changes.begin(), changes.end());
        ASSERT_EQ(call(words).text, "OK");
    }
    static std::vector<std::string> rights_of_the_manual() {
        std::ifstream in(TRINCO_REDIS_HEADER);
        std::vector<std::string> words;
        for (std::string line; std::getline(in, line);) {
            std::istringstream text(line.substr(std::min<std::size_t>(2, line.size())));
            std::string word;
            if (words.empty() && line.find("ACL SETUSER") == std::string::npos) continue;
            if (line.size() <= 2) break;
            while (text >> word) words.push_back(word == ">PASSWORD" ? ">secret" : word);
        }
        return words;
    }

    std::optional<test_server> server_;
    std::optional<test_connection> by_hand_;
};

#define START_OR_SKIP(...) \
    start(__VA_ARGS__);    \
    if (IsSkipped()) return

// ---- the way ------------------------------------------------------------------------------------

TEST_P(RedisStore, by_a_unix_socket_and_by_tcp_and_in_a_database) {
    const auto port = std::to_string(free_port());
    START_OR_SKIP({"--port", port, "--bind", "127.0.0.1"});
    redis_client by_socket(socket_url());
    EXPECT_FALSE(by_socket.exchange("payments"));
    redis_client by_tcp("redis://127.0.0.1:" + port);
    ASSERT_FALSE(by_tcp.exchange("payments"));
    const auto rows = by_tcp.inspect().value.rows;
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].now.window.success, 2U);  // of both
    redis_client elsewhere("redis://localhost:" + port + "/3");
    EXPECT_FALSE(elsewhere.exchange("payments"));
    EXPECT_EQ(elsewhere.inspect().value.rows.at(0).now.window.success, 1U);
    redis_client there(socket_url() + "?db=3");
    EXPECT_EQ(there.inspect().value.rows.size(), 1U);
    EXPECT_EQ(call({"EXISTS", breaker_keys("default", "payments")[0]}).integer, 1);
    EXPECT_GT(by_tcp.traffic().bytes_in, 0U);
}

TEST_P(RedisStore, another_database_hears_nothing_of_this_one) {
    START_OR_SKIP();
    redis_client here(socket_url());
    redis_client there(socket_url() + "?db=3");
    here.subscribe();
    there.subscribe();
    const auto tells = [](redis_client& by, redis_client& to) {
        const auto before = to.heard(notice::kind_t::changed);
        EXPECT_FALSE(by.control("payments", control_verb::trip).error);
        return comes_true([&] { return to.heard(notice::kind_t::changed) > before; }, 2s);
    };
    redis_client also_here(socket_url());
    redis_client also_there(socket_url() + "?db=3");
    ASSERT_TRUE(comes_true([&] { return tells(also_here, here) && tells(also_there, there); }));
    const auto before = here.heard(notice::kind_t::changed);
    EXPECT_TRUE(tells(also_there, there));
    // What is said here would come behind what was said there.
    EXPECT_TRUE(tells(also_here, here));
    EXPECT_EQ(here.heard(notice::kind_t::changed), before + 1);
}

TEST_P(RedisStore, with_tls_both_sides_prove_who_they_are) {
    const certificates of;
    ASSERT_TRUE(of.made());
    const auto port = std::to_string(free_port());
    START_OR_SKIP({"--tls-port", port, "--tls-cert-file", of.at("server.pem"), "--tls-key-file",
                   of.at("server.key"), "--tls-ca-cert-file", of.at("ca.pem"), "--tls-auth-clients",
                   "yes"});
    const std::string url = "rediss://127.0.0.1:" + port + "?ca=" + of.at("ca.pem");
    const std::string proof = "&cert=" + of.at("client.pem") + "&key=" + of.at("client.key");
    redis_client good(url + proof);
    good.subscribe();
    EXPECT_FALSE(good.exchange("payments"));
    EXPECT_TRUE(comes_true([&] {
        good.control("payments", control_verb::trip);
        return good.heard(notice::kind_t::changed) > 0;
    }));
    redis_client other_name(url + proof + "&server_name=bad.test");
    EXPECT_EQ(other_name.exchange("payments", 500ms), errc::unavailable);
    EXPECT_NE(other_name.trouble().find("certificate"), std::string::npos) << other_name.trouble();
    redis_client nobody(url);
    EXPECT_TRUE(nobody.exchange("payments", 500ms));
    redis_client believes_others("rediss://127.0.0.1:" + port + "?ca=" + of.at("other_ca.pem") +
                                 proof);
    EXPECT_EQ(believes_others.exchange("payments", 500ms), errc::unavailable);
}

// ---- rights -------------------------------------------------------------------------------------

TEST_P(RedisStore, the_rights_that_the_manual_names_are_enough) {
    START_OR_SKIP();
    make_user();
    redis_client a(socket_url("trinco:secret"));
    redis_client b(socket_url("trinco:secret"));
    b.subscribe();
    EXPECT_FALSE(a.exchange("payments"));
    EXPECT_EQ(a.trouble(), "");
    ASSERT_TRUE(comes_true([&] {
        EXPECT_FALSE(a.control("payments", control_verb::force_open).error);
        EXPECT_FALSE(a.control("payments", control_verb::resume).error);
        return b.heard(notice::kind_t::changed) > 0;
    }));
    EXPECT_EQ(a.inspect().value.rows.size(), 1U);
    const auto probed = a.ask<probe_reply>([](breaker_store& s, deadline by, auto done) {
        probe_request p;
        p.breaker = "payments";
        p.token = 7;
        return s.probe(p, by, std::move(done));
    });
    EXPECT_FALSE(probed.error);
    const auto looked = a.ask<glance>([](breaker_store& s, deadline by, auto done) {
        return s.look({"payments", {}}, by, std::move(done));
    });
    EXPECT_FALSE(looked.error);
    call({"DEL", breaker_keys("default", "payments")[0]});
    EXPECT_TRUE(a.inspect().value.rows.empty());
    EXPECT_TRUE(comes_true([&] {
        return call({"EXISTS", breaker_index_key("default")}).integer == 0;
    }));
}

TEST_P(RedisStore, without_the_right_to_the_channel_changes_are_asked_for) {
    START_OR_SKIP();
    make_user({"resetchannels"});
    redis_client a(socket_url("trinco:secret"));
    a.subscribe();
    EXPECT_FALSE(a.exchange("payments"));
    EXPECT_TRUE(comes_true([&] { return a.heard(notice::kind_t::gap) >= 3; }));
    EXPECT_NE(a.trouble().find("NOPERM"), std::string::npos) << a.trouble();
    EXPECT_FALSE(a.control("payments", control_verb::trip).error);
}

TEST_P(RedisStore, who_is_not_let_in_is_denied_and_told_why_without_the_password) {
    START_OR_SKIP();
    make_user({"-evalsha"});
    redis_client wrong(socket_url("trinco:not-it"));
    EXPECT_TRUE(comes_true([&] { return wrong.exchange("payments") == errc::denied; }));
    EXPECT_NE(wrong.trouble().find("WRONGPASS"), std::string::npos) << wrong.trouble();
    EXPECT_EQ(wrong.trouble().find("not-it"), std::string::npos);
    redis_client less(socket_url("trinco:secret"));
    EXPECT_EQ(less.exchange("payments"), errc::denied);
    EXPECT_NE(less.trouble().find("NOPERM"), std::string::npos) << less.trouble();
}

// A script ends where it misses a right. What it wrote must not stay for ever.
TEST_P(RedisStore, a_right_that_a_script_misses_is_denied_and_leaves_nothing_for_ever) {
    START_OR_SKIP();
    for (const std::string command : {"del", "pexpire", "zadd"}) {
        SCOPED_TRACE(command);
        make_user({"-" + command});
        redis_client a(socket_url("trinco:secret"));
        EXPECT_EQ(a.exchange("new-" + command), errc::denied);
        EXPECT_NE(a.trouble().find("lacks a right"), std::string::npos) << a.trouble();
        for (const auto& key : breaker_keys("default", "new-" + command)) {
            EXPECT_NE(call({"PTTL", key}).integer, -1) << key;
        }
    }
}

// ---- what servers answer when they cannot serve -------------------------------------------------

TEST_P(RedisStore, it_goes_on_by_itself_when_the_server_can_again) {
    START_OR_SKIP();
    redis_client a(socket_url());
    ASSERT_FALSE(a.exchange("payments"));
    struct hindrance {
        std::vector<std::vector<std::string>> begin;
        std::vector<std::vector<std::string>> end;
        errc error;
        std::string says;
    };
    const std::vector<hindrance> all{
        {{{"CONFIG", "SET", "maxmemory", "1"}},
         {{"CONFIG", "SET", "maxmemory", "0"}},
         errc::busy,
         "OOM"},
        {{{"CONFIG", "SET", "min-replicas-to-write", "1"}},
         {{"CONFIG", "SET", "min-replicas-to-write", "0"}},
         errc::unavailable,
         "NOREPLICAS"},
        {{{"REPLICAOF", "127.0.0.1", "1"}},
         {{"REPLICAOF", "NO", "ONE"}},
         errc::unavailable,
         "READONLY"},
        {{{"CONFIG", "SET", "replica-serve-stale-data", "no"}, {"REPLICAOF", "127.0.0.1", "1"}},
         {{"REPLICAOF", "NO", "ONE"}},
         errc::unavailable,
         "MASTERDOWN"},
    };
    for (const auto& one : all) {
        SCOPED_TRACE(one.says);
        for (const auto& command : one.begin) EXPECT_EQ(call(command).text, "OK");
        const auto error = a.exchange("payments", 300ms);
        EXPECT_TRUE(error == one.error || error == errc::unknown_outcome) << error.message();
        EXPECT_NE(a.trouble().find(one.says), std::string::npos) << a.trouble();
        for (const auto& command : one.end) EXPECT_EQ(call(command).text, "OK");
        EXPECT_TRUE(comes_true([&] { return !a.exchange("payments", 500ms); }));
        EXPECT_EQ(a.trouble(), "");
    }
}

TEST_P(RedisStore, a_full_server_takes_no_new_breaker) {
    START_OR_SKIP();
    redis_client a(socket_url());
    EXPECT_EQ(call({"CONFIG", "SET", "maxmemory", "1"}).text, "OK");
    EXPECT_EQ(a.exchange("payments"), errc::busy);
    EXPECT_NE(a.trouble().find("OOM"), std::string::npos) << a.trouble();
    EXPECT_EQ(call({"DBSIZE"}).integer, 0);
    EXPECT_EQ(call({"CONFIG", "SET", "maxmemory", "0"}).text, "OK");
    EXPECT_TRUE(comes_true([&] { return !a.exchange("payments", 500ms); }));
    EXPECT_EQ(call({"EXISTS", breaker_keys("default", "payments").front()}).integer, 1);
}

TEST_P(RedisStore, a_script_of_somebody_else_that_runs_too_long_is_busy) {
    START_OR_SKIP({"--busy-reply-threshold", "50"});
    redis_client a(socket_url());
    ASSERT_FALSE(a.exchange("payments"));
    test_connection other(server_->socket());
    other.send({"EVAL", "while true do end", "0"});
    other.flush();
    EXPECT_TRUE(comes_true([&] { return a.exchange("payments", 500ms) == errc::busy; }));
    call({"SCRIPT", "KILL"});
    EXPECT_TRUE(comes_true([&] { return !a.exchange("payments", 500ms); }));
}

TEST_P(RedisStore, a_foreign_key_is_refused_alone) {
    START_OR_SKIP();
    redis_client a(socket_url());
    call({"SET", breaker_keys("default", "taken")[0], "mine"});
    call({"HSET", breaker_keys("default", "damaged")[0], "layout", "1", "totals", "what"});
    call({"HSET", breaker_keys("default", "later")[0], "layout", "3"});
    const auto got = a.exchange(std::vector<std::string>{"taken", "damaged", "later", "payments"});
    ASSERT_FALSE(got.error) << got.error.message();
    EXPECT_EQ(got.value.at(0).error, errc::conflict);
    EXPECT_EQ(got.value.at(1).error, errc::conflict);
    EXPECT_EQ(got.value.at(2).error, errc::not_supported);
    EXPECT_FALSE(got.value.at(3).error);
    EXPECT_EQ(call({"GET", breaker_keys("default", "taken")[0]}).text, "mine");
}

TEST_P(RedisStore, forgotten_scripts_and_data_cost_no_call) {
    START_OR_SKIP();
    redis_client a(socket_url());
    ASSERT_FALSE(a.exchange("payments"));
    call({"SCRIPT", "FLUSH"});
    EXPECT_FALSE(a.exchange("payments"));
    call({"FLUSHALL"});
    EXPECT_FALSE(a.exchange("payments"));
}

TEST_P(RedisStore, another_life_of_the_server_is_told_and_served) {
    START_OR_SKIP();
    redis_client a(socket_url());
    a.subscribe();
    ASSERT_FALSE(a.exchange("payments"));
    server_->restart();
    EXPECT_TRUE(comes_true([&] { return a.heard(notice::kind_t::new_server) == 1; }));
    EXPECT_FALSE(a.exchange("payments"));
}

TEST_P(RedisStore, a_server_that_hangs_holds_neither_calls_nor_closing_up) {
    START_OR_SKIP();
    redis_client a(socket_url(), {.close_timeout = 200ms});
    ASSERT_FALSE(a.exchange("payments"));
    server_->send(SIGSTOP);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(a.exchange("payments", 100ms), errc::unknown_outcome);
    a.close();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
    server_->send(SIGCONT);
}

TEST_P(RedisStore, nobody_there_is_unavailable_until_somebody_comes) {
    START_OR_SKIP();
    server_->kill();
    redis_client a(socket_url());
    EXPECT_EQ(a.exchange("payments", 100ms), errc::unavailable);
    EXPECT_NE(a.trouble().find("cannot connect"), std::string::npos) << a.trouble();
    server_->start();
    EXPECT_TRUE(comes_true([&] { return !a.exchange("payments", 500ms); }));
}

// Also where the server's clock stands still inside a script.
TEST_P(RedisStore, a_script_tells_what_it_cost) {
    START_OR_SKIP();
    redis_client a(socket_url());
    std::chrono::microseconds most{0};
    for (int i = 0; i < 20; ++i) {
        const auto verdicts = a.exchange(std::vector<std::string>{"payments"});
        ASSERT_EQ(verdicts.value.size(), 1U) << verdicts.error.message();
        most = std::max(most, verdicts.value.front().cost);
    }
    EXPECT_GT(most, 5us);
    EXPECT_LT(most, 1s);
}

INSTANTIATE_TEST_SUITE_P(on, RedisStore, testing::Values("redis", "valkey"),
                         [](const auto& one) { return std::string(one.param); });

TEST(RedisUrls, a_bad_one_is_refused_with_a_sentence_and_without_its_password) {
    std::error_code error;
    std::string why;
    EXPECT_FALSE(open("redis://u:secret@h:0", {drivers::redis()}, {}, error, &why));
    EXPECT_EQ(error, errc::invalid);
    EXPECT_NE(why.find("the port"), std::string::npos) << why;
    EXPECT_EQ(why.find("secret"), std::string::npos) << why;
}

}  // namespace
}  // namespace trinco::detail::test
