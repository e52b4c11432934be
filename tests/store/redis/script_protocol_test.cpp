// Requests as arguments of the scripts and replies as values, and what the texts of the scripts
// hold in common with the C++ record.
#include "store/redis/script_protocol.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/breaker/policy.hpp"
#include "store/redis/redis_scripts.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using words = std::vector<std::string>;

constexpr redis_script all_scripts[] = {redis_script::exchange, redis_script::look,
                                        redis_script::probe, redis_script::control,
                                        redis_script::inspect};

const breaker_identity me{"i1", "v1"};

resp_reply whole(std::int64_t n) {
    return resp_reply::of(n);
}
resp_reply text(std::string s) {
    return resp_reply::of(std::move(s));
}
resp_reply list(std::vector<resp_reply> elements) {
    return resp_reply::of(std::move(elements));
}

resp_reply some_view() {
    return list({whole(9'007'199'254'740'991), whole(3), whole(1), whole(250), whole(2), whole(3),
                 whole(5'000), whole(8), text("drill")});
}
resp_reply some_counts(std::int64_t first) {
    return list({whole(first), whole(first + 1), whole(first + 2), whole(first + 3),
                 whole(first + 4), whole(first + 5)});
}

news some_news() {
    news n;
    n.breaker = "payments";
    n.mine.era = 7;
    n.mine.rev = 6;
    n.mine.state = breaker_state::open;
    n.mine.remaining = 5ms;
    n.mine.backoff_level = 4;
    n.mine.over = override_kind::observing;
    n.mine.over_remaining = 3ms;
    n.mine.options_stamp = 2;
    n.mine.reason = "why not";
    n.seq = 11;
    n.own_stamp = 12;
    n.stale.rejected = 13;
    n.slices.push_back({{1, 2, 3, 4, 5, 6}, 100ms});
    return n;
}

// ---- requests -----------------------------------------------------------------------------------

TEST(ScriptProtocol, KeysOfABreakerShareASlot) {
    const auto keys = breaker_keys("prod", "payments");
    EXPECT_EQ(keys[0], "trinco:1:prod:{payments}");
    EXPECT_EQ(keys[1], "trinco:1:prod:{payments}:voters");
    EXPECT_EQ(keys[2], "trinco:1:prod:{payments}:instances");
    EXPECT_EQ(breaker_index_key("prod"), "trinco:1:prod:index");
    EXPECT_EQ(breaker_channel("prod"), "trinco:1:prod:changes");
    EXPECT_EQ(breaker_channel("prod", 3), "trinco:1:prod:changes@3");
}

TEST(ScriptProtocol, AnExchangeIsWrittenInTheOrderOfItsManual) {
    const auto call = call_of("prod", me, some_news());
    ASSERT_TRUE(call);
    EXPECT_EQ(call->script, redis_script::exchange);
    EXPECT_EQ(call->arguments, (words{"i1",       "v1", "trinco:1:prod:changes",
                                      "payments", "7",  "6",
                                      "1",        "5",  "4",
                                      "3",        "3",  "2",
                                      "why not",  "11", "12",
                                      "",         "0",  "0",
                                      "0",        "0",  "0",
                                      "13",       "1",  "100",
                                      "1",        "2",  "3",
                                      "4",        "5",  "6"}));
}

TEST(ScriptProtocol, OptionsTravelAsToTextWritesThem) {
    news n = some_news();
    n.own_stamp = 0;
    n.options = "window_ms=5000 failure_rate=0.50";
    policy p;
    p.window = 5s;
    const auto call = call_of("prod", me, n);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->arguments[15], to_text(p));
}

TEST(ScriptProtocol, WhatEveryRecordRefusesIsNotSent) {
    news n = some_news();
    n.mine.era = max_era;
    EXPECT_FALSE(call_of("prod", me, n));
    n = some_news();
    n.slices.resize(max_slices + 1);
    EXPECT_FALSE(call_of("prod", me, n));
    n = some_news();
    n.options = "window_ms=1";
    EXPECT_FALSE(call_of("prod", me, n));
    n = some_news();
    n.slices[0].n.failure = max_count;
    EXPECT_FALSE(call_of("prod", me, n));
    probe_request p;
    EXPECT_FALSE(call_of("prod", me, p));
    control_request c;
    c.breaker = "payments";
    EXPECT_FALSE(call_of("prod", c));
    c.id = 1;
    EXPECT_TRUE(call_of("prod", c));
    c.reason = "two\nlines";
    EXPECT_FALSE(call_of("prod", c));
}

TEST(ScriptProtocol, ALookNamesOneKeyAndWhatTheSenderKnows) {
    look_request q;
    q.breaker = "payments";
    q.mine = some_news().mine;
    const script_call call = call_of("prod", q);
    EXPECT_EQ(call.script, redis_script::look);
    EXPECT_EQ(call.keys, (words{"trinco:1:prod:{payments}"}));
    EXPECT_EQ(call.arguments, (words{"7", "6", "2"}));
    q.mine.rev = max_era;
    EXPECT_EQ(call_of("prod", q).arguments, (words{"0", "0", "0"})) << "no record can have made it";
}

TEST(ScriptProtocol, AProbeKeepsItsTokenAsText) {
    probe_request p;
    p.breaker = "payments";
    p.mine = some_news().mine;
    p.step = probe_step::give_back;
    p.token = 18'446'744'073'709'551'615U;
    p.lease = 77ms;
    const auto call = call_of("prod", me, p);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->arguments,
              (words{"i1", "v1", "trinco:1:prod:changes", "payments", "7", "6", "1", "5", "4", "3",
                     "3", "2", "why not", "give_back", "18446744073709551615", "77"}));
}

TEST(ScriptProtocol, AnImpossibleViewOfAProbeKnowsNothing) {
    probe_request p;
    p.breaker = "payments";
    p.token = 1;
    p.mine.era = 5;
    p.mine.remaining = -1ms;
    const auto call = call_of("prod", me, p);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->arguments[4], "0");
    EXPECT_EQ(call->arguments[7], "0");
}

TEST(ScriptProtocol, AControlSaysWhoAndWhy) {
    control_request c;
    c.id = 18'446'744'073'709'551'615U;
    c.breaker = "payments";
    c.who = "ann";
    c.reason = "after the fix";
    c.verb = control_verb::disable;
    c.expires = 60s;
    const auto call = call_of("prod", c);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->arguments, (words{"trinco:1:prod:changes", "payments", "18446744073709551615",
                                      "disable", "after the fix (by ann)", "60000", ""}));
    c.who.clear();
    c.reason.clear();
    const std::pair<control_verb, const char*> plain[] = {
        {control_verb::trip, "operator trip"},     {control_verb::reset, "reset"},
        {control_verb::force_open, "forced open"}, {control_verb::disable, "disabled"},
        {control_verb::observe, "observing"},      {control_verb::forget, "forget"}};
    for (const auto& [verb, words_for_it] : plain) {
        c.verb = verb;
        EXPECT_EQ(call_of("prod", c)->arguments[4], words_for_it);
    }
}

TEST(ScriptProtocol, TheIndexHasItsOwnKey) {
    const script_call call = index_call("prod", "payments", 4s);
    EXPECT_EQ(call.script, redis_script::index);
    EXPECT_EQ(call.keys, (words{"trinco:1:prod:index"}));
    EXPECT_EQ(call.arguments, (words{"payments", "4000"}));
}

TEST(ScriptProtocol, EachPairOfASetIsCheckedAlone) {
    control_request c;
    c.id = 1;
    c.breaker = "payments";
    c.verb = control_verb::set;
    const auto sent = [&c](const char* options) {
        c.options = options;
        const auto call = call_of("prod", c);
        return call ? call->arguments.back() : "nothing";
    };
    EXPECT_EQ(sent("quorum=1"), "quorum=1");
    EXPECT_EQ(sent("  failure_rate=0.750   jitter=1e-3 "), "failure_rate=0.75 jitter=0.001");
    // They may fit what governs, which only the database knows.
    EXPECT_EQ(sent("open_max_ms=10"), "open_max_ms=10");
    EXPECT_EQ(sent("open_for_ms=86400000"), "open_for_ms=86400000");
    EXPECT_EQ(sent("window_slices=60"), "window_slices=60");
    EXPECT_EQ(sent("window_ms=100"), "window_ms=100");
    EXPECT_EQ(sent("key_ttl_ms=1000"), "key_ttl_ms=1000");
    EXPECT_EQ(sent("live_for_ms=3600000"), "live_for_ms=3600000");
    EXPECT_EQ(sent("sync_interval_ms=10000"), "sync_interval_ms=10000");
    EXPECT_EQ(sent("slow_calls=1"), "slow_calls=1");
    EXPECT_EQ(sent(""), "nothing");
    EXPECT_EQ(sent("quorum"), "nothing");
    EXPECT_EQ(sent("quorum=0"), "nothing");
    EXPECT_EQ(sent("quorum=101"), "nothing");
    EXPECT_EQ(sent("quorum=1 quorum=1"), "nothing");
    EXPECT_EQ(sent("quorums=1"), "nothing");
    EXPECT_EQ(sent("jitter=nan"), "nothing");
}

// ---- replies ------------------------------------------------------------------------------------

std::vector<resp_reply> a_verdict() {
    return {text("ok"),      whole(1),    whole(8),   whole(1),     whole(4),
            whole(3),        whole(2),    whole(100), whole(1),     text("quorum=1"),
            some_counts(10), some_view(), whole(0),   whole(4'000), whole(42)};
}

TEST(ScriptProtocol, ReadsAVerdict) {
    const auto a = verdict_from(list(a_verdict()));
    ASSERT_FALSE(a.error);
    EXPECT_FALSE(a.published);
    EXPECT_EQ(a.lives, 4s);
    EXPECT_EQ(a.cost, 42us);
    const verdict& v = a.value;
    EXPECT_FALSE(v.error);
    EXPECT_EQ(v.cost, 42us);
    EXPECT_TRUE(v.counted);
    EXPECT_EQ(v.own_stamp, 8U);
    EXPECT_TRUE(v.set_aside);
    EXPECT_EQ(v.live, 4U);
    EXPECT_EQ(v.voters_failing, 3U);
    EXPECT_EQ(v.probes_left, 2U);
    EXPECT_EQ(v.next_exchange, 100ms);
    EXPECT_TRUE(v.send_options);
    EXPECT_EQ(v.options, "quorum=1");
    EXPECT_EQ(v.window, (counts{10, 11, 12, 13, 14, 15}));
    EXPECT_EQ(v.fleet.era, 9'007'199'254'740'991U);
    EXPECT_EQ(v.fleet.rev, 3U);
    EXPECT_EQ(v.fleet.state, breaker_state::open);
    EXPECT_EQ(v.fleet.remaining, 250ms);
    EXPECT_EQ(v.fleet.backoff_level, 2U);
    EXPECT_EQ(v.fleet.over, override_kind::observing);
    EXPECT_EQ(v.fleet.over_remaining, 5s);
    EXPECT_EQ(v.fleet.options_stamp, 8U);
    EXPECT_EQ(v.fleet.reason, "drill");
}

TEST(ScriptProtocol, ReadsAProbesReplyAndAView) {
    const auto p = probe_reply_from(list({text("ok"), whole(1), whole(20), whole(0), whole(3),
                                          some_view(), whole(1), whole(0), whole(9)}));
    ASSERT_FALSE(p.error);
    EXPECT_TRUE(p.value.granted);
    EXPECT_EQ(p.value.retry_after, 20ms);
    EXPECT_FALSE(p.value.set_aside);
    EXPECT_EQ(p.value.live, 3U);
    EXPECT_EQ(p.value.fleet.rev, 3U);
    EXPECT_TRUE(p.published);
    const auto v = view_from(list({text("ok"), some_view(), whole(1), whole(0), whole(9)}));
    ASSERT_FALSE(v.error);
    EXPECT_EQ(v.value.reason, "drill");
    EXPECT_EQ(view_from(list({text("invalid")})).error, errc::invalid);
}

TEST(ScriptProtocol, ReadsAGlance) {
    const auto a = glance_from(list({text("ok"), whole(1), some_view(), whole(9)}));
    ASSERT_FALSE(a.error);
    EXPECT_TRUE(a.value.exchange_first);
    EXPECT_EQ(a.value.fleet.rev, 3U);
    EXPECT_EQ(a.value.cost, 9us);
    EXPECT_EQ(a.cost, 9us);
    EXPECT_EQ(glance_from(list({text("ok"), whole(2), some_view(), whole(9)})).error,
              errc::invalid);
    EXPECT_EQ(glance_from(list({text("newer")})).error, errc::not_supported);
}

TEST(ScriptProtocol, ReadsAReport) {
    const auto share = list({text("i1"), text("v1"), some_counts(1), whole(30), whole(8)});
    const auto a = report_from(list({text("ok"), some_view(), some_counts(10), whole(4), whole(3),
                                     whole(2), whole(100), text("quorum=1"), whole(1), whole(1500),
                                     some_counts(20), list({share, share}), whole(7)}),
                               "payments");
    ASSERT_FALSE(a.error);
    ASSERT_TRUE(a.value);
    EXPECT_EQ(a.value->breaker, "payments");
    EXPECT_EQ(a.value->totals.success, 20U);
    EXPECT_TRUE(a.value->options_set);
    EXPECT_EQ(a.value->set_remaining, 1500ms);
    ASSERT_EQ(a.value->shares.size(), 2U);
    EXPECT_EQ(a.value->shares[1].instance, "i1");
    EXPECT_EQ(a.value->shares[1].heard, 30ms);
    const auto absent = report_from(list({text("absent")}), "payments");
    EXPECT_FALSE(absent.error);
    EXPECT_FALSE(absent.value);
}

TEST(ScriptProtocol, ANewerLayoutIsNotSupported) {
    const resp_reply newer = list({text("newer")});
    EXPECT_EQ(verdict_from(newer).error, errc::not_supported);
    EXPECT_EQ(verdict_from(newer).value.error, errc::not_supported);
    EXPECT_EQ(probe_reply_from(newer).error, errc::not_supported);
    EXPECT_EQ(view_from(newer).error, errc::not_supported);
    EXPECT_EQ(report_from(newer, "payments").error, errc::not_supported);
}

// Whatever is cut off, added, or of another type or range spoils the whole reply.
TEST(ScriptProtocol, NoPartOfABadReplyIsUsed) {
    const auto is_bad = [](const std::vector<resp_reply>& elements) {
        const auto a = verdict_from(list(elements));
        return a.error == errc::invalid && a.value.error == errc::invalid && a.value.live == 0 &&
               a.value.fleet.era == 0;
    };
    for (std::size_t k = 0; k < a_verdict().size(); ++k) {
        auto cut = a_verdict();
        cut.resize(k);
        EXPECT_TRUE(is_bad(cut)) << k;
        auto other = a_verdict();
        other[k] = resp_reply{};
        EXPECT_TRUE(is_bad(other)) << k;
        other[k] = whole(-1);
        EXPECT_TRUE(is_bad(other)) << k;
    }
    auto longer = a_verdict();
    longer.push_back(whole(1));
    EXPECT_TRUE(is_bad(longer));
    auto state = a_verdict();
    state[11].elements[2] = whole(3);
    EXPECT_TRUE(is_bad(state));
    auto flag = a_verdict();
    flag[1] = whole(2);
    EXPECT_TRUE(is_bad(flag));
    EXPECT_TRUE(verdict_from(whole(1)).error);
    EXPECT_TRUE(verdict_from(resp_reply::error_of("OOM")).error);
}

TEST(ScriptProtocol, an_opening_is_seen_in_its_message_when_nothing_else_is_said) {
    const auto o = opening_from("changed payments 9007199254740991 3 1 250 2 0 0 8 drill (by i 0)");
    ASSERT_TRUE(o);
    EXPECT_EQ(o->breaker, "payments");
    EXPECT_EQ(o->era, 9007199254740991U);
    EXPECT_EQ(o->remaining, std::chrono::milliseconds(250));
    EXPECT_EQ(o->reason, "drill (by i 0)");
    for (const char* other :
         {"changed p 5 3 0 250 2 0 0 8 closed", "changed p 5 3 2 0 2 0 0 8 half open",
          "changed p 5 3 1 0 2 0 0 8 over", "changed p 5 3 1 250 2 3 100 8 observed",
          "changed p 5 3 1 250 2 x 0 8 broken", "flush p 5 3 1 250 2 0 0 8 ", "changed", ""}) {
        EXPECT_FALSE(opening_from(other)) << other;
    }
}

TEST(ScriptProtocol, ReadsAMessage) {
    const auto n = notice_from("changed payments 9007199254740991 3 1 250 2 0 0 8 failure_rate");
    ASSERT_TRUE(n);
    EXPECT_EQ(n->kind, notice::kind_t::changed);
    EXPECT_EQ(n->breaker, "payments");
    EXPECT_EQ(n->fleet.era, 9'007'199'254'740'991U);
    EXPECT_EQ(n->fleet.state, breaker_state::open);
    EXPECT_EQ(n->fleet.reason, "failure_rate");
    const auto f = notice_from("flush payments 0 0 0 0 0 0 0 0 ");
    ASSERT_TRUE(f);
    EXPECT_EQ(f->kind, notice::kind_t::flush);
    EXPECT_EQ(f->fleet.reason, "");
    EXPECT_EQ(notice_from("changed p 1 2 0 0 0 0 0 0 a reason of words")->fleet.reason,
              "a reason of words");
    for (const char* bad : {"", "changed", "gap p 0 0 0 0 0 0 0 0 ", "changed  0 0 0 0 0 0 0 0 x",
                            "changed p 0 0 9 0 0 0 0 0 x", "changed p 0 0 0 0 0 0 0",
                            "changed p 0 0 0 -1 0 0 0 0 x", "changed p 0 0 0 1x 0 0 0 0 x"}) {
        EXPECT_FALSE(notice_from(bad)) << bad;
    }
}

// ---- the texts ----------------------------------------------------------------------------------

std::size_t times(std::string_view word, std::string_view in) {
    std::size_t n = 0;
    for (auto at = in.find(word); at != std::string_view::npos; at = in.find(word, at + 1)) ++n;
    return n;
}

TEST(RedisScripts, KnowTheTimeByTheirBeginningOnly) {
    const std::string_view source = redis_time_source();
    EXPECT_TRUE(source.ends_with("\nend\n"));
    EXPECT_EQ(times("function store_time", source), 1U);
    for (const redis_script s : all_scripts) {
        const std::string_view all = text_of(s);
        ASSERT_TRUE(all.starts_with(source));
        const std::string_view rest = all.substr(source.size());
        EXPECT_EQ(times("'TIME'", rest), 0U);
        EXPECT_EQ(times("os.", rest), 0U);
        EXPECT_EQ(times("function store_time", rest), 0U);
        // Once for the decisions, once for the cost.
        EXPECT_EQ(times("= store_time()", rest), 1U);
        EXPECT_EQ(times("store_time() - now", rest), 1U);
    }
}

TEST(RedisScripts, KnowTheOptionsOfAPolicyInTheirOrder) {
    const std::string defaults = to_text(policy{});
    std::string holes;  // the same with a hole for each value
    for (std::size_t at = 0; at < defaults.size();) {
        const auto value = defaults.find('=', at) + 1;
        holes += defaults.substr(at, value - at) + "(%S+)";
        at = std::min(defaults.find(' ', value), defaults.size());
    }
    for (const redis_script s : all_scripts) {
        std::string all(text_of(s));
        if (all.find("default_options") == std::string::npos) continue;  // it parses none
        const std::string_view joint = "'\n  .. '";
        for (auto at = all.find(joint); at != std::string::npos; at = all.find(joint)) {
            all.erase(at, joint.size());
        }
        EXPECT_NE(all.find("'" + defaults + "'"), std::string::npos);
        EXPECT_NE(all.find("'" + holes + "'"), std::string::npos);
    }
}

}  // namespace
}  // namespace trinco::detail::test
