// redis_link where it does not decide alone where to connect, and what becomes of what it has not
// sent; and the steps of a connection.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scripted_fleet.hpp"
#include "store/redis/redis_link.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using door = scripted_server::door;

class RedisLinkFinding : public testing::Test {
protected:
    RedisLinkFinding() {
        for (const auto* one : {"a:1", "b:1"}) fleet_.at(one).answer_with_the_command();
    }
    void open(redis_link_options options) {
        link_.emplace(node_, fleet_, stream_address::tcp("nowhere", 1), std::move(options),
                      [this](const redis_link_event& e) { events_.push_back(e); });
    }
    // Says these one after the other, each after a while; the last one for ever.
    redis_finder finder(std::deque<redis_found> found, boot_clock::duration after = 10ms) {
        return [this, found = std::move(found), after](deadline by, auto done) mutable {
            searches_.push_back(by - node_.now());
            auto one = found.front();
            if (found.size() > 1) found.pop_front();
            return node_.after(after, [d = std::move(done), one]() mutable { d(one); });
        };
    }
    std::shared_ptr<asked> ask(const std::string& what, boot_clock::duration within = 10s) {
        auto a = std::make_shared<asked>();
        a->interest =
            link_->request(resp_command(std::vector<std::string>{what}), node_.now() + within,
                           [this, raw = a.get()](std::error_code error, resp_reply r) {
                               ++raw->times;
                               raw->error = error;
                               raw->reply = std::move(r);
                               raw->when = node_.now();
                           });
        return a;
    }
    void run(boot_clock::duration d) { world_.run_for(d); }

    sim::world world_{7};
    sim::node& node_ = world_.add_node("client");
    scripted_fleet fleet_{node_};
    std::vector<redis_link_event> events_;
    std::vector<boot_clock::duration> searches_;
    std::optional<redis_link> link_;
};

TEST_F(RedisLinkFinding, asks_before_every_attempt) {
    open({.find = finder({stream_address::tcp("a", 1), stream_address::tcp("b", 1)})});
    run(50ms);
    EXPECT_TRUE(link_->up());
    EXPECT_EQ(link_->where(), stream_address::tcp("a", 1));
    const auto start = node_.now();
    fleet_.cut("a:1");
    run(1ms);
    const auto waits = ask("x");
    run(1s);
    EXPECT_EQ(waits->reply.text, "x");
    EXPECT_LE(waits->when - start, 100ms);
    EXPECT_EQ(fleet_.asked, (std::vector<std::string>{"a:1", "b:1"}));
    EXPECT_EQ(searches_, (std::vector<boot_clock::duration>{1s, 1s}));
}

TEST_F(RedisLinkFinding, the_time_of_the_search_is_not_that_of_connecting) {
    open({.connect_within = 100ms, .find = finder({stream_address::tcp("a", 1)}, 900ms)});
    run(950ms);
    EXPECT_TRUE(link_->up());
}

TEST_F(RedisLinkFinding, why_nobody_was_found_is_told_and_it_is_tried_again) {
    open({.find = finder(
              {redis_refusal{errc::unavailable, "nobody knows"}, stream_address::tcp("a", 1)})});
    run(1s);
    ASSERT_EQ(events_.size(), 2U);
    EXPECT_FALSE(events_[0].up);
    EXPECT_EQ(events_[0].reason.why, "nobody knows");
    EXPECT_TRUE(events_[1].up);
}

TEST_F(RedisLinkFinding, a_search_that_is_given_up_says_nothing_any_more) {
    open({.find = finder({stream_address::tcp("a", 1), stream_address::tcp("b", 1)}, 200ms)});
    run(100ms);
    link_->reconnect({errc::unavailable, "it is elsewhere"});
    link_->wake();
    run(500ms);
    EXPECT_EQ(fleet_.asked, (std::vector<std::string>{"b:1"}));
    run(1s);
    open({.find = finder({stream_address::tcp("a", 1)}, 200ms)});
    run(100ms);
    link_.reset();
    run(1s);
    EXPECT_EQ(fleet_.asked.size(), 1U);
}

TEST_F(RedisLinkFinding, waking_is_trying_now) {
    fleet_.kill("a:1");
    open({.find = finder({stream_address::tcp("a", 1)}), .retry = {1h, 1h}});
    run(1s);
    fleet_.wake("a:1");
    run(1s);
    EXPECT_FALSE(link_->up());
    link_->wake();
    run(20ms);
    EXPECT_TRUE(link_->up());
    link_->wake();  // of no meaning now
    run(1s);
    EXPECT_EQ(fleet_.asked.size(), 2U);
}

TEST_F(RedisLinkFinding, what_is_not_to_be_kept_is_answered_when_the_attempt_ends) {
    fleet_.kill("a:1");
    open({.find = finder({stream_address::tcp("a", 1)}), .keep_unsent = false});
    const auto early = ask("x");
    run(15ms);
    EXPECT_EQ(early->times, 1);
    EXPECT_EQ(early->error, errc::unavailable);
    fleet_.wake("a:1");
    run(2s);
    ASSERT_TRUE(link_->up());
    fleet_.at("a:1").last().takes = false;  // what is written stays in our own system
    const auto sent = ask("y");
    run(1ms);
    const auto unsent = ask("z");
    run(1ms);
    fleet_.cut("a:1");
    run(5ms);
    EXPECT_EQ(sent->error, errc::unknown_outcome);
    EXPECT_EQ(unsent->error, errc::unavailable);
    EXPECT_EQ(sent->times + unsent->times, 2);
}

TEST_F(RedisLinkFinding, traffic_is_counted_over_all_connections) {
    open({.find = finder({stream_address::tcp("a", 1)})});
    run(50ms);
    const auto request = resp_command(std::vector<std::string>{"PING"});
    for (int i = 0; i < 3; ++i) {
        const auto a = ask("PING");
        run(10ms);
        fleet_.cut("a:1");
        run(2s);
    }
    const auto t = link_->traffic();
    EXPECT_EQ(t.requests, 3U);
    EXPECT_EQ(t.reconnects, 3U);
    EXPECT_EQ(t.bytes_out, 3 * request.size());
    EXPECT_EQ(t.bytes_in, 3 * std::string("+PING\r\n").size());
}

TEST(RedisSteps, login_is_what_the_url_says) {
    EXPECT_TRUE(login_steps({}, 0).empty());
    EXPECT_TRUE(login_steps({.user = "u"}, 0).empty());
    const auto by_password = login_steps({.password = "p"}, 0);
    ASSERT_EQ(by_password.size(), 1U);
    EXPECT_EQ(by_password[0].words, (std::vector<std::string>{"AUTH", "p"}));
    const auto all = login_steps({"u", "p"}, 7);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].words, (std::vector<std::string>{"AUTH", "u", "p"}));
    EXPECT_EQ(all[1].words, (std::vector<std::string>{"SELECT", "7"}));
}

TEST(RedisSteps, only_a_primary_will_do) {
    const auto step = primary_step();
    const auto role = [](const std::string& name) {
        return resp_reply::of(std::vector<resp_reply>{resp_reply::of(name)});
    };
    EXPECT_FALSE(step.check(role("master")));
    for (const auto& other :
         {role("slave"), role("sentinel"), role(""), resp_reply{},
          resp_reply::of(std::vector<resp_reply>{}), resp_reply::of("master")}) {
        const auto refusal = step.check(other);
        ASSERT_TRUE(refusal);
        EXPECT_EQ(refusal->error, errc::unavailable);
    }
    EXPECT_EQ(step.check(resp_reply::error_of("NOPERM no"))->error, errc::denied);
}

}  // namespace
}  // namespace trinco::detail::test
