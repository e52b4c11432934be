// Messages that may wait: a moment, in their order, and not for anything else.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scripted_server.hpp"
#include "store/redis/redis_link.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

std::string published(const std::string& payload) {
    return "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$" + std::to_string(payload.size()) + "\r\n" +
           payload + "\r\n";
}

class RedisLinkThatHolds : public testing::Test {
protected:
    RedisLinkThatHolds() {
        redis_link_options options;
        options.may_wait = [this](std::string_view payload) {
            asked_.emplace_back(payload);
            return payload.starts_with("may wait");
        };
        link_.emplace(
            node_, server_, stream_address::tcp("r", 1), std::move(options),
            [this](const redis_link_event& e) { told_ += e.up ? "up " : "down "; },
            [this](const resp_reply& r) {
                heard_.push_back(r.elements[2].text);
                if (ends_when_heard_) link_.reset();
            });
        run(10ms);
    }
    void run(boot_clock::duration d) { world_.run_for(d); }

    using texts = std::vector<std::string>;
    sim::world world_{7};
    sim::node& node_ = world_.add_node("client");
    scripted_server server_{node_};
    std::string told_;
    texts asked_;
    texts heard_;
    bool ends_when_heard_ = false;
    std::optional<redis_link> link_;
};

TEST_F(RedisLinkThatHolds, what_may_wait_is_heard_a_moment_later_and_in_its_order) {
    server_.last().say(published("may wait 1"));
    run(1ms);
    server_.last().say(published("may wait 2"));
    run(1ms);
    EXPECT_EQ(asked_, (texts{"may wait 1", "may wait 2"}));
    EXPECT_TRUE(heard_.empty());
    run(2ms);
    EXPECT_EQ(heard_, asked_);
    run(10ms);
    EXPECT_EQ(heard_.size(), 2U);
}

TEST_F(RedisLinkThatHolds, what_may_not_wait_is_heard_at_once_behind_what_waits) {
    server_.last().say(published("may wait"));
    server_.last().say(published("now"));
    run(1ms);
    EXPECT_EQ(heard_, (texts{"may wait", "now"}));
    server_.last().say(published("may wait") + published("may wait"));  // who knows what that is
    run(1ms);
    EXPECT_EQ(heard_.size(), 4U);
    EXPECT_EQ(asked_.size(), 2U);
}

TEST_F(RedisLinkThatHolds, a_message_in_pieces_is_not_asked_about) {
    const auto whole = published("may wait");
    server_.last().say(whole.substr(0, 20));
    run(1ms);
    server_.last().say(whole.substr(20));
    run(1ms);
    EXPECT_EQ(heard_, texts{"may wait"});
    EXPECT_TRUE(asked_.empty());
}

TEST_F(RedisLinkThatHolds, what_waits_is_heard_before_the_end_of_the_connection) {
    server_.last().say(published("may wait"));
    server_.last().end();
    run(1ms);
    EXPECT_EQ(heard_, texts{"may wait"});
    EXPECT_EQ(told_, "up down ");
}

TEST_F(RedisLinkThatHolds, what_waits_is_lost_with_a_connection_that_is_given_up) {
    server_.last().say(published("may wait"));
    run(1ms);
    link_->reconnect({});
    run(10ms);
    EXPECT_TRUE(heard_.empty());
}

TEST_F(RedisLinkThatHolds, may_be_destroyed_when_what_waited_is_heard) {
    ends_when_heard_ = true;
    server_.last().say(published("may wait 1"));
    server_.last().say(published("may wait 2"));
    run(10ms);
    EXPECT_EQ(heard_, texts{"may wait 1"});
}

}  // namespace
}  // namespace trinco::detail::test
