// The store on a way that the test plays: what goes out, and what is made of the answers.
#include "store/redis/redis_breakers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/breaker/record.hpp"
#include "redis_breakers_fixture.hpp"
#include "script_answers.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

// ---- exchange -----------------------------------------------------------------------------------

TEST_F(RedisBreakers, an_exchange_is_a_pipeline_whose_verdicts_keep_the_order) {
    const auto g = exchange({news_of("a"), news_of("b"), news_of("c")});
    ASSERT_EQ(route_->open.size(), 3U);
    EXPECT_EQ(route_->open[1]->key, "trinco:1:shop:{b}");
    for (std::uint64_t era = 1; era <= 3; ++era) {
        EXPECT_EQ(g->times, 0);
        route_->answer(answer_of(view_of(era)));
    }
    ASSERT_EQ(g->times, 1);
    ASSERT_EQ(g->value.size(), 3U);
    for (std::uint64_t era = 1; era <= 3; ++era) EXPECT_EQ(g->value[era - 1].fleet.era, era);
}

TEST_F(RedisBreakers, an_element_fails_alone) {
    const auto g =
        exchange({news_of("a"), news_of("no name"), news_of("c"), news_of("d"), news_of("e")});
    ASSERT_EQ(route_->open.size(), 4U);
    route_->answer_error("WRONGTYPE Operation against a key holding the wrong kind of value");
    route_->answer(resp_reply::of({resp_reply::of(std::string("newer"))}));
    route_->answer_error("OOM command not allowed");
    route_->answer(answer_of(view_of(7)));
    ASSERT_EQ(g->times, 1);
    EXPECT_FALSE(g->error);
    EXPECT_EQ(g->value.at(0).error, errc::conflict);
    EXPECT_EQ(g->value.at(1).error, errc::invalid);
    EXPECT_EQ(g->value.at(2).error, errc::not_supported);
    EXPECT_EQ(g->value.at(3).error, errc::busy);
    EXPECT_FALSE(g->value.at(4).error);
    EXPECT_EQ(g->value.at(4).fleet.era, 7U);
}

TEST_F(RedisBreakers, what_hinders_the_whole_batch_is_the_calls_error) {
    const auto full = exchange({news_of("a"), news_of("b")});
    route_->answer_error("OOM command not allowed");
    route_->answer_error("OOM command not allowed");
    EXPECT_EQ(full->error, errc::busy);
    EXPECT_TRUE(full->value.empty());

    // One of them may have been counted.
    const auto lost = exchange({news_of("no name"), news_of("b"), news_of("c")});
    pass(1s);
    route_->fail(errc::unavailable);
    route_->fail(errc::unknown_outcome);
    EXPECT_EQ(lost->error, errc::unknown_outcome);
}

TEST_F(RedisBreakers, each_look_asks_what_it_is_asked_whatever_was_asked_before) {
    auto none = view_of(9);  // no record can have made it
    none.remaining = -1ms;
    ASSERT_FALSE(is_acceptable(none));
    auto stamped = view_of(1);
    stamped.options_stamp = 5;
    const std::vector<std::pair<look_request, std::vector<std::string>>> looks{
        {{"a", view_of(1)}, {"1", "0", "0"}},    {{"a", view_of(1)}, {"1", "0", "0"}},
        {{"b", view_of(1)}, {"1", "0", "0"}},    {{"b", view_of(2)}, {"2", "0", "0"}},
        {{"b", view_of(2, 3)}, {"2", "3", "0"}}, {{"b", stamped}, {"1", "0", "5"}},
        {{"b", view_of(9)}, {"9", "0", "0"}},    {{"b", none}, {"0", "0", "0"}}};
    for (const auto& [asked, words] : looks) {
        got<glance> g;
        g.interest = store_->look(asked, node_.now() + 1s, g.keep());
        ASSERT_EQ(route_->open.size(), 1U);
        const auto sent = route_->first();
        EXPECT_EQ(sent.at(0), "EVALSHA");
        EXPECT_TRUE(sent.at(3).find("{" + asked.breaker + "}") != std::string::npos) << sent.at(3);
        EXPECT_EQ(std::vector<std::string>(sent.begin() + 4, sent.end()), words);
        route_->answer_error("NOSCRIPT");
        ASSERT_EQ(route_->open.size(), 1U);
        EXPECT_EQ(route_->first().at(0), "EVAL");
        EXPECT_EQ(std::vector<std::string>(sent.begin() + 3, sent.end()),
                  std::vector<std::string>(route_->first().begin() + 3, route_->first().end()));
        route_->fail(errc::unavailable);
        pass(100ms);  // the text is told to nobody else sooner
    }
}

TEST_F(RedisBreakers, what_cannot_be_done_in_time_is_not_sent) {
    const auto late = exchange({news_of("a")}, 0ms);
    EXPECT_EQ(late->times, 0);
    pass(1ms);
    EXPECT_EQ(late->error, errc::unavailable);
    std::vector<std::shared_ptr<got<page>>> many;
    for (int i = 0; i < 1'024; ++i) many.push_back(inspect("", "", 1));
    const auto over = exchange({news_of("a")});
    const auto over_page = inspect("", "", 1);
    pass(1ms);
    EXPECT_EQ(over->error, errc::busy);
    EXPECT_EQ(over_page->error, errc::busy);
    EXPECT_EQ(route_->requests, 1'024U);
}

TEST_F(RedisBreakers, an_answer_that_is_none_is_invalid) {
    const auto g = exchange({news_of("a")});
    route_->answer(resp_reply::of(std::string("hello")));
    EXPECT_EQ(g->value.at(0).error, errc::invalid);
}

// ---- the index ----------------------------------------------------------------------------------

TEST_F(RedisBreakers, a_breaker_is_listed_after_its_first_exchange_and_again_from_time_to_time) {
    exchange_well("payments");
    ASSERT_EQ(route_->open.size(), 1U);
    EXPECT_EQ(route_->first().at(3), "trinco:1:shop:index");
    EXPECT_EQ(route_->first().at(4), "payments");
    // An eighth more than the hour that the record lives.
    EXPECT_EQ(route_->first().at(5), std::to_string(3'600'000 + 450'000));
    route_->answer(resp_reply::of(1));
    exchange_well("payments");
    EXPECT_TRUE(route_->open.empty());
    pass(61s);
    exchange_well("payments");
    EXPECT_EQ(route_->open.size(), 1U);
    route_->answer(resp_reply::of(1));
    route_->change(event_kind::up);  // whatever there was may be gone
    exchange_well("payments");
    EXPECT_EQ(route_->open.size(), 1U);
}

TEST_F(RedisBreakers, a_longer_life_and_a_failure_list_it_anew) {
    exchange_well("payments");
    route_->fail(errc::unavailable);
    pass(5s);
    exchange_well("payments");
    ASSERT_EQ(route_->open.size(), 1U);
    route_->answer(resp_reply::of(1));
    const auto g = exchange({news_of("payments")});
    route_->answer(answer_of(view_of(1), {.lives = 24h}));
    ASSERT_EQ(route_->open.size(), 1U);
    EXPECT_FALSE(g->error);
    route_->answer(resp_reply::of(1));
    // It has lost its options, and who knows what else.
    const auto lost = exchange({news_of("payments")});
    route_->answer(answer_of(view_of(1), {.send_options = true}));
    EXPECT_EQ(route_->open.size(), 1U);
    EXPECT_FALSE(lost->error);
}

TEST_F(RedisBreakers, without_the_index_calls_go_on_and_names_wait) {
    exchange_well("a");
    route_->answer_error("NOPERM no right to the index");
    EXPECT_EQ(store_->trouble(), "");
    for (int i = 0; i < 49; ++i) {
        exchange_well("a");
        EXPECT_TRUE(route_->open.empty());
        pass(100ms);
    }
    pass(100ms);
    exchange_well("a");
    EXPECT_EQ(route_->open.size(), 1U);
}

// As when the node of a cluster that holds the index is down.
TEST_F(RedisBreakers, an_index_that_does_not_answer_holds_neither_calls_nor_stop) {
    std::vector<std::shared_ptr<got<std::vector<verdict>>>> exchanges;
    for (int i = 0; i < 70; ++i) exchanges.push_back(exchange({news_of("b" + std::to_string(i))}));
    for (int i = 0; i < 70; ++i) route_->answer(answer_of(view_of(1)));
    EXPECT_EQ(route_->open.size(), 64U);
    std::vector<std::shared_ptr<got<page>>> pages;
    for (int i = 0; i < 1'024; ++i) pages.push_back(inspect("", "", 1));
    pass(1ms);
    EXPECT_EQ(route_->open.size(), 64U + 1'024U);  // none of them is busy
    pages.clear();
    int stopped = 0;
    const op stop = store_->stop(node_.now() + 10s, [&](std::error_code, int) { ++stopped; });
    pass(240ms);
    EXPECT_EQ(stopped, 0);
    pass(20ms);
    EXPECT_EQ(stopped, 1);
}

// ---- inspect ------------------------------------------------------------------------------------

TEST_F(RedisBreakers, a_page_asks_for_one_name_more_than_it_has_rows) {
    const auto g = inspect("p*", "pa", 2);
    const std::vector<std::string> expected{
        "ZRANGEBYLEX", "trinco:1:shop:index", "(pa", "(p\xff", "LIMIT", "0", "3"};
    EXPECT_EQ(route_->first(), expected);
    route_->answer(names_of({"pb", "pc", "pd"}));
    ASSERT_EQ(route_->open.size(), 2U);
    route_->answer(report_answer(view_of(4)));
    EXPECT_EQ(g->times, 0);
    route_->answer(report_answer(view_of(5)));
    ASSERT_EQ(g->times, 1);
    ASSERT_EQ(g->value.rows.size(), 2U);
    EXPECT_EQ(g->value.rows[1].breaker, "pc");
    EXPECT_EQ(g->value.rows[1].now.fleet.era, 5U);
    EXPECT_EQ(g->value.next, "pc");
}

TEST_F(RedisBreakers, names_whose_record_is_gone_are_taken_out_and_the_page_is_filled) {
    const auto g = inspect("", "", 2);
    EXPECT_EQ(route_->first().at(2), "[");
    EXPECT_EQ(route_->first().at(3), "+");
    route_->answer(names_of({"a", "b", "c"}));
    route_->answer(resp_reply::of({resp_reply::of(std::string("absent"))}));
    route_->answer(report_answer(view_of(1)));
    ASSERT_EQ(route_->open.size(), 2U);
    const std::vector<std::string> removal{"ZREM", "trinco:1:shop:index", "a"};
    EXPECT_EQ(route_->first(), removal);
    route_->answer(resp_reply::of(1));
    EXPECT_EQ(route_->first().at(2), "(b");
    EXPECT_EQ(route_->first().at(6), "2");
    route_->answer(names_of({"c"}));
    route_->answer(report_answer(view_of(2)));
    ASSERT_EQ(g->times, 1);
    ASSERT_EQ(g->value.rows.size(), 2U);
    EXPECT_EQ(g->value.rows[1].breaker, "c");
    EXPECT_TRUE(g->value.next.empty());
}

TEST_F(RedisBreakers, a_large_page_goes_in_pipelines_of_64) {
    const auto g = inspect("", "", 100);
    EXPECT_EQ(route_->first().at(6), "65");
    std::vector<std::string> names;
    for (int i = 0; i < 65; ++i) names.push_back("b" + std::to_string(1'000 + i));
    route_->answer(names_of(names));
    ASSERT_EQ(route_->open.size(), 64U);
    for (int i = 0; i < 64; ++i) route_->answer(report_answer(view_of(1)));
    EXPECT_EQ(route_->first().at(6), "37");
    route_->answer(names_of({"b1064"}));
    route_->answer(report_answer(view_of(1)));
    EXPECT_EQ(g->value.rows.size(), 65U);
    EXPECT_TRUE(g->value.next.empty());
}

TEST_F(RedisBreakers, a_foreign_key_is_a_row_with_an_error_a_lost_server_is_the_calls) {
    const auto row = inspect("", "", 2);
    route_->answer(names_of({"a", "b"}));
    route_->answer_error("WRONGTYPE Operation against a key holding the wrong kind of value");
    route_->answer(report_answer(view_of(1)));
    ASSERT_EQ(row->value.rows.size(), 2U);
    EXPECT_EQ(row->value.rows[0].breaker, "a");
    EXPECT_EQ(row->value.rows[0].now.error, errc::conflict);

    const auto lost = inspect("", "", 2);
    route_->answer(names_of({"a", "b"}));
    route_->answer_error("NOPERM this user has no permissions");
    EXPECT_EQ(lost->times, 1);
    EXPECT_EQ(lost->error, errc::denied);
}

// ---- notices ------------------------------------------------------------------------------------

TEST_F(RedisBreakers, an_opening_is_foretold_to_whoever_asked) {
    const auto heard = store_->subscribe([](const notice&) {});
    const std::string message = "changed a 5 0 1 250 0 0 0 8 drill";
    EXPECT_FALSE(route_->waits(message));
    std::vector<std::string> foretold;
    store_->foretell([&](const opening& o) {
        foretold.emplace_back(o.breaker);
        return o.era == 5;
    });
    EXPECT_TRUE(route_->waits(message));
    EXPECT_FALSE(route_->waits("changed a 6 0 1 250 0 0 0 8 drill"));
    EXPECT_EQ(foretold, (std::vector<std::string>{"a", "a"}));
}

TEST_F(RedisBreakers, changes_are_told_in_their_order_and_once) {
    subscribe();
    connect();
    EXPECT_EQ(route_->channel, "trinco:1:shop:changes");
    EXPECT_EQ(told(), "");  // begins with no notice
    route_->say(message_of("changed", "a", view_of(5, 2)));
    route_->say(message_of("changed", "a", view_of(5, 2)));  // again
    route_->say(message_of("changed", "a", view_of(5, 1)));  // older
    route_->say(message_of("changed", "b", view_of(3)));
    route_->say(message_of("flush", "a", view_of(5, 2)));
    route_->say("what is this");
    route_->say(message_of("changed", "a", view_of(6)));
    EXPECT_EQ(told(), "changed:a@5 changed:b@3 flush:a@5 changed:a@6");
}

TEST_F(RedisBreakers, an_interruption_is_one_gap) {
    subscribe();
    connect();
    for (int i = 0; i < 3; ++i) route_->change(event_kind::deaf, {errc::unavailable, "gone"});
    pass(500ms);
    EXPECT_EQ(told(), "");
    route_->change(event_kind::hearing);
    EXPECT_EQ(told(), "gap");
    pass(10s);
    EXPECT_EQ(told(), "gap");
}

TEST_F(RedisBreakers, what_changed_before_anything_was_heard_is_a_gap_when_something_was_known) {
    subscribe();
    route_->change(event_kind::up);
    exchange_well("a");
    route_->change(event_kind::hearing);
    EXPECT_EQ(told(), "gap");
}

// Who only reads, as `breakers watch` does, misses as much: also after another server has come.
TEST_F(RedisBreakers, what_changed_after_a_list_was_read_and_before_the_channel_is_a_gap) {
    subscribe();
    connect();
    route_->change(event_kind::deaf, {errc::unavailable, "gone"});
    route_->change(event_kind::down, {errc::unavailable, "gone"});
    route_->change(event_kind::up);
    route_->change(event_kind::other_server);
    const auto g = inspect("", "", 1);
    route_->answer(names_of({}));
    EXPECT_EQ(g->times, 1);
    route_->change(event_kind::hearing);
    EXPECT_EQ(told(), "new_server gap");
}

// Its script may have run before the channel was listened to, and the change after it.
TEST_F(RedisBreakers, what_is_under_way_when_the_channel_is_heard_first_is_a_gap) {
    subscribe();
    route_->change(event_kind::up);
    const auto g = exchange({news_of("a")});
    route_->change(event_kind::hearing);
    EXPECT_EQ(told(), "gap");
    route_->answer(answer_of(view_of(1)));
    EXPECT_EQ(g->times, 1);
    pass(10s);
    EXPECT_EQ(told(), "gap");
}

TEST_F(RedisBreakers, another_server_is_told_before_it_answers_and_no_gap_with_it) {
    subscribe();
    connect();
    route_->say(message_of("changed", "a", view_of(5)));
    route_->change(event_kind::deaf, {errc::unavailable, "gone"});
    route_->change(event_kind::down, {errc::unavailable, "gone"});
    route_->change(event_kind::hearing);  // whether it is another one is not known yet
    EXPECT_EQ(told(), "changed:a@5");
    route_->change(event_kind::up);
    route_->change(event_kind::other_server);
    pass(1s);
    EXPECT_EQ(told(), "changed:a@5 new_server");
    route_->say(message_of("changed", "a", view_of(4)));  // its own history
    EXPECT_EQ(told(), "changed:a@5 new_server changed:a@4");
}

TEST_F(RedisBreakers, without_the_right_to_the_channel_it_says_to_ask_every_100_ms) {
    subscribe();
    route_->change(event_kind::up);
    route_->change(event_kind::deaf, {errc::denied, "the server refused SUBSCRIBE: NOPERM"});
    pass(350ms);
    EXPECT_EQ(told(), "gap gap gap");
    EXPECT_NE(store_->trouble().find("NOPERM"), std::string::npos) << store_->trouble();
    route_->change(event_kind::down, {errc::unavailable, "the connection broke"});
    pass(1s);
    EXPECT_EQ(told(), "gap gap gap");  // there is nobody to ask
    EXPECT_EQ(store_->trouble(), "the connection broke");
    connect();
    heard_.clear();
    pass(1s);
    EXPECT_EQ(told(), "");
    EXPECT_EQ(store_->trouble(), "");
}

TEST_F(RedisBreakers, a_channel_that_may_not_be_written_to_is_no_channel) {
    subscribe();
    connect();
    const auto g = exchange({news_of("a")});
    route_->answer(answer_of(view_of(2), {.published = false}));
    pass(350ms);
    EXPECT_FALSE(g->error);
    EXPECT_EQ(told(), "gap gap gap");
    EXPECT_NE(store_->trouble().find("written"), std::string::npos) << store_->trouble();
}

TEST_F(RedisBreakers, the_channel_is_listened_to_from_the_first_subscription_on) {
    EXPECT_EQ(route_->listens, 0);
    subscribe();
    connect();
    subscription_.cancel();
    route_->say(message_of("changed", "a", view_of(5)));
    EXPECT_EQ(told(), "");
    subscribe();
    EXPECT_EQ(route_->listens, 1);
    route_->say(message_of("changed", "a", view_of(6)));
    EXPECT_EQ(told(), "changed:a@6");
}

TEST_F(RedisBreakers, it_may_end_in_a_notice) {
    subscription_ = store_->subscribe([this](const notice&) { store_.reset(); });
    connect();
    route_->change(event_kind::other_server);
    EXPECT_FALSE(store_.has_value());
    pass(1s);
}

// ---- the rest -----------------------------------------------------------------------------------

TEST_F(RedisBreakers, stop_waits_for_what_is_under_way_but_not_past_its_deadline) {
    exchange_well("a");  // the name goes into the index beside it
    ASSERT_EQ(route_->open.size(), 1U);
    int stopped = 0;
    op first = store_->stop(node_.now() + 1s, [&](std::error_code, int) { ++stopped; });
    pass(200ms);
    EXPECT_EQ(stopped, 0);
    route_->answer(resp_reply::of(1));
    pass(1ms);
    EXPECT_EQ(stopped, 1);

    const auto hangs = exchange({news_of("b")}, 10s);
    op second = store_->stop(node_.now() + 1s, [&](std::error_code, int) { ++stopped; });
    pass(999ms);
    EXPECT_EQ(stopped, 1);
    pass(2ms);
    EXPECT_EQ(stopped, 2);
}

TEST_F(RedisBreakers, it_says_what_went_over_the_wire_and_what_is_wrong) {
    EXPECT_EQ(store_->traffic().bytes_in, 2U);
    EXPECT_EQ(store_->traffic().redirections, 4U);
    EXPECT_EQ(store_->trouble(), "");
    const auto g = exchange({news_of("a")});
    route_->answer_error("OOM command not allowed");
    EXPECT_NE(store_->trouble().find("maxmemory"), std::string::npos) << store_->trouble();
    exchange_well("a");
    EXPECT_EQ(store_->trouble(), "");
}

}  // namespace
}  // namespace trinco::detail::test
