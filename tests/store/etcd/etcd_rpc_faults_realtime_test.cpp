// The rpc against real servers that are killed, paused, full, closed to strangers, or no etcd.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "etcd_rpc_fixture.hpp"
#include "tests/net/tls_world.hpp"

namespace trinco::detail::test {
namespace {

using namespace etcd;

boot_clock::duration took(const std::function<void()>& f) {
    const auto begin = boot_clock::now();
    f();
    return boot_clock::now() - begin;
}

// Listens at a port and says this to everybody who says something; nothing: it never accepts.
class stranger {
public:
    explicit stranger(std::string says) : says_(std::move(says)) {
        ::sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::socklen_t size = sizeof at;
        if (::bind(socket_, reinterpret_cast<const ::sockaddr*>(&at), size) != 0) return;
        ::getsockname(socket_, reinterpret_cast<::sockaddr*>(&at), &size);
        port_ = ntohs(at.sin_port);
        ::listen(socket_, 8);
        if (!says_.empty()) thread_ = std::thread([this] { serve(); });
    }
    ~stranger() {
        ::shutdown(socket_, SHUT_RDWR);
        if (thread_.joinable()) thread_.join();
        ::close(socket_);
    }
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

private:
    void serve() const {
        for (int s = -1; (s = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
            char heard[256];
            if (::recv(s, heard, sizeof heard, 0) > 0) {
                ::send(s, says_.data(), says_.size(), MSG_NOSIGNAL);
            }
            ::close(s);
        }
    }

    const std::string says_;
    const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::uint16_t port_ = 0;
    std::thread thread_;
};

// ---- away ---------------------------------------------------------------------------------------

TEST_P(EtcdRpc, a_server_that_is_away_is_an_error_in_time_and_used_again_at_once) {
    START_OR_SKIP();
    ASSERT_FALSE(client_->put("k", "1").error);
    servers_->kill();
    // The connection may still look well, and then nobody knows.
    EXPECT_LT(took([&] { EXPECT_TRUE(client_->put("k", "2", 0, 500ms).error); }), 1s);
    EXPECT_LT(took([&] { EXPECT_EQ(client_->put("k", "2", 0, 500ms).error, errc::unavailable); }),
              1s);
    EXPECT_NE(client_->trouble().find(servers_->address() + ": "), std::string::npos);
    EXPECT_EQ(client_->get({"k", ""}, 300ms).error, errc::unavailable);
    EXPECT_EQ(client_->keep_alive(1, 300ms).error, errc::unavailable);
    servers_->start();
    EXPECT_LT(took([&] { EXPECT_FALSE(client_->put("k", "3", 0, 5s).error); }), 1s);
    EXPECT_EQ(client_->trouble(), "");
    EXPECT_EQ(client_->get({"k", ""}).value.replies.at(0).kvs.at(0).version, 2);
}

TEST_P(EtcdRpc, a_paused_server_costs_no_more_than_the_deadline_also_to_stop) {
    START_OR_SKIP();
    const auto lease = client_->grant(30s).value.id;
    ASSERT_FALSE(client_->keep_alive(lease).error);
    const auto watch = client_->watch({{"k", ""}, 0});
    servers_->signal(SIGSTOP);
    EXPECT_LT(took([&] {
                  EXPECT_EQ(client_->put("k", "v", 0, 300ms).error, errc::unknown_outcome);
                  EXPECT_EQ(client_->get({"k", ""}, 300ms).error, errc::unavailable);
                  EXPECT_EQ(client_->keep_alive(lease, 300ms).error, errc::unknown_outcome);
              }),
              2s);
    EXPECT_LT(took([&] { EXPECT_FALSE(client_->stop(1s).error); }), 1'500ms);
    EXPECT_LT(took([&] { client_.reset(); }), 1s);
    servers_->signal(SIGCONT);
    connect();
    EXPECT_FALSE(client_->put("k", "v").error);
}

TEST_P(EtcdRpc, a_child_that_was_forked_may_end_and_the_parent_goes_on) {
    START_OR_SKIP();
    const auto lease = client_->grant(30s).value.id;
    ASSERT_FALSE(client_->keep_alive(lease).error);
    const auto watch = client_->watch({{"k", ""}, 0});
    const auto child = ::fork();
    if (child == 0) {
        client_.reset();
        ::_exit(0);
    }
    int status = -1;
    EXPECT_TRUE(comes_true([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    EXPECT_EQ(status, 0);
    if (status != 0) ::kill(child, SIGKILL);
    EXPECT_EQ(client_->keep_alive(lease).value, 30s);
    EXPECT_TRUE(comes_true([&] {
        EXPECT_FALSE(client_->put("k", "v").error);
        return watch->count() > 0;
    }));
}

TEST_P(EtcdRpc, a_full_database_takes_nothing_more) {
    START_OR_SKIP({.program = {}, .more = {"--quota-backend-bytes=2000000"}});
    const std::string value(400'000, 'x');
    std::error_code error;
    // Its size is that of the file, which follows after 100 ms.
    for (int i = 0; i < 500 && !error; ++i) error = client_->put("k", value).error;
    EXPECT_EQ(error, errc::unknown_outcome) << "the one that fills it is carried out";
    EXPECT_EQ(client_->grant(10s).error, errc::busy);
    EXPECT_FALSE(client_->get({"k", ""}).error) << "what is there can be read";
    const auto status = client_->status();
    ASSERT_EQ(status.value.size(), 1U);
    ASSERT_FALSE(status.value[0].errors.empty());
    EXPECT_NE(status.value[0].errors[0].find("NOSPACE"), std::string::npos);
}

// ---- several nodes ------------------------------------------------------------------------------

TEST_P(EtcdRpc, the_loss_of_any_node_is_survived_by_requests_renewals_and_watches) {
    START_LONG_OR_SKIP({.program = {}, .nodes = 3});
    const auto lease = client_->grant(30s).value.id;
    const auto begin = client_->put("w/0", "v").value.revision;
    const auto watch = client_->watch({all_under("w/"), begin});
    ASSERT_TRUE(comes_true([&] { return watch->count() == 1; }));
    std::size_t told = 1;
    const auto works = [&](const std::string& after) {
        // A change may be lost in the change of leaders, and is not repeated by the rpc.
        EXPECT_TRUE(comes_true([&] { return !client_->put("w/1", after, 0, 1s).error; })) << after;
        EXPECT_FALSE(client_->get({"w/1", ""}, 4s).error) << after;
        EXPECT_EQ(client_->keep_alive(lease, 4s).value, 30s) << after;
        const auto newest = client_->get({"w/1", ""}).value.replies.at(0).kvs.at(0).mod_revision;
        EXPECT_TRUE(comes_true([&] {
            const auto events = watch->events();
            return events.back().now.mod_revision == newest;
        })) << after;
        EXPECT_GT(watch->count(), std::exchange(told, watch->count())) << after;
    };
    works("all there");
    for (std::size_t i = 0; i < servers_->size(); ++i) {
        servers_->signal(SIGSTOP, i);
        works("paused " + std::to_string(i));
        servers_->signal(SIGCONT, i);
    }
    const auto leader = servers_->leader();
    servers_->kill(leader);
    works("the leader was killed");
    servers_->start(leader);
    works("and came back");
    // No event twice, and none left out: each change of the key is the next version.
    std::int64_t version = 0;
    for (const auto& e : watch->events()) {
        if (e.now.key != "w/1") continue;
        EXPECT_EQ(e.now.version, ++version);
    }
}

TEST_P(EtcdRpc, a_minority_says_that_it_has_no_leader) {
    START_LONG_OR_SKIP({.program = {}, .nodes = 3});
    ASSERT_FALSE(client_->put("k", "v").error);
    servers_->kill(0);
    servers_->kill(1);
    EXPECT_LT(took([&] { EXPECT_TRUE(client_->put("k", "w", 0, 2s).error); }), 3s);
    EXPECT_TRUE(comes_true([&] {
        (void)client_->get({"k", ""}, 500ms);
        return client_->trouble().find("no leader") != std::string::npos ||
               client_->trouble().find("refused") != std::string::npos;
    }));
    EXPECT_EQ(client_->get({"k", ""}, 1s).error, errc::unavailable);
    servers_->start(0);
    EXPECT_TRUE(comes_true([&] { return !client_->put("k", "w", 0, 2s).error; }));
}

// ---- who may ------------------------------------------------------------------------------------

TEST_P(EtcdRpc, a_user_logs_in_and_again_when_the_token_has_expired) {
    START_LONG_OR_SKIP({.program = {}, .more = {"--auth-token-ttl=1"}});
    connect({}, {"root", "secret"});
    ASSERT_FALSE(client_->put("k", "v").error) << "nobody is asked who he is yet";
    const auto watch = client_->watch({{"k", ""}, 0});
    servers_->demand_login("secret");
    ASSERT_FALSE(client_->put("k", "v").error) << client_->trouble();
    const auto lease = client_->grant(30s).value.id;
    ASSERT_FALSE(client_->put("k", "v", lease).error);
    EXPECT_EQ(client_->keep_alive(lease).value, 30s);
    // A token that nobody uses for a second is forgotten.
    ::poll(nullptr, 0, 2'100);
    EXPECT_FALSE(client_->put("k", "v").error) << client_->trouble();
    ::poll(nullptr, 0, 2'100);
    const auto late = client_->watch({{"k", ""}, 1});
    EXPECT_TRUE(comes_true([&] { return late->count() >= 4; }));
    EXPECT_FALSE(late->over());
    EXPECT_EQ(client_->keep_alive(lease).value, 30s);
    servers_->kill();
    servers_->start();  // which has no token of before
    EXPECT_FALSE(client_->put("k", "v").error) << client_->trouble();
    EXPECT_EQ(client_->keep_alive(lease).value, 30s);
}

TEST_P(EtcdRpc, strangers_and_wrong_passwords_are_denied) {
    START_LONG_OR_SKIP();
    servers_->demand_login("secret");
    EXPECT_EQ(client_->put("k", "v").error, errc::denied);
    const auto heard = client_->watch({{"k", ""}, 0});
    EXPECT_TRUE(comes_true([&] { return heard->over() == errc::denied; }));
    connect({}, {"root", "wrong"});
    EXPECT_EQ(client_->put("k", "v").error, errc::denied);
    EXPECT_NE(client_->trouble().find("authentication failed"), std::string::npos);
    EXPECT_LT(took([&] { EXPECT_EQ(client_->grant(10s).error, errc::denied); }), 100ms)
        << "a wrong password is not tried at once again";
    EXPECT_EQ(client_->trouble().find("wrong"), std::string::npos);
    const std::vector<std::string> as_root{"--user=root:secret"};
    const auto by_root = [&](std::vector<std::string> words) {
        words.insert(words.begin(), as_root.begin(), as_root.end());
        servers_->must(words);
    };
    by_root({"role", "add", "locks"});
    by_root({"role", "grant-permission", "locks", "--prefix=true", "readwrite", "a/"});
    by_root({"user", "add", "ann:pw"});
    by_root({"user", "grant-role", "ann", "locks"});
    connect({}, {"ann", "pw"});
    EXPECT_FALSE(client_->put("a/1", "v").error) << client_->trouble();
    EXPECT_EQ(client_->put("b/1", "v").error, errc::denied);
    const auto mine = client_->watch({all_under("a/"), 0});
    const auto others = client_->watch({all_under("b/"), 0});
    EXPECT_TRUE(comes_true([&] { return others->over() == errc::denied; }));
    EXPECT_TRUE(comes_true([&] {
        EXPECT_FALSE(client_->put("a/1", "v").error);
        return mine->count() > 0;
    }));
    EXPECT_FALSE(mine->over());
}

TEST_P(EtcdRpc, with_tls_both_sides_prove_who_they_are) {
    const certificates of;
    ASSERT_TRUE(of.made());
    START_OR_SKIP({.program = {},
                   .certificate = of.at("server.pem"),
                   .key = of.at("server.key"),
                   .client_ca = of.at("ca.pem")});
    const tls_settings good{{}, of.at("ca.pem"), of.at("client.pem"), of.at("client.key"), true};
    connect(good);
    EXPECT_FALSE(client_->put("k", "v").error) << client_->trouble();
    const auto lease = client_->grant(10s).value.id;
    EXPECT_EQ(client_->keep_alive(lease).value, 10s);
    auto named = good;
    named.server_name = "good.test";
    connect(named);
    EXPECT_FALSE(client_->put("k", "v").error) << client_->trouble();
    named.server_name = "bad.test";
    connect(named);
    EXPECT_EQ(client_->put("k", "v").error, errc::invalid);
    EXPECT_NE(client_->trouble().find("another name"), std::string::npos) << client_->trouble();
    auto others = good;
    others.ca_file = of.at("other_ca.pem");
    connect(others);
    EXPECT_EQ(client_->put("k", "v").error, errc::denied);
    EXPECT_NE(client_->trouble().find("authority"), std::string::npos) << client_->trouble();
    others.verify = false;
    connect(others);
    EXPECT_FALSE(client_->put("k", "v").error) << client_->trouble();
    auto nobody = good;
    nobody.certificate_file.clear();
    nobody.key_file.clear();
    connect(nobody);
    EXPECT_EQ(client_->put("k", "v").error, errc::denied);
    EXPECT_NE(client_->trouble().find("cert="), std::string::npos) << client_->trouble();
    auto missing = good;
    missing.ca_file = of.at("no such.pem");
    connect(missing);
    EXPECT_EQ(client_->put("k", "v", 0, 500ms).error, errc::invalid);
    EXPECT_NE(client_->trouble().find("cannot be read: No such file"), std::string::npos);
    connect();  // in the clear
    EXPECT_TRUE(client_->put("k", "v", 0, 500ms).error);
}

TEST_P(EtcdRpc, what_is_no_etcd_is_said) {
    START_OR_SKIP();
    const stranger web("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    etcd_rpc_client of_web({web.port()});
    EXPECT_EQ(of_web.put("k", "v", 0, 2s).error, errc::invalid) << of_web.trouble();
    EXPECT_NE(of_web.trouble().find("no etcd"), std::string::npos) << of_web.trouble();
    const stranger silent("");
    etcd_rpc_client of_silent({silent.port()});
    EXPECT_LT(took([&] { EXPECT_EQ(of_silent.put("k", "v", 0, 500ms).error, errc::unavailable); }),
              1s);
    // TLS to a server without.
    connect(tls_settings{});
    EXPECT_TRUE(client_->put("k", "v", 0, 500ms).error);
    EXPECT_NE(client_->trouble(), "");
    // Among good ones they do no harm.
    etcd_rpc_client mixed({web.port(), silent.port(), servers_->port()});
    EXPECT_LT(took([&] { EXPECT_FALSE(mixed.put("k", "v", 0, 3s).error) << mixed.trouble(); }), 2s);
}

}  // namespace
}  // namespace trinco::detail::test
