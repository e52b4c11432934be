// The rpc against real servers that are killed, paused, without a leader, or closed to strangers.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "consul_rpc_fixture.hpp"
#include "tests/net/tls_world.hpp"

namespace trinco::detail::test {
namespace {

// ---- away ---------------------------------------------------------------------------------------

TEST_F(ConsulRpc, a_server_that_is_away_is_an_error_in_time_and_used_again_at_once) {
    START_OR_SKIP();
    const auto session = client_->create().value;
    const auto watch = client_->watch({"k", false, false});
    ASSERT_FALSE(client_->set("k", "1").error);
    servers_->kill();
    EXPECT_LT(took([&] { EXPECT_TRUE(client_->set("k", "2", 500ms).error); }), 3s);
    EXPECT_LT(took([&] { EXPECT_EQ(client_->set("k", "2", 500ms).error, errc::unavailable); }), 3s);
    EXPECT_EQ(client_->trouble(),
              servers_->address() + ": connection refused; is Consul running there?");
    EXPECT_EQ(client_->read({"k", false, false}, 300ms).error, errc::unavailable);
    EXPECT_EQ(client_->renew(session, 300ms).error, errc::unavailable);
    servers_->start();
    EXPECT_LT(took([&] { EXPECT_FALSE(client_->set("k", "3", 5s).error) << client_->trouble(); }),
              3s);
    EXPECT_EQ(client_->trouble(), "");
    EXPECT_EQ(client_->renew(session).value, 15s);
    EXPECT_TRUE(comes_true([&] { return watch->last() == "3"; })) << "the watch goes on";
}

TEST_F(ConsulRpc, a_paused_server_costs_no_more_than_the_deadline_also_to_stop) {
    START_OR_SKIP();
    const auto session = client_->create().value;
    const auto watch = client_->watch({"k", false, false});
    ASSERT_TRUE(comes_true([&] { return !watch->news().empty(); }));
    servers_->signal(SIGSTOP);
    EXPECT_LT(took([&] {
                  EXPECT_EQ(client_->set("k", "v", 300ms).error, errc::unknown_outcome);
                  EXPECT_EQ(client_->read({"k", false, false}, 300ms).error, errc::unavailable);
                  EXPECT_EQ(client_->renew(session, 300ms).error, errc::unknown_outcome);
              }),
              2s);
    EXPECT_LT(took([&] { EXPECT_FALSE(client_->stop(1s).error); }), 1'500ms);
    EXPECT_LT(took([&] { client_.reset(); }), 1s);
    servers_->signal(SIGCONT);
    connect();
    EXPECT_FALSE(client_->set("k", "v").error);
}

TEST_F(ConsulRpc, a_child_that_was_forked_may_end_and_the_parent_goes_on) {
    START_OR_SKIP();
    const auto session = client_->create().value;
    const auto watch = client_->watch({"k", false, false});
    const auto child = ::fork();
    if (child == 0) {
        client_.reset();
        ::_exit(0);
    }
    int status = -1;
    EXPECT_TRUE(comes_true([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    EXPECT_EQ(status, 0);
    if (status != 0) ::kill(child, SIGKILL);
    EXPECT_EQ(client_->renew(session).value, 15s);
    ASSERT_FALSE(client_->set("k", "v").error);
    EXPECT_TRUE(comes_true([&] { return watch->last() == "v"; }));
}

// ---- several servers ----------------------------------------------------------------------------

TEST_F(ConsulRpc, the_loss_of_any_server_is_survived_by_requests_renewals_and_watches) {
    START_OR_SKIP({.program = {}, .servers = 3});
    const auto session = client_->create(30s).value;
    const auto watch = client_->watch({"k", false, false});
    std::size_t heard = 0;
    const auto works = [&](const std::string& after) {
        // A change may be lost in the change of leaders, and is not repeated by the rpc.
        EXPECT_TRUE(comes_true([&] { return !client_->set("k", after, 1s).error; }))
            << after << client_->trouble();
        EXPECT_FALSE(client_->read({"k", false, true}, 10s).error) << after << client_->trouble();
        EXPECT_EQ(client_->renew(session, 10s).value, 30s) << after << client_->trouble();
        // One that was sent to whoever was paused may land only now.
        EXPECT_TRUE(comes_true([&] {
            const auto now = client_->read({"k", false, true});
            const auto told = watch->news();
            return !now.error && told.size() > heard && told.back().rows == now.value.rows;
        })) << after;
        heard = watch->news().size();
    };
    works("all there");
    const auto paused = servers_->leader();
    servers_->signal(SIGSTOP, paused);
    works("the leader is paused");
    servers_->signal(SIGCONT, paused);
    works("and goes on");
    servers_->wait_until_healthy();
    const auto killed = servers_->leader();
    servers_->kill(killed);
    works("the leader was killed");
    servers_->start(killed);
    works("and came back");
    EXPECT_FALSE(watch->over());
}

TEST_F(ConsulRpc, a_minority_says_that_it_has_no_leader) {
    START_OR_SKIP({.program = {}, .servers = 3});
    ASSERT_FALSE(client_->set("k", "v").error);
    servers_->kill(0);
    servers_->kill(1);
    EXPECT_LT(took([&] { EXPECT_TRUE(client_->set("k", "w", 2s).error); }), 3s);
    EXPECT_TRUE(comes_true([&] {
        (void)client_->read({"k", false, false}, 500ms);
        return client_->trouble().find("no leader") != std::string::npos ||
               client_->trouble().find("refused") != std::string::npos;
    })) << client_->trouble();
    EXPECT_EQ(client_->read({"k", false, false}, 1s).error, errc::unavailable);
    const auto status = client_->status().value;
    ASSERT_EQ(status.size(), 3U);
    EXPECT_NE(status[0].why.find("refused"), std::string::npos) << status[0].why;
    servers_->start(0);
    EXPECT_TRUE(comes_true([&] { return !client_->set("k", "w", 2s).error; }));
}

TEST_F(ConsulRpc, servers_say_how_they_are) {
    START_OR_SKIP({.program = {}, .servers = 3});
    const auto status = client_->status();
    ASSERT_FALSE(status.error);
    ASSERT_EQ(status.value.size(), 3U);
    for (const auto& one : status.value) {
        EXPECT_EQ(one.why, "");
        EXPECT_TRUE(one.version.starts_with("1.")) << one.version;
        EXPECT_TRUE(one.server);
        EXPECT_EQ(one.datacenter, "dc1");
        EXPECT_EQ(one.peers.size(), 3U);
        EXPECT_EQ(one.leader, status.value[0].leader);
        EXPECT_FALSE(one.leader.empty());
        EXPECT_EQ(one.session_ttl_min, 1s);
    }
}

// ---- who may ------------------------------------------------------------------------------------

TEST_F(ConsulRpc, tokens_that_are_missing_wrong_or_weak_are_denied_with_a_sentence) {
    const std::string root = "5a1f8f34-8f2d-4f6e-9a0e-6f4c2b7d1e90";
    START_OR_SKIP({.program = {}, .management_token = root});
    EXPECT_EQ(client_->create().error, errc::denied);
    EXPECT_NE(client_->trouble().find("it wants a token"), std::string::npos) << client_->trouble();
    EXPECT_EQ(refused({doing(verb_t::set, "a/k")}), refusal_t::denied);
    const auto looking = client_->watch({"a/k", false, false});
    EXPECT_TRUE(comes_true([&] { return looking->over() == errc::denied; }));

    consul::consul_settings with;
    with.token = "5a1f8f34-0000-0000-0000-6f4c2b7d1e90";
    connect(with);
    EXPECT_EQ(client_->set("a/k", "v").error, errc::denied);
    EXPECT_NE(client_->trouble().find("does not know the token"), std::string::npos)
        << client_->trouble();
    EXPECT_EQ(client_->trouble().find(with.token), std::string::npos) << client_->trouble();

    with.token = servers_->token_for(R"(key_prefix "a/" { policy = "write" }
session_prefix "" { policy = "write" })");
    connect(with);
    const auto session = client_->create();
    EXPECT_FALSE(session.error) << client_->trouble();
    EXPECT_EQ(client_->renew(session.value).value, 15s);
    done({doing(verb_t::lock, "a/k", session.value)});
    EXPECT_EQ(refused({doing(verb_t::lock, "b/k", session.value)}), refusal_t::denied);
    const auto mine = client_->watch({"a/k", false, true});
    const auto others = client_->watch({"b/k", false, false});
    EXPECT_TRUE(comes_true([&] { return others->over() == errc::denied; }));
    EXPECT_TRUE(comes_true([&] { return !mine->news().empty(); }));
    EXPECT_FALSE(mine->over());
    const auto status = client_->status().value.at(0);
    EXPECT_EQ(status.why, "");
    EXPECT_NE(status.leader, "");
    EXPECT_EQ(status.version, "") << "that takes agent:read";
}

TEST_F(ConsulRpc, a_token_in_a_file_may_be_replaced) {
    const std::string root = "5a1f8f34-8f2d-4f6e-9a0e-6f4c2b7d1e90";
    START_OR_SKIP({.program = {}, .management_token = root});
    const std::string file = testing::TempDir() + "consul_token_" + std::to_string(::getpid());
    const auto rules = R"(key_prefix "" { policy = "write" })";
    const auto first = servers_->token_for(rules);
    std::ofstream(file) << first << '\n';
    consul::consul_settings with;
    with.token_file = file;
    connect(with);
    EXPECT_FALSE(client_->set("k", "1").error) << client_->trouble();
    const auto watch = client_->watch({"k", false, false});
    ASSERT_TRUE(comes_true([&] { return watch->last() == "1"; }));
    const auto second = servers_->token_for(rules);
    std::ofstream(file) << second << '\n';
    const auto self = servers_->must("GET", "/v1/acl/token/self?token=" + first);
    const auto at = self.find("\"AccessorID\":\"") + 14;
    servers_->must("DELETE", "/v1/acl/token/" + self.substr(at, 36));
    EXPECT_TRUE(comes_true([&] { return !client_->set("k", "2").error; })) << client_->trouble();
    EXPECT_TRUE(comes_true([&] { return watch->last() == "2"; })) << client_->trouble();
    EXPECT_FALSE(watch->over());
    std::filesystem::remove(file);
}

TEST_F(ConsulRpc, with_tls_both_sides_prove_who_they_are) {
    const certificates of;
    ASSERT_TRUE(of.made());
    START_OR_SKIP({.program = {},
                   .certificate = of.at("server.pem"),
                   .key = of.at("server.key"),
                   .client_ca = of.at("ca.pem")});
    const auto with = [&](tls_settings tls) {
        consul::consul_settings s;
        s.tls = std::move(tls);
        connect(std::move(s));
    };
    const tls_settings good{{}, of.at("ca.pem"), of.at("client.pem"), of.at("client.key"), true};
    with(good);
    EXPECT_FALSE(client_->set("k", "v").error) << client_->trouble();
    const auto watch = client_->watch({"k", false, false});
    EXPECT_TRUE(comes_true([&] { return watch->last() == "v"; }));
    auto named = good;
    named.server_name = "good.test";
    with(named);
    EXPECT_FALSE(client_->set("k", "v").error) << client_->trouble();
    named.server_name = "bad.test";
    with(named);
    EXPECT_EQ(client_->set("k", "v").error, errc::invalid);
    EXPECT_NE(client_->trouble().find("another name"), std::string::npos) << client_->trouble();
    auto others = good;
    others.ca_file = of.at("other_ca.pem");
    with(others);
    EXPECT_EQ(client_->set("k", "v").error, errc::denied);
    EXPECT_NE(client_->trouble().find("authority"), std::string::npos) << client_->trouble();
    others.verify = false;
    with(others);
    EXPECT_FALSE(client_->set("k", "v").error) << client_->trouble();
    auto nobody = good;
    nobody.certificate_file.clear();
    nobody.key_file.clear();
    with(nobody);
    EXPECT_EQ(client_->set("k", "v").error, errc::denied);
    EXPECT_NE(client_->trouble().find("cert="), std::string::npos) << client_->trouble();
    auto missing = good;
    missing.ca_file = of.at("no such.pem");
    with(missing);
    EXPECT_EQ(client_->set("k", "v", 5s).error, errc::invalid);
    EXPECT_NE(client_->trouble().find("cannot be read: No such file"), std::string::npos);
    // TLS to a port without, and the other way round.
    client_.reset();
    consul::consul_settings s;
    s.tls = good;
    client_.emplace(std::vector{servers_->port()}, s);
    EXPECT_EQ(client_->set("k", "v", 5s).error, errc::invalid);
    EXPECT_NE(client_->trouble().find("use consul://"), std::string::npos) << client_->trouble();
    client_.reset();
    client_.emplace(std::vector{servers_->https_port()});
    EXPECT_EQ(client_->set("k", "v", 5s).error, errc::invalid);
    EXPECT_NE(client_->trouble().find("consuls://"), std::string::npos) << client_->trouble();
}

}  // namespace
}  // namespace trinco::detail::test
