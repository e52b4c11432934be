// What the statuses of agents and servers of Consul mean.
#include "apps/trinco/doctor/consul_facts.hpp"

#include <gtest/gtest.h>

#include <set>

#include "apps/trinco/exit_codes.hpp"
#include "net/tls_factory.hpp"
#include "store/stream_trouble.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;

// 1 ... n, servers of the same cluster.
std::vector<consul_status> servers(std::size_t n) {
    std::vector<consul_status> all(n);
    std::vector<std::string> peers;
    for (std::size_t i = 0; i < n; ++i) {
        const auto host = "10.0.0." + std::to_string(i + 1);
        peers.push_back(host + ":8300");
        all[i].address = host + ":8500";
        all[i].version = "1.14.11";
        all[i].datacenter = "dc1";
        all[i].node = "n" + std::to_string(i);
        all[i].server = true;
        all[i].leader = "10.0.0.1:8300";
        all[i].connections = 200;
        all[i].election_timeout = 1s;
    }
    for (auto& one : all) one.peers = peers;
    return all;
}

consul_status silent(const consul_status& one) {
    consul_status away;
    away.address = one.address;
    away.why = one.address + ": connection refused";
    return away;
}

const finding& only(const examination& e) {
    EXPECT_EQ(1U, e.all.size());
    return e.all.front();
}

template <class Judge, class... More>
finding judged(Judge judge, const std::vector<consul_status>& asked, const More&... more) {
    examination e;
    judge(asked, more..., e);
    return only(e);
}

bool says(const finding& one, std::string_view words) {
    return one.sentence.find(words) != std::string::npos;
}

TEST(ConsulFacts, WhoDoesNotAnswerIsNamed) {
    EXPECT_EQ(level::bad, judged(judge_consul_reach, {}).how);
    auto asked = servers(2);
    EXPECT_EQ(level::good, judged(judge_consul_reach, asked).how);
    asked[1] = silent(asked[1]);
    examination one;
    judge_consul_reach(asked, one);
    ASSERT_EQ(2U, one.all.size());
    EXPECT_EQ(level::warn, one.all[0].how);
    EXPECT_TRUE(says(one.all[0], "10.0.0.2:8500: connection refused"));
    EXPECT_TRUE(says(one.all[1], "10.0.0.1:8500 answers"));
    asked[0] = silent(asked[0]);
    examination none;
    judge_consul_reach(asked, none);
    EXPECT_EQ(level::bad, none.worst());
    EXPECT_NE(std::string::npos, none.all[0].advice.find("HTTP port"));
    auto alone = servers(1);
    alone[0].why = "10.0.0.1:8500: No known Consul servers";
    EXPECT_EQ(level::bad, judged(judge_consul_reach, alone).how);
    EXPECT_NE(std::string::npos,
              judged(judge_consul_reach, alone).advice.find("no server answers it"));
}

TEST(ConsulFacts, WhatTlsPreventsHasAnAdviceOfItsOwn) {
    using trinco::detail::tls_errc;
    const trinco::detail::tls_settings tls{};
    const auto advice = [](const std::string& why) {
        auto asked = servers(1);
        asked[0] = silent(asked[0]);
        asked[0].why = asked[0].address + ": " + why;
        return judged(judge_consul_reach, asked).advice;
    };
    const auto usual = advice("connection refused; is Consul running there?");
    std::set<std::string> all{usual};
    for (const auto fault :
         {tls_errc::wrong_name, tls_errc::unknown_authority, tls_errc::expired,
          tls_errc::not_yet_valid, tls_errc::certificate_wanted, tls_errc::refused_by_peer,
          tls_errc::not_tls, tls_errc::ca_unreadable}) {
        const auto why = trouble_of(fault, tls, {"Consul", "consul"}).sentence;
        EXPECT_TRUE(all.insert(advice(why)).second) << why << ": " << advice(why);
    }
    const auto tls_port = advice(
        "Client sent an HTTP request to an HTTPS server.; it speaks TLS: "
        "begin the URL with consuls://");
    EXPECT_TRUE(all.insert(tls_port).second) << tls_port;
    EXPECT_EQ(usual, advice("it speaks TLS, but not HTTP/2: it is no Consul"));
    // Beside one that answers it is told, too.
    auto two = servers(2);
    two[1].why = "10.0.0.2:8500: its certificate has expired";
    examination e;
    judge_consul_reach(two, e);
    EXPECT_NE(std::string::npos, e.all[0].advice.find("new certificate")) << e.all[0].advice;
}

TEST(ConsulFacts, NobodyLeads) {
    auto asked = servers(3);
    EXPECT_EQ(level::good, judged(judge_consul_leader, asked).how);
    asked[1].leader.clear();
    EXPECT_EQ(level::warn, judged(judge_consul_leader, asked).how);
    for (auto& one : asked) one.leader.clear();
    EXPECT_EQ(level::bad, judged(judge_consul_leader, asked).how);
    asked[0].leader = "10.0.0.1:8300";
    asked[1].leader = asked[2].leader = "10.0.0.2:8300";
    EXPECT_EQ(level::warn, judged(judge_consul_leader, asked).how);
}

TEST(ConsulFacts, HowManyServersMayBeLost) {
    const auto of = [](std::size_t all, std::size_t away) {
        auto asked = servers(all);
        for (std::size_t i = 0; i < away; ++i) asked[i] = silent(asked[i]);
        return judged(judge_servers, asked);
    };
    EXPECT_TRUE(says(of(1, 0),
                     "1 server (10.0.0.1:8300); none may be lost: while it is away no "
                     "lock can be taken"));
    EXPECT_EQ(level::warn, of(1, 0).how) << "it is no majority";
    EXPECT_NE(std::string::npos, of(1, 0).advice.find("run three"));
    EXPECT_TRUE(says(of(3, 0), "; 1 may be lost"));
    EXPECT_EQ(level::good, of(3, 0).how);
    EXPECT_EQ(level::warn, of(4, 0).how) << "as few as with three";
    EXPECT_TRUE(says(of(3, 1), "2 of 3 servers answer: none more may be lost"));
    EXPECT_EQ(level::warn, of(3, 1).how);
    EXPECT_TRUE(says(of(5, 1), "4 of 5 servers answer: 1 more may be lost"));
    // Who is silent beside an agent that is no server may be none, too.
    auto agents = servers(3);
    for (auto& one : agents) one.server = false;
    agents[2] = silent(agents[2]);
    EXPECT_EQ(level::good, judged(judge_servers, agents).how);
    EXPECT_TRUE(says(judged(judge_servers, agents), "3 servers ("));
}

TEST(ConsulFacts, AgentsOfTwoClustersAreNoStore) {
    auto asked = servers(3);
    asked[2].peers = {"10.9.9.9:8300"};
    const auto found = judged(judge_servers, asked);
    EXPECT_EQ(level::bad, found.how);
    EXPECT_TRUE(says(found, "10.0.0.3:8500 lists 10.9.9.9:8300")) << found.sentence;
    asked[2].datacenter = "dc2";
    examination e;
    judge_datacenter(asked, "", e);
    EXPECT_EQ(level::bad, only(e).how);
    EXPECT_EQ(exit_usage, e.code);
    const auto far = judged(judge_datacenter, servers(1), std::string("dc9"));
    EXPECT_EQ(level::good, far.how);
    EXPECT_TRUE(says(far, "\"dc9\"")) << far.sentence;
    EXPECT_TRUE(says(far, "the agents are of dc1")) << far.sentence;
}

TEST(ConsulFacts, Versions) {
    const auto of = [](const std::string& version) {
        auto asked = servers(1);
        asked[0].version = version;
        return judged(judge_consul_version, asked);
    };
    for (const char* well : {"1.14.0", "1.14.11", "1.20.1+ent", "2.0.0"}) {
        EXPECT_EQ(level::good, of(well).how) << well;
    }
    for (const char* old : {"1.13.9", "1.9.0", "0.9.3"}) {
        EXPECT_EQ(level::warn, of(old).how) << old;
    }
    EXPECT_TRUE(says(of(""), "agent:read")) << "it was not told";
    auto two = servers(2);
    two[1].version = "1.15.0";
    EXPECT_EQ(level::warn, judged(judge_consul_version, two).how);
}

TEST(ConsulFacts, WhatTakesTheSessionsOfAnAgentAlong) {
    auto asked = servers(3);
    EXPECT_EQ(level::good, judged(judge_agents, asked).how);
    asked[1].removes_dead_servers = true;
    EXPECT_EQ(level::warn, judged(judge_agents, asked).how);
    EXPECT_TRUE(says(judged(judge_agents, asked), "\"n1\" is removed when it is dead"));
    auto one = servers(1);
    one[0].removes_dead_servers = true;
    EXPECT_EQ(level::good, judged(judge_agents, one).how) << "nobody is left to remove it";
    one[0].server = false;
    EXPECT_EQ(level::good, judged(judge_agents, one).how);
    one[0].leaves_when_ended = true;
    EXPECT_EQ(level::warn, judged(judge_agents, one).how);
    EXPECT_TRUE(says(judged(judge_agents, one), "\"n0\" leaves"));
}

TEST(ConsulFacts, FewConnections) {
    auto asked = servers(2);
    EXPECT_EQ(level::good, judged(judge_connections, asked).how);
    asked[1].connections = 100;
    EXPECT_EQ(level::warn, judged(judge_connections, asked).how);
    EXPECT_TRUE(says(judged(judge_connections, asked), "takes 100 of one machine"));
}

TEST(ConsulFacts, TheLeastTtlIsReadFromARefusal) {
    const std::string words = "h: Invalid Session TTL '1000000000', must be between [";
    EXPECT_EQ(10s, least_ttl_in(words + "10s=24h0m0s]"));
    EXPECT_EQ(90s, least_ttl_in(words + "1m30s=24h0m0s]"));
    EXPECT_EQ(2s, least_ttl_in(words + "1500ms=24h0m0s]"));
    EXPECT_FALSE(least_ttl_in(words + "soon]"));
    EXPECT_FALSE(least_ttl_in("Invalid Session"));
    examination e;
    judge_session_ttl(10s, 15s, e);
    EXPECT_EQ(level::good, only(e).how);
    examination longer;
    judge_session_ttl(16s, 15s, longer);
    EXPECT_EQ(level::warn, only(longer).how);
    EXPECT_NE(std::string::npos, only(longer).advice.find("ttl = \"16s\""));
    examination configured;
    judge_session_ttl(16s, 20s, configured);
    EXPECT_EQ(level::good, only(configured).how);
    examination too_short;
    judge_session_ttl(1s, 5s, too_short);
    EXPECT_EQ(level::warn, only(too_short).how);
    EXPECT_NE(std::string::npos, only(too_short).advice.find("ttl = \"10s\""));
}

TEST(ConsulFacts, ANewLeaderMayTakeTooLong) {
    EXPECT_EQ(level::good, judged(judge_consul_outage, servers(3), 10s).how);
    auto slow = servers(3);
    for (auto& one : slow) one.election_timeout = 5s;
    EXPECT_EQ(level::warn, judged(judge_consul_outage, slow, 10s).how);
    EXPECT_TRUE(says(judged(judge_consul_outage, slow, 10s), "a new leader may take 15 s"));
    slow.resize(1);
    slow[0].peers.resize(1);
    EXPECT_EQ(level::good, judged(judge_consul_outage, slow, 10s).how) << "there is no other one";
    auto agents = servers(3);
    for (auto& one : agents) one.server = false;
    EXPECT_EQ(level::good, judged(judge_consul_outage, agents, 10s).how);
    EXPECT_TRUE(says(judged(judge_consul_outage, agents, 10s), "raft_multiplier of 5"));
}

}  // namespace
}  // namespace trinco::program::doctor
