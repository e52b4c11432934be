// Calls and streams of the transport, and the end of all.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http2_transport_fixture.hpp"

namespace trinco::detail::test {
namespace {

using namespace etcd;

// ---- calls --------------------------------------------------------------------------------------

TEST_F(Http2Transport, a_call_connects_asks_and_is_answered) {
    EXPECT_FALSE(by_->connected({}));
    const auto a = call("question", {"secret", true}, 4'500ms);
    EXPECT_EQ(members_->all->attempts.size(), 1U);
    run();
    ASSERT_EQ(peer().requests().size(), 1U);
    auto& asked = peer().last();
    EXPECT_EQ(asked.body, framed("question"));
    EXPECT_TRUE(asked.whole);
    EXPECT_EQ(members_->wire(0).writes, 2U) << "all at once, and that its settings were heard";
    EXPECT_EQ(asked.fields[":method"], "POST");
    EXPECT_EQ(asked.fields[":path"], txn_method);
    EXPECT_EQ(asked.fields[":scheme"], "http");
    EXPECT_EQ(asked.fields[":authority"], "10.0.0.1:2379");
    EXPECT_EQ(asked.fields["te"], "trailers");
    EXPECT_EQ(asked.fields["content-type"], "application/grpc");
    EXPECT_EQ(asked.fields["user-agent"].substr(0, 7), "trinco/");
    EXPECT_EQ(asked.fields["grpc-timeout"], "5S");
    EXPECT_EQ(asked.fields["token"], "secret");
    EXPECT_EQ(asked.fields["hasleader"], "true");
    EXPECT_TRUE(by_->connected({}));
    EXPECT_FALSE(by_->connected({0, lane::watches}));
    peer().answer(asked.id, "answer");
    say();
    EXPECT_STATUS(a, wire_code::ok, wire_cause::server);
    EXPECT_EQ(a->reply, "answer");
    const auto writes = members_->wire(0).writes;
    const auto plain = call();
    run();
    EXPECT_EQ(members_->wire(0).writes, writes + 1) << "head and message are one write";
    EXPECT_EQ(peer().last().fields.count("token"), 0U);
    EXPECT_EQ(members_->all->attempts.size(), 1U);
}

TEST_F(Http2Transport, each_lane_of_a_member_has_a_connection_of_its_own) {
    const auto a = call();
    const auto b = call("?", {}, 5s, {0, lane::renewals});
    const auto c = call("?", {}, 5s, {1, lane::requests});
    const auto d = call();
    run();
    ASSERT_EQ(members_->all->asked.size(), 3U);
    EXPECT_EQ(members_->all->asked[2].host, "10.0.0.2");
    EXPECT_EQ(peer(0).requests().size(), 2U);
}

TEST_F(Http2Transport, a_refusal_is_the_servers_word) {
    const auto a = call();
    run();
    peer().refuse(peer().last().id, 14, "etcdserver: 100%25 no leader");
    say();
    EXPECT_STATUS(a, wire_code::unavailable, wire_cause::server);
    EXPECT_EQ(a->status->text, "etcdserver: 100% no leader");
}

TEST_F(Http2Transport, large_messages_go_either_way_and_larger_ones_do_not) {
    const std::string large(4 * 1024 * 1024, 'x');
    const auto fits = call(large);
    run();
    EXPECT_TRUE(peer().last().body == framed(large));
    peer().answer(peer().last().id, large);
    say();
    EXPECT_STATUS(fits, wire_code::ok, wire_cause::server);
    EXPECT_TRUE(fits->reply == large);
    const auto too_large = call(large + "x");
    run();
    EXPECT_STATUS(too_large, wire_code::resource_exhausted, wire_cause::not_sent);
    EXPECT_EQ(peer().requests().size(), 1U);
    const auto small = call();
    run();
    peer().answer(peer().last().id, large + "x");
    say();
    EXPECT_STATUS(small, wire_code::resource_exhausted, wire_cause::broken);
    EXPECT_TRUE(peer().last().given_up) << "the rest is not waited for";
    come_up();
    EXPECT_EQ(members_->all->attempts.size(), 1U) << "on the same connection";
}

TEST_F(Http2Transport, an_answer_of_none_or_two_messages_is_none) {
    const auto none = call();
    const auto two = call();
    run();
    const auto ids = std::pair(peer().requests()[0].id, peer().requests()[1].id);
    peer().head(ids.first, grpc_head_fields);
    peer().trailers(ids.first, {{"grpc-status", "0"}});
    peer().head(ids.second, grpc_head_fields);
    peer().data(ids.second, framed("a") + framed("b"));  // and perhaps more
    say();
    EXPECT_STATUS(none, wire_code::internal, wire_cause::broken);
    EXPECT_STATUS(two, wire_code::internal, wire_cause::broken);
}

TEST_F(Http2Transport, a_call_ends_by_its_deadline_and_is_given_up) {
    come_up();
    const auto late = call("?", {}, 300ms);
    const auto other = call();
    run(290ms);
    EXPECT_FALSE(late->status);
    run(11ms);
    EXPECT_STATUS(late, wire_code::deadline_exceeded, wire_cause::server);
    const auto& requests = peer().requests();
    EXPECT_TRUE(requests[1].given_up);
    EXPECT_EQ(requests[1].why, 8U) << "CANCEL";
    peer().answer(requests[2].id, "a");
    say();
    EXPECT_STATUS(other, wire_code::ok, wire_cause::server);
}

TEST_F(Http2Transport, what_is_dropped_is_given_up_and_not_answered) {
    const auto unsent = call();
    unsent->interest.cancel();
    run();
    come_up();
    EXPECT_EQ(peer().requests().size(), 1U);
    const auto sent = call();
    run();
    sent->interest.cancel();
    run();
    EXPECT_TRUE(peer().last().given_up);
    run(10s);
    EXPECT_FALSE(sent->status);
    EXPECT_FALSE(unsent->status);
}

// ---- streams ------------------------------------------------------------------------------------

TEST_F(Http2Transport, a_stream_carries_messages_both_ways_until_it_is_dropped) {
    auto s = open();
    s->handle->send("early");
    run();
    s->handle->send("later");
    run();
    auto& asked = peer().last();
    EXPECT_EQ(asked.body, framed("early") + framed("later"));
    EXPECT_FALSE(asked.whole);
    EXPECT_EQ(asked.fields.count("grpc-timeout"), 0U);
    peer().head(asked.id, grpc_head_fields);
    peer().data(asked.id, framed("a") + framed("b") + framed("c").substr(0, 3));
    say();
    EXPECT_EQ(s->heard, (std::vector<std::string>{"a", "b"}));
    peer().data(asked.id, framed("c").substr(3));
    say();
    EXPECT_EQ(s->heard.size(), 3U);
    s->handle.reset();
    run();
    EXPECT_TRUE(asked.given_up);
    EXPECT_FALSE(s->status);
}

TEST_F(Http2Transport, a_stream_ends_with_the_servers_word_or_with_the_connection) {
    auto said = open();
    auto lost = open();
    run();
    const auto id = peer().requests()[0].id;
    peer().head(id, grpc_head_fields);
    peer().data(id, framed("a"));
    peer().trailers(id, {{"grpc-status", "14"}, {"grpc-message", "etcdserver: no leader"}});
    say();
    EXPECT_EQ(said->heard.size(), 1U);
    EXPECT_STATUS(said, wire_code::unavailable, wire_cause::server);
    said->handle->send("nobody hears it");
    members_->wire(0).end();
    run();
    EXPECT_STATUS(lost, wire_code::unavailable, wire_cause::broken);
}

TEST_F(Http2Transport, a_stream_may_be_dropped_by_what_it_tells) {
    auto s = std::make_shared<std::unique_ptr<wire_stream>>();
    int heard = 0;
    *s = by_->open(
        {0, lane::watches}, txn_method, {},
        [s, &heard](const std::string&) {
            ++heard;
            s->reset();
        },
        [](const wire_status&) { FAIL(); });
    run();
    peer().head(peer().last().id, grpc_head_fields);
    peer().data(peer().last().id, framed("a") + framed("b"));
    say();
    EXPECT_EQ(heard, 1);
    run();
    EXPECT_TRUE(peer().last().given_up);
}

// ---- the end ------------------------------------------------------------------------------------

TEST_F(Http2Transport, after_stop_nothing_is_told_and_nothing_begun) {
    come_up();
    const auto a = call();
    const auto s = open({});
    const auto connecting = call("?", {}, 5s, {1, lane::requests});
    std::optional<std::error_code> stopped;
    const auto interest = by_->stop(at_.now() + 1s, [&](std::error_code e, int) { stopped = e; });
    EXPECT_FALSE(stopped);
    run();
    ASSERT_TRUE(stopped);
    EXPECT_FALSE(*stopped);
    EXPECT_FALSE(members_->wire(0).open);
    EXPECT_FALSE(by_->connected({}));
    const auto attempts = members_->all->attempts.size();
    const auto late = call();
    const auto late_stream = open({});
    run(20s);
    EXPECT_EQ(members_->all->attempts.size(), attempts);
    EXPECT_FALSE(a->status || s->status || connecting->status || late->status ||
                 late_stream->status);
}

TEST_F(Http2Transport, who_is_told_may_end_all_and_nothing_more_is_told) {
    int told = 0;
    std::vector<op> interests;
    for (int i = 0; i < 2; ++i) {
        interests.push_back(by_->call({}, txn_method, "?", {}, at_.now() + 5s,
                                      [&](const wire_status&, const std::string&) {
                                          ++told;
                                          by_.reset();
                                      }));
    }
    run();
    for (auto& one : peer().requests()) peer().answer(one.id, "a");
    say();
    EXPECT_EQ(told, 1);
    run(20s);
    EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace trinco::detail::test
