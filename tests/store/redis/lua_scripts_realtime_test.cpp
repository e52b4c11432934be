// The scripts as they run in production, with the server's own clock: what a comparison with the
// record does not show. Messages, rights, foreign keys, later layouts, bounds.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/script_protocol.hpp"
#include "tests/core/record_lab.hpp"
#include "tests/store/redis/loaded_scripts.hpp"
#include "tests/store/redis/record_text.hpp"
#include "tests/store/redis/test_server.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using trinco::detail::text_of;

constexpr const char* breaker = "payments";

breaker_identity identity(int n) {
    return {"i" + std::to_string(n), "v" + std::to_string(n)};
}

news news_of(const policy& p, std::uint64_t seq, counts n = {}) {
    news x;
    x.breaker = breaker;
    x.options = to_text(p);
    x.seq = seq;
    x.slices.push_back({n, milliseconds(0)});
    return x;
}

control_request control_of(control_verb verb, std::uint64_t id) {
    control_request c;
    c.breaker = breaker;
    c.id = id;
    c.verb = verb;
    return c;
}

class LuaScripts : public testing::Test {
protected:
    void SetUp() override {
        const auto program = find_redis_server();
        if (!program) {
            GTEST_SKIP() << "there is no redis-server and no valkey-server in PATH; `make servers` "
                            "gets one";
        }
        server_.emplace(*program);
        connection_.emplace(server_->socket());
    }

    [[nodiscard]] test_connection& on() { return *connection_; }
    [[nodiscard]] std::string socket() const { return server_->socket(); }

    resp_reply run(const std::optional<script_call>& call) { return run(*connection_, call); }
    static resp_reply run(test_connection& to, const std::optional<script_call>& call) {
        if (!call) return resp_reply::error_of("the call is invalid");
        std::vector<std::string> words{"EVAL", std::string(text_of(call->script)),
                                       std::to_string(call->keys.size())};
        words.insert(words.end(), call->keys.begin(), call->keys.end());
        words.insert(words.end(), call->arguments.begin(), call->arguments.end());
        return to.call(words);
    }
    verdict exchange(int i, const news& n) {
        return verdict_from(run(call_of("test", identity(i), n))).value;
    }
    view control(control_verb verb, std::uint64_t id) {
        return view_from(run(call_of("test", control_of(verb, id)))).value;
    }
    probe_reply take(int i, std::uint64_t token) {
        probe_request p;
        p.breaker = breaker;
        p.token = token;
        return probe_reply_from(run(call_of("test", identity(i), p))).value;
    }
    script_answer<glance> look(test_connection& to, const view& mine = {}) {
        return glance_from(run(to, call_of("test", look_request{breaker, mine})));
    }
    // Sorted by name: a server that is still rehashing gives them in another order each time.
    std::map<std::string, std::string> fields(const std::string& key) {
        const resp_reply all = on().call({"HGETALL", key});
        std::map<std::string, std::string> found;
        for (std::size_t k = 0; k + 1 < all.elements.size(); k += 2) {
            found[all.elements[k].text] = all.elements[k + 1].text;
        }
        return found;
    }
    [[nodiscard]] std::int64_t keys() { return on().call({"DBSIZE"}).integer; }

private:
    std::optional<test_server> server_;
    std::optional<test_connection> connection_;
};

TEST_F(LuaScripts, TakeTheServersTimeAndSayWhatTheyCost) {
    const auto start = std::chrono::system_clock::now().time_since_epoch();
    const auto reply = view_from(run(call_of("test", control_of(control_verb::trip, 1))));
    const auto end = std::chrono::system_clock::now().time_since_epoch();
    ASSERT_FALSE(reply.error);
    const auto era = std::chrono::microseconds(reply.value.era);
    EXPECT_GE(era, std::chrono::floor<std::chrono::microseconds>(start));
    EXPECT_LE(era, end);
    EXPECT_LT(reply.cost, 1s);
    EXPECT_TRUE(reply.published);
}

TEST_F(LuaScripts, TellTheFleet) {
    test_connection fleet(socket());
    fleet.call({"SUBSCRIBE", breaker_channel("test")});
    const auto heard = [&fleet] {
        return notice_from(fleet.receive().elements.at(2).text).value_or(notice{});
    };
    policy p = plain_policy();
    p.minimum_calls = 5;
    // The options come, and a window that would open but is too young.
    const verdict v = exchange(1, news_of(p, 1, calls(0, 10)));
    notice n = heard();
    EXPECT_EQ(n.kind, notice::kind_t::changed);
    EXPECT_EQ(n.breaker, breaker);
    EXPECT_EQ(n.fleet.rev, 1U);
    EXPECT_EQ(n.fleet.options_stamp, v.fleet.options_stamp);
    EXPECT_EQ(heard().kind, notice::kind_t::flush);
    const view after = control(control_verb::trip, 7);
    n = heard();
    EXPECT_EQ(n.kind, notice::kind_t::changed);
    EXPECT_EQ(n.fleet.era, after.era);
    EXPECT_EQ(n.fleet.state, breaker_state::open);
    EXPECT_EQ(n.fleet.reason, "operator trip");
    // What changes nothing is not told: the next message is that of the control after it.
    exchange(1, news_of(p, 2, calls(1, 0)));
    control(control_verb::trip, 7);
    const view last = control(control_verb::reset, 8);
    EXPECT_EQ(heard().fleet.era, last.era);
}

TEST_F(LuaScripts, DecideEvenWhereNobodyMayBeTold) {
    on().call({"ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "resetchannels"});
    test_connection app(socket());
    ASSERT_EQ(app.call({"AUTH", "app", "secret"}).text, "OK");
    const auto told = view_from(run(app, call_of("test", control_of(control_verb::trip, 1))));
    ASSERT_FALSE(told.error);
    EXPECT_FALSE(told.published);
    EXPECT_EQ(told.value.state, breaker_state::open);
    EXPECT_EQ(exchange(1, news_of(plain_policy(), 1)).fleet.state, breaker_state::open);
}

TEST_F(LuaScripts, LeaveALaterLayoutAlone) {
    const auto key = breaker_keys("test", breaker)[0];
    on().call({"HSET", key, "layout", "3", "era", "something else"});
    const std::string before = on().call({"DUMP", key}).text;
    EXPECT_EQ(exchange(1, news_of(plain_policy(), 1)).error, errc::not_supported);
    probe_request p;
    p.breaker = breaker;
    p.token = 1;
    EXPECT_EQ(probe_reply_from(run(call_of("test", identity(1), p))).error, errc::not_supported);
    EXPECT_EQ(view_from(run(call_of("test", control_of(control_verb::trip, 1)))).error,
              errc::not_supported);
    EXPECT_EQ(report_from(run(inspect_call("test", breaker)), breaker).error, errc::not_supported);
    EXPECT_EQ(look(on()).error, errc::not_supported);
    EXPECT_EQ(on().call({"DUMP", key}).text, before);
    EXPECT_EQ(keys(), 1);
}

// As it was kept before: numbers in fields of their own, voters without the second of theirs.
void make_layout_one(test_connection& on, const std::vector<std::string>& keys) {
    constexpr const char* names[] = {"clock",
                                     "skew",
                                     "era",
                                     "rev",
                                     "state",
                                     "ends",
                                     "since",
                                     "backoff_level",
                                     "over",
                                     "over_ends",
                                     "options_stamp",
                                     "configured_stamp",
                                     "set_ends",
                                     "suspect_since",
                                     "reclaimed",
                                     "set_aside_at",
                                     "taken_over_at",
                                     "forgot_at",
                                     "live_instances",
                                     "swept_at",
                                     "window_gen"};
    const std::string numbers = on.call({"HGET", keys[0], "numbers"}).text;
    ASSERT_GE(numbers.size(), sizeof(double) * std::size(names));
    for (std::size_t k = 0; k < std::size(names); ++k) {
        double x = 0;
        std::memcpy(&x, &numbers[k * sizeof x], sizeof x);
        on.call({"HSET", keys[0], names[k], std::to_string(static_cast<std::int64_t>(x))});
    }
    on.call({"HDEL", keys[0], "numbers", "rules"});
    on.call({"HSET", keys[0], "layout", "1"});
    const resp_reply voters = on.call({"HGETALL", keys[1]});
    for (std::size_t k = 0; k + 1 < voters.elements.size(); k += 2) {
        std::string bytes = voters.elements[k + 1].text;
        ASSERT_EQ(bytes.size(), 112U);
        on.call({"HSET", keys[1], voters.elements[k].text, bytes.erase(8, 8)});
    }
}

TEST_F(LuaScripts, ReadARecordOfLayoutOne) {
    for (int i = 1; i <= 3; ++i) exchange(i, news_of(plain_policy(), 1, calls(1, 1)));
    const view before = control(control_verb::trip, 1);
    const auto keys = breaker_keys("test", breaker);
    make_layout_one(on(), keys);
    const view seen = look(on(), before).value.fleet;
    EXPECT_EQ(seen.era, before.era);
    EXPECT_EQ(seen.rev, before.rev);
    EXPECT_EQ(seen.state, breaker_state::open);
    EXPECT_GT(seen.remaining, 1s);
    EXPECT_EQ(seen.reason, before.reason);
    EXPECT_EQ(seen.options_stamp, before.options_stamp);
    EXPECT_NE(seen.options_stamp, 0U);
    news n = news_of(plain_policy(), 2, calls(1, 0));
    n.mine = before;
    const verdict v = exchange(1, n);
    EXPECT_EQ(v.fleet.era, before.era);
    EXPECT_EQ(v.fleet.state, breaker_state::open);
    EXPECT_EQ(v.fleet.reason, "operator trip");
    EXPECT_TRUE(v.counted);
    EXPECT_EQ(v.live, 3U);
    EXPECT_EQ(v.window, calls(1, 0));
    EXPECT_FALSE(exchange(1, n).counted);
    EXPECT_EQ(look(on(), before).value.fleet.era, before.era);
    EXPECT_EQ(on().call({"HGET", keys[0], "layout"}).text, "2");
    EXPECT_EQ(on().call({"HEXISTS", keys[0], "era"}).integer, 0) << "a field of layout 1";
}

TEST_F(LuaScripts, LeaveAKeyOfAnotherTypeAlone) {
    const auto keys = breaker_keys("test", breaker);
    for (const auto& key : keys) {
        control(control_verb::trip, 1);
        on().call({"DEL", key});
        on().call({"SET", key, "mine"});
        const resp_reply reply = run(call_of("test", identity(1), news_of(plain_policy(), 1)));
        EXPECT_TRUE(reply.is(resp_reply::kind_t::error));
        EXPECT_NE(reply.text.find("WRONGTYPE"), std::string::npos) << reply.text;
        if (key != keys[2]) {
            const resp_reply said = run(call_of("test", control_of(control_verb::reset, 2)));
            EXPECT_NE(said.text.find("WRONGTYPE"), std::string::npos) << key << ": " << said.text;
            EXPECT_EQ(on().call({"PTTL", key}).integer, -1);
        }
        EXPECT_EQ(on().call({"GET", key}).text, "mine");
        on().call({"FLUSHALL"});
    }
}

// By the rights that it needs: no command but TIME and HMGET, on one key, none of them writing.
TEST_F(LuaScripts, LookWithoutTheRightToWrite) {
    const view after = control(control_verb::trip, 1);
    const auto key = breaker_keys("test", breaker)[0];
    const auto before = fields(key);
    ASSERT_FALSE(before.empty());
    on().call({"ACL", "SETUSER", "reader", "on", ">secret", "~" + key, "-@all", "+auth", "+eval",
               "+evalsha", "+evalsha_ro", "+time", "+hmget"});
    test_connection reader(socket());
    ASSERT_EQ(reader.call({"AUTH", "reader", "secret"}).text, "OK");
    const auto seen = look(reader);
    ASSERT_FALSE(seen.error);
    EXPECT_TRUE(seen.value.exchange_first) << "the options are unknown";
    EXPECT_EQ(seen.value.fleet.era, after.era);
    EXPECT_EQ(seen.value.fleet.state, breaker_state::open);
    EXPECT_EQ(seen.value.fleet.reason, "operator trip");
    const std::string sha =
        on().call({"SCRIPT", "LOAD", std::string(text_of(redis_script::look))}).text;
    const resp_reply read_only = reader.call({"EVALSHA_RO", sha, "1", key, "0", "0", "0"});
    // Redis knows that command from 7.0 on.
    if (read_only.text.find("unknown command") == std::string::npos) {
        EXPECT_EQ(glance_from(read_only).value.fleet.era, after.era) << read_only.text;
    }
    EXPECT_EQ(fields(key), before);
}

TEST_F(LuaScripts, LookMakesNoKey) {
    EXPECT_TRUE(look(on()).value.exchange_first);
    EXPECT_EQ(keys(), 0);
}

TEST_F(LuaScripts, MakeNoKeyForARefusal) {
    EXPECT_FALSE(take(1, 1).granted);
    EXPECT_EQ(keys(), 0);
    EXPECT_FALSE(report_from(run(inspect_call("test", breaker)), breaker).value);
}

TEST_F(LuaScripts, KeepErasUpToTheLast) {
    news n = news_of(plain_policy(), max_era - 1);
    n.mine.era = max_era - 1;
    n.mine.rev = max_era - 2;
    n.mine.state = breaker_state::open;
    const verdict v = exchange(1, n);
    EXPECT_EQ(v.fleet.era, max_era - 1);
    EXPECT_EQ(v.fleet.rev, max_era - 1);  // the options came
    EXPECT_TRUE(v.counted);
    EXPECT_FALSE(exchange(1, n).counted);
}

// What belonged to a record that was lost must not come back with the next one.
TEST_F(LuaScripts, BeginAnewWhenTheRecordIsLost) {
    exchange(1, news_of(plain_policy(), 5, calls(1, 1)));
    on().call({"DEL", breaker_keys("test", breaker)[0]});
    const verdict v = exchange(2, news_of(plain_policy(), 1, calls(1, 0)));
    EXPECT_EQ(v.live, 1U);
    EXPECT_EQ(v.window, calls(1, 0));
    EXPECT_EQ(exchange(2, news_of(plain_policy(), 2)).live, 1U);
    EXPECT_EQ(report_from(run(inspect_call("test", breaker)), breaker).value->shares.size(), 1U);
}

TEST_F(LuaScripts, KeepTheIndexAsLongAsItsLongestRecord) {
    const auto key = breaker_index_key("test");
    const auto left = [&] { return on().call({"PTTL", key}).integer; };
    const auto c = view_from(run(call_of("test", control_of(control_verb::disable, 1))));
    EXPECT_EQ(c.lives, 24h + policy{}.key_ttl);
    EXPECT_EQ(run(index_call("test", "payments", c.lives)).integer, 1);
    EXPECT_GT(left(), 24 * 3'600'000);
    EXPECT_EQ(run(index_call("test", "a", 1s)).integer, 1);
    EXPECT_GT(left(), 24 * 3'600'000);
    const auto names = on().call({"ZRANGEBYLEX", key, "-", "+"});
    ASSERT_EQ(names.elements.size(), 2U);
    EXPECT_EQ(names.elements[0].text, "a");
    on().call({"DEL", key});
    run(index_call("test", "a", 1s));
    EXPECT_GT(left(), 0);
    EXPECT_LE(left(), 1'000);
}

// Tells `many` instances' news, one after the other, to the record and to the scripts.
void expect_the_same_record(test_connection& on, int many, int voters) {
    loaded_scripts scripts(on);
    fleet_record r;
    store_time now = 1'700'000'000s;
    for (int n = 0; n < many; ++n) {
        // Not in the order of their names, and some at the same time.
        const breaker_identity who{"i" + std::to_string(n * 7'919 % many),
                                   "v" + std::to_string(n * 7'919 % voters)};
        const news x = news_of(plain_policy(), 1, calls(1, 0));
        effects did;
        (void)apply(r, who, x, now, did);
        scripts.send(*call_of("test", who, x), now);
        ASSERT_FALSE(verdict_from(scripts.server().receive()).error);
        now += n % 5 == 0 ? 0us : 1'000us;
    }
    const auto keys = breaker_keys("test", breaker);
    EXPECT_EQ(scripts.record(keys, now), test::text_of(r));
}

TEST_F(LuaScripts, ForgetTheSameVotersWhenThereAreTooMany) {
    expect_the_same_record(on(), 600, 600);
}

TEST_F(LuaScripts, ForgetTheSameInstancesWhenThereAreTooMany) {
    expect_the_same_record(on(), 4'200, 3);
}

// Spent tokens and ids of controls, by number first and then by age.
TEST_F(LuaScripts, ForgetTheSameTokensAndIds) {
    loaded_scripts scripts(on());
    fleet_record r;
    store_time now = 1'700'000'000s;
    const auto keys = breaker_keys("test", breaker);
    for (std::uint64_t n = 1; n <= 330; ++n) {
        effects did;
        if (n <= 80 || n > 320) {
            std::error_code error;
            const control_request c = control_of(control_verb::resume, n);
            (void)apply(r, c, now, did, error);
            scripts.send(*call_of("test", c), now);
            ASSERT_FALSE(view_from(scripts.server().receive()).error);
        }
        probe_request p;
        p.breaker = breaker;
        p.token = n;
        p.step = probe_step::give_back;
        (void)apply(r, identity(1), p, now, did);
        scripts.send(*call_of("test", identity(1), p), now);
        ASSERT_FALSE(probe_reply_from(scripts.server().receive()).error);
        now += n < 300 ? 1'000us : n < 320 ? 600'000us : 400s;
        ASSERT_EQ(scripts.record(keys, now), test::text_of(r)) << n;
    }
}

}  // namespace
}  // namespace trinco::detail::test
