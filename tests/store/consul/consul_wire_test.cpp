// What goes to Consul and comes from it, byte by byte.
#include "store/consul/consul_wire.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;
using verb_t = operation::verb_t;

operation doing(verb_t verb) {
    operation one;
    one.verb = verb;
    one.key = "k";
    one.value = "v";
    one.flags = 0x2ddccbc058a50c18;
    one.index = 9;
    one.session = "s";
    return one;
}

TEST(ConsulWire, each_operation_says_what_it_needs_and_nothing_else) {
    const std::string written = R"(,"Value":"dg==","Flags":3304740253564472344)";
    const auto bytes = [](verb_t verb) { return encode_txn({{doing(verb)}}); };
    const auto kv = [](const std::string& verb, const std::string& more) {
        return R"([{"KV":{"Verb":")" + verb + R"(","Key":"k")" + more + "}}]";
    };
    EXPECT_EQ(bytes(verb_t::set), kv("set", written));
    EXPECT_EQ(bytes(verb_t::cas), kv("cas", written + R"(,"Index":9)"));
    EXPECT_EQ(bytes(verb_t::lock), kv("lock", written + R"(,"Session":"s")"));
    EXPECT_EQ(bytes(verb_t::unlock), kv("unlock", written + R"(,"Session":"s")"));
    EXPECT_EQ(bytes(verb_t::get), kv("get", ""));
    EXPECT_EQ(bytes(verb_t::get_tree), kv("get-tree", ""));
    EXPECT_EQ(bytes(verb_t::check_index), kv("check-index", R"(,"Index":9)"));
    EXPECT_EQ(bytes(verb_t::check_session), kv("check-session", R"(,"Session":"s")"));
    EXPECT_EQ(bytes(verb_t::check_not_exists), kv("check-not-exists", ""));
    EXPECT_EQ(bytes(verb_t::erase), kv("delete", ""));
    EXPECT_EQ(bytes(verb_t::erase_cas), kv("delete-cas", R"(,"Index":9)"));
}

TEST(ConsulWire, numbers_of_64_bits_are_exact) {
    auto one = doing(verb_t::cas);
    one.flags = std::numeric_limits<std::uint64_t>::max();
    one.index = 16210313421097356768U;
    const auto bytes = encode_txn({{one}});
    EXPECT_NE(bytes.find("\"Flags\":18446744073709551615"), std::string::npos) << bytes;
    EXPECT_NE(bytes.find("\"Index\":16210313421097356768"), std::string::npos) << bytes;
    const auto reply = decode_txn(
        R"({"Results":[{"KV":{"LockIndex":1,"Key":"k","Flags":18446744073709551615,"Value":null,)"
        R"("CreateIndex":9007199254740993,"ModifyIndex":16210313421097356768}}],"Errors":null})",
        true);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->rows.at(0).flags, std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(reply->rows.at(0).create_index, 9007199254740993U);
    EXPECT_EQ(reply->rows.at(0).modify_index, 16210313421097356768U);
}

std::optional<read_reply> read_of(const std::string& value) {
    http_response reply;
    reply.fields = {{"X-Consul-Index", "3"}};
    reply.body = R"([{"Key":"k","Flags":0,"LockIndex":0,"CreateIndex":1,"ModifyIndex":1,"Value":)" +
                 value + "}]";
    return decode_read(reply);
}

TEST(ConsulWire, values_are_any_bytes) {
    std::mt19937 random(3);
    for (std::size_t size = 0; size < 70; ++size) {
        auto one = doing(verb_t::set);
        one.value.clear();
        for (std::size_t i = 0; i < size; ++i) one.value += static_cast<char>(random());
        const auto bytes = encode_txn({{one}});
        const auto begin = bytes.find("\"Value\":") + 8;
        const auto reply = read_of(bytes.substr(begin, bytes.find(',', begin) - begin));
        ASSERT_TRUE(reply) << bytes;
        EXPECT_EQ(reply->rows.at(0).value, one.value);
    }
    EXPECT_EQ(read_of("null")->rows.at(0).value, "");
    for (const auto* bad : {"\"a\"", "\"ab=d\"", "\"a===\"", "\"_-==\"", "7"}) {
        const auto reply = read_of(bad);
        EXPECT_TRUE(!reply || reply->rows.at(0).value.empty()) << bad;
    }
}

TEST(ConsulWire, a_refused_transaction_says_why) {
    const auto why = [](const std::string& what) {
        const auto reply = decode_txn(
            R"({"Results":null,"Errors":[{"OpIndex":2,"What":")" + what + "\"}]}", false);
        EXPECT_TRUE(reply && !reply->applied && reply->refusals.size() == 1) << what;
        if (!reply) return refusal_t::other;
        EXPECT_EQ(reply->refusals[0].operation, 2U);
        return reply->refusals[0].why;
    };
    const std::string k = R"(\"index is stale\")";  // a key of any words
    EXPECT_EQ(why("failed to lock key " + k + ", lock is already held"), refusal_t::held);
    EXPECT_EQ(why("failed to lock key " + k + " due to lock delay"), refusal_t::lock_delay);
    EXPECT_EQ(why(R"(invalid session \"x\")"), refusal_t::no_session);
    EXPECT_EQ(why("failed to set key " + k + ", index is stale"), refusal_t::index);
    EXPECT_EQ(why("failed to delete key " + k + ", index is stale"), refusal_t::index);
    EXPECT_EQ(why("failed index check for key " + k + ", current modify index 3 != 4"),
              refusal_t::index);
    EXPECT_EQ(why("failed to check index, key " + k + " doesn't exist"), refusal_t::index);
    EXPECT_EQ(why("key " + k + " exists"), refusal_t::index);
    EXPECT_EQ(why("key " + k + " doesn't exist"), refusal_t::absent);
    EXPECT_EQ(why("failed to check session, key " + k + " doesn't exist"), refusal_t::session);
    EXPECT_EQ(why("failed session check for key " + k + R"(, current session \"a\" != \"b\")"),
              refusal_t::session);
    EXPECT_EQ(why("failed to unlock key " + k + ", lock isn't held, or is held by another session"),
              refusal_t::session);
    EXPECT_EQ(why("Permission denied: token with AccessorID 'x' lacks permission 'key:write'"),
              refusal_t::denied);
    EXPECT_EQ(why("unknown KV verb " + k), refusal_t::other);
}

TEST(ConsulWire, sessions) {
    EXPECT_EQ(encode_session({"a \"b\"", 15s, 0s, true}),
              R"({"Name":"a \"b\"","TTL":"15s","LockDelay":"0s","Behavior":"delete",)"
              R"("Checks":[],"NodeChecks":[]})");
    EXPECT_NE(encode_session({"a", 15s, 5s, false}).find(R"("release")"), std::string::npos);
    const std::string id = "adf4238a-882b-9ddc-4a9d-5b6758e4159e";
    const auto made = [](const std::string& of) {
        return decode_session_id(R"({"ID":")" + of + "\"}");
    };
    EXPECT_EQ(made(id), id);
    for (const auto& bad : {std::string(), std::string("adf4238a"), id + "0", id.substr(1) + "/",
                            id.substr(1) + "x", id.substr(1) + "A", id.substr(1) + "\\n"}) {
        EXPECT_FALSE(made(bad)) << bad;
    }
    const auto all = decode_sessions(
        R"([{"ID":"a","Name":"n","Node":"h","LockDelay":1500000000,"Behavior":"delete",)"
        R"("TTL":"1m30s","NodeChecks":[],"CreateIndex":4},{"ID":"b","LockDelay":1.5e+10}])");
    ASSERT_TRUE(all);
    EXPECT_EQ(all->at(0).lock_delay, 1500ms);
    EXPECT_EQ(all->at(0).ttl, 90s);
    EXPECT_EQ(all->at(0).node, "h");
    EXPECT_TRUE(all->at(0).erases);
    EXPECT_EQ(all->at(1).lock_delay, 15s);
    EXPECT_EQ(all->at(1).ttl, 0s) << "it ends by no TTL";
    EXPECT_TRUE(decode_sessions("null")->empty());
    EXPECT_FALSE(decode_sessions(R"([{"Name":"n"}])"));
}

TEST(ConsulWire, durations_are_those_of_go) {
    EXPECT_EQ(duration_of("15s"), 15s);
    EXPECT_EQ(duration_of("1h2m3.5s"), 3'723'500ms);
    EXPECT_EQ(duration_of("250ms"), 250ms);
    EXPECT_EQ(duration_of("0"), 0ms);
    for (const auto* bad : {"", "s", "15", "15x", "-3s", "1e300h", "nans"}) {
        EXPECT_FALSE(duration_of(bad)) << bad;
    }
}

TEST(ConsulWire, what_a_key_says_in_a_path_is_the_key) {
    EXPECT_EQ(escaped("a/b.lock-_~", true), "a/b.lock-_~");
    EXPECT_EQ(escaped("a/b", false), "a%2Fb");
    EXPECT_EQ(escaped("trinco:records/ \xc3\xa4?#%", true), "trinco%3Arecords/%20%C3%A4%3F%23%25");
}

TEST(ConsulWire, an_agent_about_itself) {
    server_status s;
    ASSERT_TRUE(decode_agent(
        R"({"Config":{"Datacenter":"dc1","NodeName":"n","Server":true,"Version":"1.14.11"},)"
        R"("DebugConfig":{"SessionTTLMin":"1m0s"}})",
        s));
    EXPECT_EQ(s.version, "1.14.11");
    EXPECT_EQ(s.datacenter, "dc1");
    EXPECT_EQ(s.node, "n");
    EXPECT_TRUE(s.server);
    EXPECT_EQ(s.session_ttl_min, 60s);
    EXPECT_EQ(s.election_timeout, 0s);
    EXPECT_EQ(s.connections, 0U);
    EXPECT_FALSE(s.leaves_when_ended || s.removes_dead_servers);
    ASSERT_TRUE(decode_agent(R"({"Config":{},"DebugConfig":{"ConsulRaftElectionTimeout":"5s",
        "HTTPMaxConnsPerClient":200,"LeaveOnTerm":true,"AutopilotCleanupDeadServers":true}})",
                             s));
    EXPECT_EQ(s.election_timeout, 5s);
    EXPECT_EQ(s.connections, 200U);
    EXPECT_TRUE(s.leaves_when_ended && s.removes_dead_servers);
    ASSERT_TRUE(decode_agent(R"({"Config":{},"DebugConfig":{"SessionTTLMin":"0s"}})", s));
    EXPECT_EQ(s.session_ttl_min, 10s);
    EXPECT_FALSE(decode_agent("[]", s));
}

TEST(ConsulWire, whatever_comes_is_read_or_refused) {
    std::mt19937 random(11);
    const std::string sound =
        R"([{"KV":{"LockIndex":1,"Key":"k","Flags":0,"Value":"dg==","Session":"s","TTL":"15s"}}])";
    for (int i = 0; i < 20'000; ++i) {
        auto body = sound.substr(0, random() % (sound.size() + 1));
        for (auto n = random() % 4; n > 0 && !body.empty(); --n) {
            body[random() % body.size()] = static_cast<char>(random());
        }
        server_status status;
        http_response reply;
        reply.body = body;
        reply.fields = {{"X-Consul-Index", "1"}};
        (void)decode_read(reply);
        (void)decode_txn(body, i % 2 == 0);
        (void)decode_sessions(body);
        (void)decode_texts(body);
        (void)decode_text(body);
        (void)decode_agent(body, status);
        (void)refusal_of(body);
        (void)duration_of(body);
    }
    EXPECT_FALSE(decode_txn(std::string(100'000, '['), true)) << "no stack is that deep";
}

}  // namespace
}  // namespace trinco::detail::consul
