// The connections of the transport: made, lost, left, and watched over.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "http2_transport_fixture.hpp"

namespace trinco::detail::test {
namespace {

using namespace etcd;

using door = scripted_server::door;

// ---- connections --------------------------------------------------------------------------------

TEST_F(Http2Transport, who_is_not_there_is_said_and_tried_again_by_the_next_call) {
    members_->all->doors = {door::refuse};
    const auto a = call();
    const auto b = call();
    run();
    EXPECT_STATUS(a, wire_code::unavailable, wire_cause::not_sent);
    EXPECT_EQ(a->status->text, "connection refused; is etcd running there?");
    EXPECT_STATUS(b, wire_code::unavailable, wire_cause::not_sent);
    EXPECT_EQ(members_->all->attempts.size(), 1U);
    come_up();
    EXPECT_EQ(members_->all->attempts.size(), 2U);
}

TEST_F(Http2Transport, attempts_end_after_two_seconds) {
    members_->all->doors = {door::hang};
    const auto hangs = call();
    run(1'999ms);
    EXPECT_FALSE(hangs->status);
    run(2ms);
    EXPECT_STATUS(hangs, wire_code::unavailable, wire_cause::not_sent);
    EXPECT_EQ(hangs->status->text, "no connection within 2 s");
    members_->is_silent = true;
    const auto silent = call();
    run(2'001ms);
    EXPECT_STATUS(silent, wire_code::unavailable, wire_cause::broken);
    EXPECT_EQ(silent->status->text, "it takes connections, but does not answer");
}

TEST_F(Http2Transport, what_a_lost_connection_leaves_is_unknown_but_what_was_not_sent) {
    members_->settings.window = 1'000;
    members_->settings.reads = false;
    come_up();
    const auto sent = call();
    const auto half_sent = call(std::string(5'000, 'x'));
    run();
    members_->wire(0).end();
    run();
    EXPECT_STATUS(sent, wire_code::unavailable, wire_cause::broken);
    EXPECT_EQ(sent->status->text, "it ended the connection");
    EXPECT_STATUS(half_sent, wire_code::unavailable, wire_cause::not_sent);
    EXPECT_FALSE(by_->connected({}));
    come_up();
    const auto again = call();
    run();
    members_->wire(1).reset();
    run();
    EXPECT_STATUS(again, wire_code::unavailable, wire_cause::broken);
    EXPECT_NE(again->status->text.find("broke: "), std::string::npos) << again->status->text;
}

TEST_F(Http2Transport, a_member_that_goes_finishes_what_it_has_begun) {
    come_up();
    const auto first = call();
    const auto second = call();
    run();
    const auto& requests = peer().requests();
    peer().goaway(requests[1].id, 0);
    say();
    EXPECT_FALSE(first->status);
    EXPECT_STATUS(second, wire_code::unavailable, wire_cause::not_sent);
    EXPECT_FALSE(by_->connected({}));
    come_up();
    EXPECT_EQ(members_->all->attempts.size(), 2U);
    EXPECT_TRUE(members_->wire(0).open);
    peer().answer(requests[1].id, "a");
    say();
    EXPECT_STATUS(first, wire_code::ok, wire_cause::server);
    EXPECT_FALSE(members_->wire(0).open) << "nothing is left for it to do";
}

TEST_F(Http2Transport, what_a_member_gives_up_may_have_been_carried_out_unless_it_says_so) {
    const auto refused = call();
    const auto broken = call();
    const auto plain = call();
    run();
    peer().reset(peer().requests()[0].id, 7);
    peer().reset(peer().requests()[1].id, 2);
    peer().reset(peer().requests()[2].id, 13);
    say();
    EXPECT_STATUS(refused, wire_code::unavailable, wire_cause::not_sent);
    EXPECT_STATUS(broken, wire_code::unavailable, wire_cause::broken);
    EXPECT_STATUS(plain, wire_code::unavailable, wire_cause::misdirected);
}

TEST_F(Http2Transport, what_is_under_way_keeps_the_connection_that_is_renewed) {
    come_up();
    const auto old = call();
    run();
    by_->renew({});
    EXPECT_FALSE(by_->connected({}));
    come_up();
    EXPECT_EQ(members_->all->attempts.size(), 2U);
    peer(0).answer(peer(0).last().id, "a");
    say();
    EXPECT_STATUS(old, wire_code::ok, wire_cause::server);
    EXPECT_FALSE(members_->wire(0).open);
    EXPECT_TRUE(members_->wire(1).open);
    by_->renew({});
    run();
    EXPECT_FALSE(members_->wire(1).open);
    members_->all->doors = {door::hang};
    const auto connecting = call();
    by_->renew({});
    connecting->interest.cancel();
    run(5s);
    EXPECT_FALSE(connecting->status);
}

TEST_F(Http2Transport, what_a_proxy_before_an_etcd_says_leaves_open_what_became_of_a_request) {
    for (const auto* const status : {"200", "408", "500"}) {
        make({});
        come_up();
        const auto a = call();
        run();
        auto& proxy = members_->last();
        proxy.head(proxy.last().id, {{":status", status}, {"content-type", "text/html"}}, true);
        say();
        EXPECT_STATUS(a, wire_code::unavailable, wire_cause::broken);
    }
}

TEST_F(Http2Transport, one_that_throws_keeps_no_other_from_its_answer) {
    come_up();
    const auto thrown = by_->call({}, txn_method, "?", {}, at_.now() + 5s,
                                  [](const etcd::wire_status&, const std::string&) {
                                      throw std::runtime_error("a callback's");
                                  });
    const auto a = call();
    run();
    auto& server = members_->last();
    for (const auto& one : server.requests()) {
        if (!one.given_up && one.body.find('?') != std::string::npos) server.answer(one.id, "!");
    }
    EXPECT_THROW(say(), std::runtime_error);
    run();
    EXPECT_STATUS(a, wire_code::ok, wire_cause::server);
    const auto next = call();
    run();
    server.answer(server.last().id, "!");
    say();
    EXPECT_STATUS(next, wire_code::ok, wire_cause::server);
}

TEST_F(Http2Transport, who_is_no_etcd_is_said) {
    const auto say_to_call = [this](const std::function<void(scripted_wire&)>& how) {
        make({});
        members_->all->heard = how;
        const auto a = call();
        run();
        return a->status.value_or(wire_status{wire_code::ok, "not answered"});
    };
    auto status = say_to_call([](auto& w) { w.say("HTTP/1.1 400 Bad Request\r\n\r\n"); });
    EXPECT_EQ(status.by, wire_cause::misdirected);
    EXPECT_EQ(status.text, "it speaks HTTP/1, and not gRPC: it is no etcd");
    status = say_to_call([](auto& w) { w.say("SSH-2.0-OpenSSH_9.2p1\r\n"); });
    EXPECT_EQ(status.by, wire_cause::not_sent);
    EXPECT_EQ(status.text, "it answers, but not as etcd does");
    status = say_to_call([](auto& w) { w.end(); });
    EXPECT_NE(status.text.find("(etcd://, etcds://)"), std::string::npos) << status.text;
    make({});
    const auto page = call();
    const auto proxy = call();
    run();
    peer().head(peer().requests()[0].id, {{":status", "404"}, {"content-type", "text/html"}});
    peer().data(peer().requests()[0].id, "<html>", true);
    peer().head(peer().requests()[1].id, {{":status", "503"}}, true);
    say();
    EXPECT_STATUS(page, wire_code::unavailable, wire_cause::misdirected);
    EXPECT_NE(page->status->text.find("404"), std::string::npos);
    EXPECT_STATUS(proxy, wire_code::unavailable, wire_cause::broken);
}

TEST_F(Http2Transport, with_tls_http2_is_asked_for) {
    tls_settings with;
    with.server_name = "etcd.test";
    make(with);
    const auto a = call();
    run();
    ASSERT_TRUE(members_->all->asked.at(0).tls);
    EXPECT_EQ(members_->all->asked[0].tls->protocol, "h2");
    EXPECT_EQ(peer().last().fields[":scheme"], "https");
    EXPECT_EQ(peer().last().fields[":authority"], "etcd.test");
}

// ---- signs of life ------------------------------------------------------------------------------

TEST_F(Http2Transport, a_silent_peer_is_asked_for_a_sign_of_life_while_something_is_under_way) {
    come_up();
    run(60s);
    EXPECT_EQ(peer().pings(), 0) << "etcd takes it for an attack";
    const auto s = open({});
    run(9'900ms);
    EXPECT_EQ(peer().pings(), 0);
    run(200ms);
    EXPECT_EQ(peer().pings(), 1);
    run(30s);
    EXPECT_EQ(peer().pings(), 4);
    EXPECT_FALSE(s->status);
    members_->is_silent = true;
    run(10'100ms);
    EXPECT_FALSE(s->status);
    run(3s);
    EXPECT_STATUS(s, wire_code::unavailable, wire_cause::broken);
    EXPECT_EQ(s->status->text, "it gives no sign of life");
}

TEST_F(Http2Transport, who_complains_of_it_is_asked_half_as_often) {
    auto s = open({});
    run(10'100ms);
    EXPECT_EQ(peer().pings(), 1);
    peer().goaway(peer().last().id, 11, "too_many_pings");
    say();
    s->handle.reset();
    s = open({});
    run(19'900ms);
    EXPECT_EQ(peer(1).pings(), 0);
    run(200ms);
    EXPECT_EQ(peer(1).pings(), 1);
}

}  // namespace
}  // namespace trinco::detail::test
