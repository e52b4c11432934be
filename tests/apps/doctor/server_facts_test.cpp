#include "apps/trinco/doctor/server_facts.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace trinco::program::doctor {
namespace {

using said = std::initializer_list<std::pair<const char*, const char*>>;

// "level: sentence" of the one finding, or "nothing".
template <class Judge>
std::string judged(Judge judge, said all, std::size_t nth = 0) {
    server_facts facts;
    for (const auto& [key, value] : all) facts.set_config(key, value);
    examination to;
    judge(facts, to);
    if (to.all.size() <= nth) return "nothing";
    const finding& one = to.all[nth];
    EXPECT_EQ(one.how == level::good, one.advice.empty()) << one.sentence;
    return std::string(word_of(one.how)) + ": " + one.sentence;
}

// While writes are taken.
void memory(const server_facts& facts, examination& to) {
    judge_memory(facts, false, to);
}
void persistence(const server_facts& facts, examination& to) {
    judge_persistence(facts, false, to);
}
void full_memory(const server_facts& facts, examination& to) {
    judge_memory(facts, true, to);
}
void full_disk(const server_facts& facts, examination& to) {
    judge_persistence(facts, true, to);
}

bool begins(const std::string& text, std::string_view with) {
    return text.starts_with(with);
}

TEST(ServerFacts, AreLinesOfInfo) {
    server_facts facts;
    facts.read_info("# Server\r\nredis_version:7.0.15\r\n\r\nslave0:ip=1.2.3.4,port=1\r\nx:\r\nno");
    EXPECT_EQ("7.0.15", facts.text("redis_version"));
    EXPECT_EQ("ip=1.2.3.4,port=1", facts.text("slave0"));
    EXPECT_EQ("", facts.text("x"));
    EXPECT_EQ(std::nullopt, facts.text("no"));
    EXPECT_EQ(std::nullopt, facts.number("redis_version"));
    facts.read_info("maxmemory:1048576");
    EXPECT_EQ(1'048'576U, facts.number("maxmemory"));
}

TEST(ServerFacts, OfNothingNothingIsJudged) {
    for (auto* judge : {judge_version, judge_role, memory, persistence, judge_replicas}) {
        EXPECT_EQ("nothing", judged(judge, {}));
    }
}

TEST(ServerFacts, Version) {
    EXPECT_EQ("ok: Redis \"7.0.15\"", judged(judge_version, {{"redis_version", "7.0.15"}}));
    EXPECT_EQ("ok: Redis \"6.0.16\"", judged(judge_version, {{"redis_version", "6.0.16"}}));
    EXPECT_TRUE(begins(judged(judge_version, {{"redis_version", "5.0.14"}}), "bad: "));
    EXPECT_EQ("ok: Valkey \"8.0.1\"",
              judged(judge_version, {{"redis_version", "7.2.4"}, {"valkey_version", "8.0.1"}}));
}

TEST(ServerFacts, Role) {
    EXPECT_TRUE(begins(judged(judge_role, {{"role", "master"}}), "ok: "));
    EXPECT_EQ("bad: a replica of \"10.0.0.7:6379\": it refuses what breakers write",
              judged(judge_role,
                     {{"role", "slave"}, {"master_host", "10.0.0.7"}, {"master_port", "6379"}}));
    server_facts facts;
    facts.read_info("role:slave\nmaster_host:fe80::1\nmaster_port:7\nmaster_link_status:down\n");
    examination to;
    judge_role(facts, to);
    EXPECT_TRUE(begins(to.all[0].advice, "name the primary, redis://[fe80::1]:7, or "));
    EXPECT_TRUE(to.all[0].sentence.ends_with("its connection to the primary is down"));
}

TEST(ServerFacts, EvictionAndMemory) {
    EXPECT_TRUE(begins(judged(memory, {{"maxmemory_policy", "noeviction"}}), "ok: "));
    for (const char* policy :
         {"allkeys-lru", "volatile-lru", "volatile-ttl", "allkeys-random", "volatile-lfu"}) {
        EXPECT_TRUE(begins(judged(memory, {{"maxmemory_policy", policy}}),
                           "warn: maxmemory-policy is \"" + std::string(policy) + "\""));
    }
    EXPECT_TRUE(begins(judged(memory, {{"maxmemory", "0"}, {"used_memory", "1000000"}}),
                       "ok: 977 KiB used; no limit"));
    const said fair = {{"maxmemory", "100000000"}, {"used_memory", "89000000"}};
    EXPECT_TRUE(begins(judged(memory, fair), "ok: 84.9 MiB of 95.4 MiB"));
    const said full = {{"maxmemory", "100000000"}, {"used_memory", "91000000"}};
    EXPECT_TRUE(begins(judged(memory, full), "warn: 86.8 MiB of 95.4 MiB"));
    // Buffers that do not count are no reason to refuse writes.
    const said over = {{"maxmemory", "500000"},
                       {"used_memory", "2000000"},
                       {"maxmemory_policy", "noeviction"},
                       {"mem_not_counted_for_evict", "9"}};
    EXPECT_TRUE(
        begins(judged(memory, over, 1), "bad: 1.9 MiB of 488 KiB used: the server refuses"));
    const said buffers = {{"maxmemory", "500000"},
                          {"used_memory", "2000000"},
                          {"maxmemory_policy", "noeviction"},
                          {"mem_not_counted_for_evict", "1900000"}};
    EXPECT_TRUE(begins(judged(memory, buffers, 1), "warn: "));
    EXPECT_TRUE(begins(judged(full_memory, fair), "bad: 84.9 MiB of 95.4 MiB used: the server"));
    EXPECT_TRUE(begins(judged(full_memory, {}), "bad: all that maxmemory allows is used: "));
    EXPECT_TRUE(begins(judged(full_disk, {{"appendonly", "no"}}), "bad: it cannot save"));
}

TEST(ServerFacts, Persistence) {
    EXPECT_TRUE(begins(judged(persistence, {{"appendonly", "yes"}}), "ok: appendonly"));
    EXPECT_TRUE(begins(judged(persistence, {{"appendonly", "no"}, {"save", ""}}), "warn: none: "));
    EXPECT_TRUE(begins(judged(persistence, {{"appendonly", "no"}, {"save", "3600 1"}}),
                       "ok: snapshots (save \"3600 1\")"));
    EXPECT_TRUE(begins(judged(persistence, {{"aof_enabled", "0"}}), "ok: no appendonly; "));
}

TEST(ServerFacts, Replicas) {
    EXPECT_TRUE(begins(judged(judge_replicas, {{"role", "master"}, {"connected_slaves", "0"}}),
                       "ok: none: "));
    const said missing = {
        {"role", "master"}, {"connected_slaves", "1"}, {"min-replicas-to-write", "2"}};
    EXPECT_TRUE(begins(judged(judge_replicas, missing), "bad: 1 replica, 1 of them well"));
    const said lagging = {{"role", "master"},
                          {"connected_slaves", "2"},
                          {"min_slaves_good_slaves", "1"},
                          {"min-replicas-to-write", "2"}};
    EXPECT_TRUE(begins(judged(judge_replicas, lagging), "bad: 2 replicas, 1 of them well"));
    const said well = {
        {"role", "master"}, {"connected_slaves", "2"}, {"min-replicas-to-write", "1"}};
    EXPECT_TRUE(begins(judged(judge_replicas, well), "ok: 2 replicas; min-replicas-to-write is 1"));
}

TEST(Findings, TheWorstCounts) {
    examination one{"breakers", "redis://h"};
    one.good("a", "fine");
    EXPECT_EQ(level::good, one.worst());
    one.warn("b", "so so", "mend it");
    EXPECT_EQ(level::warn, one.worst());
    one.bad("c", "broken", "buy a new one");
    one.all.back().commands = {"buy " + std::string(200, '-') + " new"};
    EXPECT_EQ(level::bad, one.worst());
    EXPECT_EQ("b warn\nc bad\n", names_of({&one, 1}));
    const std::string text = text_of({&one, 1});
    EXPECT_NE(std::string::npos, text.find("  warn  b            so so\n"));
    EXPECT_NE(std::string::npos, text.find("-> buy a new one\n")) << text;
    EXPECT_NE(std::string::npos, text.find("   " + one.all.back().commands[0] + "\n")) << text;
    EXPECT_NE(std::string::npos,
              json_of({&one, 1}).find(R"({"check":"b","level":"warn","sentence":"so so",)"
                                      R"("advice":"mend it","commands":[],"figures":{}})"));
}

}  // namespace
}  // namespace trinco::program::doctor
