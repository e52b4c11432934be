#include "store/redis/single_route.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scripted_server.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using event_kind = route_event::kind_t;

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

class SingleRoute : public testing::Test {
protected:
    SingleRoute() {
        server_.answer_all([this](const std::string& command) { return reply_to(command); });
    }
    std::string reply_to(const std::string& command) {
        if (command == "INFO server") return info_;
        if (command.starts_with("SUBSCRIBE")) return subscribed_;
        if (command.starts_with("CLIENT")) return named_;
        return "+" + command + "\r\n";
    }
    void open(redis_target target = {}) {
        target.nodes.push_back(stream_address::tcp("r", 1));
        route_ = make_single_route(node_, server_, std::move(target), [this](const route_event& e) {
            events_ += name_of(e.kind);
            reason_ = e.reason;
        });
        pass(10ms);
    }
    static std::string name_of(event_kind k) {
        switch (k) {
            case event_kind::up: return "up ";
            case event_kind::down: return "down ";
            case event_kind::other_server: return "other ";
            case event_kind::hearing: return "hearing ";
            case event_kind::deaf: return "deaf ";
        }
        return {};
    }
    void pass(boot_clock::duration d) { world_.run_for(d); }
    void restart_with(const std::string& run_id) {
        info_ = bulk("run_id:" + run_id + "\r\n");
        for (const auto& wire : server_.wires) {
            if (wire->open) wire->end();
        }
        pass(500ms);
    }

    sim::world world_{5};
    sim::node& node_ = world_.add_node("client");
    scripted_server server_{node_};
    std::string info_ = bulk("redis_version:7.0.15\r\nrun_id:aa11\r\n");
    std::string named_ = "+OK\r\n";
    std::string subscribed_ = "*3\r\n" + bulk("subscribe") + bulk("ch") + ":1\r\n";
    std::string events_;
    redis_refusal reason_;
    std::unique_ptr<redis_route> route_;
};

TEST_F(SingleRoute, logs_in_and_asks_who_answers_before_anything_else) {
    redis_target target;
    target.login = {"app", "secret"};
    target.database = 3;
    open(target);
    const op r = route_->request("k", resp_command(std::vector<std::string>{"GET", "k"}),
                                 node_.now() + 1s, [](std::error_code, const resp_reply&) {});
    pass(10ms);
    const std::vector<std::string> expected{"AUTH app secret", "SELECT 3", "CLIENT SETNAME trinco",
                                            "INFO server", "GET k"};
    EXPECT_EQ(server_.commands, expected);
    EXPECT_EQ(events_, "up ");
    EXPECT_TRUE(route_->up("k"));
    EXPECT_EQ(route_->traffic().requests, 1U);
    EXPECT_GT(route_->traffic().bytes_in, 0U);
}

TEST_F(SingleRoute, who_may_neither_name_himself_nor_ask_is_served) {
    named_ = "-NOPERM this user has no permissions to run the 'client|setname' command\r\n";
    info_ = "-NOPERM this user has no permissions to run the 'info' command\r\n";
    open();
    EXPECT_EQ(events_, "up ");
}

TEST_F(SingleRoute, who_is_not_let_in_learns_why) {
    named_ = "-NOAUTH Authentication required.\r\n";
    open();
    EXPECT_EQ(events_, "down ");
    EXPECT_EQ(reason_.error, errc::denied);
    EXPECT_NE(reason_.why.find("NOAUTH"), std::string::npos) << reason_.why;
}

TEST_F(SingleRoute, another_life_of_the_server_is_told_after_up) {
    open();
    restart_with("aa11");
    EXPECT_EQ(events_, "up down up ");
    restart_with("bb22");
    EXPECT_EQ(events_, "up down up down up other ");
}

TEST_F(SingleRoute, a_server_that_is_mistrusted_is_connected_to_anew) {
    open();
    route_->mistrust("k", {errc::unavailable, "the server answers LOADING"});
    pass(500ms);
    EXPECT_EQ(events_, "up down up ");
    EXPECT_EQ(server_.wires.size(), 2U);
    EXPECT_EQ(route_->traffic().reconnects, 1U);
}

// A request that is tried again wakes the link each time.
TEST_F(SingleRoute, a_server_that_stays_of_no_use_is_connected_to_ever_more_seldom) {
    open();
    std::vector<op> asked;
    const auto complain_for = [&](boot_clock::duration d, bool only_time_helps) {
        const auto before = server_.wires.size();
        for (const auto end = node_.now() + d; node_.now() < end; pass(10ms)) {
            asked.push_back(route_->request("k", resp_command(std::vector<std::string>{"GET", "k"}),
                                            node_.now() + 1s,
                                            [](std::error_code, const resp_reply&) {}));
            pass(3ms);
            route_->mistrust("k", {errc::unavailable, "no", only_time_helps});
        }
        return server_.wires.size() - before;
    };
    EXPECT_EQ(complain_for(5s, true), 0U);  // the same server would say the same
    // At 0, 50, 150, 350, 750 ms, 1.55 s, and then every second.
    const auto first = complain_for(5s, false);
    EXPECT_GE(first, 7U);
    EXPECT_LE(first, 9U);
    const auto then = complain_for(10s, false);
    EXPECT_GE(then, 9U);
    EXPECT_LE(then, 10U);
    pass(15s);
    EXPECT_GE(complain_for(1s, false), 4U);  // forgotten
}

TEST_F(SingleRoute, the_channel_has_a_connection_of_its_own) {
    open();
    std::vector<std::string> heard;
    route_->listen("ch", [&](std::string_view m) { heard.emplace_back(m); });
    pass(10ms);
    EXPECT_EQ(events_, "up hearing ");
    ASSERT_EQ(server_.wires.size(), 2U);
    EXPECT_EQ(server_.commands.back(), "SUBSCRIBE ch");
    server_.last().say("*3\r\n" + bulk("message") + bulk("ch") + bulk("changed x"));
    pass(1ms);
    EXPECT_EQ(heard, std::vector<std::string>{"changed x"});
    server_.last().end();
    pass(500ms);
    EXPECT_EQ(events_, "up hearing deaf hearing ");
    EXPECT_TRUE(route_->up("k"));
}

TEST_F(SingleRoute, a_user_without_the_right_to_the_channel_is_deaf_and_goes_on) {
    subscribed_ = "-NOPERM this user has no permissions to access one of the channels\r\n";
    open();
    route_->listen("ch", [](std::string_view) {});
    pass(10ms);
    EXPECT_EQ(events_, "up deaf ");
    EXPECT_EQ(reason_.error, errc::denied);
    const auto attempts = server_.attempts.size();
    pass(4s);
    EXPECT_EQ(server_.attempts.size(), attempts);  // slowly
    pass(2s);
    EXPECT_EQ(server_.attempts.size(), attempts + 1);
    EXPECT_TRUE(route_->up("k"));
}

TEST_F(SingleRoute, it_may_end_in_its_own_event) {
    route_ = make_single_route(node_, server_, {.nodes = {stream_address::tcp("r", 1)}},
                               [this](const route_event&) { route_.reset(); });
    pass(1s);
    EXPECT_EQ(route_, nullptr);
}

}  // namespace
}  // namespace trinco::detail::test
