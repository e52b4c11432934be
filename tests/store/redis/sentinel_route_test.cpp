#include "store/redis/sentinel_route.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "scripted_fleet.hpp"
#include "store/redis/sentinel_seeker.hpp"
#include "store/redis/sentinel_watch.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using door = scripted_server::door;
using kind = route_event::kind_t;

const std::vector<std::string> sentinels{"s1:1", "s2:1", "s3:1"};

class SentinelRoute : public testing::Test {
protected:
    SentinelRoute() {
        for (const auto& one : sentinels) add_sentinel(one);
        for (const auto* one : {"a:1", "b:1"}) add_server(one);
        for (const auto& one : sentinels) names_[one] = {"a", "1"};
        roles_["a:1"] = "master";
        roles_["b:1"] = "slave";
    }
    void add_sentinel(const std::string& at) {
        fleet_.at(at).answer_all([this, at](const std::string& c) -> std::string {
            if (c.starts_with("SENTINEL")) {
                const auto& name = names_[at];
                return name.empty() ? "*-1\r\n" : resp_texts(name);
            }
            if (c.starts_with("SUBSCRIBE")) return "*3\r\n+subscribe\r\n+x\r\n:1\r\n";
            return "+OK\r\n";
        });
    }
    void add_server(const std::string& at) {
        fleet_.at(at).answer_all([this, at](const std::string& c) -> std::string {
            if (c == "ROLE") return resp_texts({roles_[at], "0"});
            if (c.starts_with("INFO")) return resp_text("run_id:" + lives_[at] + "\r\n");
            if (c.starts_with("SUBSCRIBE")) return "*3\r\n+subscribe\r\n+x\r\n:1\r\n";
            if (c.starts_with("CLIENT")) return "+OK\r\n";
            return "+" + at + " " + c + "\r\n";
        });
    }
    void open(redis_target target = {}) {
        target.kind = redis_target::kind_t::sentinel;
        target.primary = "p";
        for (const auto& one : sentinels) {
            target.nodes.push_back(stream_address::tcp(one.substr(0, 2), 1));
        }
        route_ = make_sentinel_route(node_, fleet_, std::move(target),
                                     [this](const route_event& e) { events_.push_back(e); });
    }
    void listen() {
        route_->listen("c", [this](std::string_view m) { heard_.emplace_back(m); });
    }
    std::shared_ptr<asked> ask(const std::string& what, boot_clock::duration within = 10s) {
        auto a = std::make_shared<asked>();
        a->interest =
            route_->request("k", resp_command(std::vector<std::string>{what}), node_.now() + within,
                            [this, raw = a.get()](std::error_code error, resp_reply r) {
                                ++raw->times;
                                raw->error = error;
                                raw->reply = std::move(r);
                                raw->when = node_.now();
                            });
        EXPECT_EQ(a->times, 0);
        return a;
    }
    void expect_answer(const asked& a, const std::string& text) {
        EXPECT_EQ(a.times, 1);
        EXPECT_EQ(a.error, std::error_code()) << a.error.message();
        EXPECT_EQ(a.reply.text, text);
    }
    void run(boot_clock::duration d) { world_.run_for(d); }
    void announce(const std::string& at, const std::string& text) {
        for (const auto& wire : fleet_.at(at).wires) {
            if (wire->open)
                wire->say(resp_list(
                    {resp_text("message"), resp_text("+switch-master"), resp_text(text)}));
        }
    }
    // b is the primary now, and the Sentinels know it.
    void fail_over() {
        roles_["a:1"] = "slave";
        roles_["b:1"] = "master";
        for (const auto& one : sentinels) names_[one] = {"b", "1"};
    }
    std::string told() const {
        std::string all;
        for (const auto& e : events_) {
            const char* const words[] = {"up", "down", "other", "hearing", "deaf"};
            all += std::string(words[static_cast<int>(e.kind)]) + " ";
        }
        return all;
    }
    // To which the subscription of the watch goes.
    std::string watched() {
        for (const auto& one : sentinels) {
            if (fleet_.connections(one) > 0) return one;
        }
        return "";
    }

    sim::world world_{7};
    sim::node& node_ = world_.add_node("client");
    scripted_fleet fleet_{node_};
    std::map<std::string, std::vector<std::string>> names_;  // what a Sentinel says
    std::map<std::string, std::string> roles_;
    std::map<std::string, std::string> lives_{{"a:1", "aa"}, {"b:1", "bb"}};
    std::vector<route_event> events_;
    std::vector<std::string> heard_;
    std::unique_ptr<redis_route> route_;
};

TEST(SentinelWords, an_address_is_taken_as_it_is_announced) {
    const auto reply = [](std::vector<std::string> texts) {
        std::vector<resp_reply> all;
        for (auto& one : texts) all.push_back(resp_reply::of(std::move(one)));
        return resp_reply::of(std::move(all));
    };
    EXPECT_EQ(primary_in(reply({"10.0.0.1", "6379"})), stream_address::tcp("10.0.0.1", 6379));
    EXPECT_EQ(primary_in(reply({"fe80::1", "1"})), stream_address::tcp("fe80::1", 1));
    EXPECT_EQ(primary_in(reply({"db.example", "65535"})), stream_address::tcp("db.example", 65535));
    for (const auto& wrong : std::vector<std::vector<std::string>>{{},
                                                                   {"h"},
                                                                   {"h", ""},
                                                                   {"h", "0"},
                                                                   {"h", "65536"},
                                                                   {"h", "1x"},
                                                                   {"h", "-1"},
                                                                   {"", "1"},
                                                                   {"h", "1", "2"},
                                                                   {std::string(256, 'h'), "1"}}) {
        EXPECT_EQ(primary_in(reply(wrong)), std::nullopt);
    }
    EXPECT_EQ(primary_in({}), std::nullopt);
    EXPECT_EQ(primary_in(resp_reply::error_of("IDONTKNOW")), std::nullopt);
}

TEST(SentinelWords, a_switch_is_about_one_name) {
    EXPECT_EQ(switched_to("p 1.1.1.1 1 ::2 2", "p"), stream_address::tcp("::2", 2));
    for (const auto* wrong : {"q a 1 b 2", "p a 1 b", "p a 1 b 2 3", "p", "", "p a 1 b x",
                              "pp a 1 b 2", " p a 1 b 2"}) {
        EXPECT_EQ(switched_to(wrong, "p"), std::nullopt) << wrong;
    }
}

TEST_F(SentinelRoute, finds_the_primary_and_carries_what_waited) {
    open();
    const auto early = ask("x");
    run(20ms);
    expect_answer(*early, "a:1 x");
    EXPECT_EQ(told(), "up ");
    EXPECT_TRUE(route_->up("k"));
    EXPECT_EQ(fleet_.connections("a:1"), 1U);
    EXPECT_EQ(route_->traffic().requests, 1U);
}

TEST_F(SentinelRoute, the_next_sentinel_is_asked_at_once_when_one_fails) {
    fleet_.kill("s1:1");
    names_["s2:1"] = {};
    open();
    const auto start = node_.now();
    const auto a = ask("x");
    run(20ms);
    expect_answer(*a, "a:1 x");
    EXPECT_LE(a->when - start, 15ms);
}

TEST_F(SentinelRoute, a_silent_sentinel_costs_a_moment_once) {
    fleet_.at("s1:1").otherwise = door::hang;
    open();
    const auto start = node_.now();
    const auto a = ask("x");
    run(1s);
    expect_answer(*a, "a:1 x");
    EXPECT_GE(a->when - start, 200ms);
    EXPECT_LE(a->when - start, 230ms);
    // Next time the one that answered is asked first.
    fleet_.asked.clear();
    fleet_.cut("a:1");
    run(1s);
    ASSERT_FALSE(fleet_.asked.empty());
    EXPECT_EQ(fleet_.asked.front(), "s2:1");
    EXPECT_EQ(told(), "up down up ");
}

TEST_F(SentinelRoute, when_nobody_knows_it_says_what_each_said) {
    fleet_.kill("s1:1");
    names_["s2:1"] = {};
    names_["s3:1"] = {"h", "0"};
    open();
    const auto a = ask("x", 300ms);
    run(400ms);
    EXPECT_EQ(a->error, errc::unavailable);
    ASSERT_FALSE(events_.empty());
    EXPECT_EQ(events_[0].kind, kind::down);
    EXPECT_EQ(events_[0].reason.why,
              "no Sentinel says where the primary \"p\" is: cannot connect to s1:1: connection "
              "refused; the Sentinel at s2:1 knows no primary \"p\"; the Sentinel at s3:1 knows no "
              "primary \"p\"");
    EXPECT_FALSE(route_->up("k"));
}

TEST_F(SentinelRoute, sentinels_have_a_login_of_their_own) {
    std::vector<std::string> at_sentinel;
    fleet_.at("s1:1").answer_all([&](const std::string& c) {
        at_sentinel.push_back(c);
        return c.starts_with("SENTINEL") ? resp_texts({"a", "1"}) : std::string("+OK\r\n");
    });
    open({.database = 3, .login = {"u", "pw"}, .sentinel_login = {"su", "spw"}});
    run(20ms);
    ASSERT_FALSE(at_sentinel.empty());
    EXPECT_EQ(at_sentinel.front(), "AUTH su spw");
    const auto& c = fleet_.at("a:1").commands;
    ASSERT_GE(c.size(), 2U);
    EXPECT_EQ(c[0], "AUTH u pw");
    EXPECT_EQ(c[1], "SELECT 3");
}

TEST_F(SentinelRoute, with_tls_it_is_for_sentinels_and_servers) {
    open({.tls = tls_settings{.ca_file = "ca"}});
    listen();
    run(50ms);
    for (const auto* one : {"s1:1", "a:1"}) {
        ASSERT_FALSE(fleet_.at(one).asked.empty());
        for (const auto& to : fleet_.at(one).asked) EXPECT_EQ(to.tls->ca_file, "ca") << one;
    }
}

TEST_F(SentinelRoute, all_sentinels_that_refuse_us_are_a_denial) {
    for (const auto& one : sentinels) {
        fleet_.at(one).answer_all([](const std::string&) { return "-NOAUTH no\r\n"; });
    }
    open();
    run(100ms);
    const auto a = ask("x");
    run(1ms);
    EXPECT_EQ(a->error, errc::denied);
    ASSERT_FALSE(events_.empty());
    EXPECT_EQ(events_[0].reason.error, errc::denied);
    fleet_.asked.clear();
    run(4s);
    EXPECT_LE(fleet_.asked.size(), 3U);  // in no hurry
}

TEST_F(SentinelRoute, a_replica_is_not_believed_and_another_sentinel_is_asked) {
    fail_over();
    names_["s1:1"] = {"a", "1"};  // it was cut off, and knows nothing of it
    open();
    const auto a = ask("x");
    run(3s);
    expect_answer(*a, "b:1 x");
    for (const auto& c : fleet_.at("a:1").commands) EXPECT_NE(c, "x");
}

TEST_F(SentinelRoute, a_dead_primary_is_not_asked_for_at_the_same_sentinel_for_ever) {
    fail_over();
    names_["s1:1"] = names_["s3:1"] = {"a", "1"};
    fleet_.kill("a:1");
    open();
    const auto a = ask("x");
    run(5s);
    expect_answer(*a, "b:1 x");
}

TEST_F(SentinelRoute, a_switch_is_followed_at_once_by_both_connections) {
    open();
    listen();
    run(2s);
    EXPECT_EQ(told(), "up hearing ");
    fail_over();
    const auto start = node_.now();
    announce(watched(), "other a 1 b 1");
    run(10ms);
    EXPECT_EQ(told(), "up hearing ");
    announce(watched(), "p a 1 b 1");
    run(1ms);
    const auto a = ask("x");
    run(100ms);
    expect_answer(*a, "b:1 x");
    EXPECT_LE(a->when - start, 40ms);
    EXPECT_EQ(fleet_.connections("a:1"), 0U);
    EXPECT_EQ(fleet_.connections("b:1"), 2U);
    EXPECT_EQ(told(), "up hearing down up other deaf hearing ");
    fleet_.at("b:1").wires.back()->say(resp_texts({"message", "c", "news"}));
    run(1ms);
    EXPECT_EQ(heard_, (std::vector<std::string>{"news"}));
}

TEST_F(SentinelRoute, a_switch_that_was_missed_is_found_when_the_watch_is_back) {
    open();
    run(2s);
    fail_over();  // and a does not end its connections
    fleet_.cut(watched());
    run(2s);
    const auto a = ask("x");
    run(10ms);
    expect_answer(*a, "b:1 x");
}

TEST_F(SentinelRoute, a_switch_that_was_missed_is_found_though_one_has_not_heard_of_it) {
    open();
    run(2s);
    fail_over();
    roles_["a:1"] = "master";  // nobody has told it
    names_["s1:1"] = {"a", "1"};
    fleet_.cut(watched());
    run(10s);
    const auto a = ask("x");
    run(10ms);
    expect_answer(*a, "b:1 x");
}

TEST_F(SentinelRoute, a_sentinel_that_was_cut_off_does_not_draw_us_back) {
    open();
    run(2s);
    roles_["b:1"] = "master";  // and a, which was cut off together with s1, says the same
    names_["s2:1"] = names_["s3:1"] = {"b", "1"};
    announce(watched(), "p a 1 b 1");
    run(1s);
    EXPECT_EQ(told(), "up down up other ");
    for (int i = 0; i < 4; ++i) {
        fleet_.cut(watched());
        run(8s);
        EXPECT_EQ(told(), "up down up other ") << i;
    }
    EXPECT_EQ(fleet_.connections("a:1"), 0U);
    const auto a = ask("x");
    run(10ms);
    expect_answer(*a, "b:1 x");
}

TEST_F(SentinelRoute, two_sentinels_outweigh_one_that_was_cut_off_with_the_old_primary) {
    names_["s1:1"] = {};
    open();
    run(2s);
    roles_["b:1"] = "master";
    names_["s1:1"] = {"a", "1"};
    names_["s2:1"] = names_["s3:1"] = {"b", "1"};
    fleet_.cut(watched());  // s2 is asked first, then s1
    run(2s);
    EXPECT_EQ(told(), "up ");
    run(4s);
    EXPECT_EQ(told(), "up down up other ");
    const auto a = ask("x");
    run(10ms);
    expect_answer(*a, "b:1 x");
}

TEST_F(SentinelRoute, the_only_sentinel_that_answers_is_believed) {
    open();
    run(2s);
    fail_over();
    for (const auto* one : {"s1:1", "s3:1"}) fleet_.kill(one);
    fleet_.cut("s2:1");
    run(10s);
    EXPECT_EQ(told(), "up down up other ");
    EXPECT_EQ(fleet_.connections("b:1"), 1U);
}

TEST_F(SentinelRoute, a_channel_that_comes_up_at_another_server_than_the_commands_moves) {
    auto& before = fleet_.at("a:1");
    before.answer_all([&](const std::string& c) -> std::string {
        if (c == "ROLE") return resp_texts({"master", "0"});
        return c.starts_with("SUBSCRIBE") ? "" : "+OK\r\n";
    });
    open();
    run(2s);
    listen();
    run(100ms);
    ASSERT_EQ(before.commands.back(), "SUBSCRIBE c");
    fail_over();
    announce(watched(), "p a 1 b 1");
    run(200ms);
    EXPECT_EQ(told(), "up down up ");
    before.last().say("*3\r\n+subscribe\r\n+x\r\n:1\r\n");
    run(1s);
    EXPECT_EQ(told(), "up down up hearing deaf hearing ");
    EXPECT_EQ(fleet_.connections("a:1"), 0U);
    EXPECT_EQ(fleet_.connections("b:1"), 2U);
}

TEST_F(SentinelRoute, the_watch_moves_to_another_sentinel_when_its_own_is_gone) {
    open();
    run(1s);
    for (int i = 0; i < 2; ++i) {
        const auto before = watched();
        fleet_.kill(before);
        run(10s);
        EXPECT_NE(watched(), before);
        EXPECT_NE(watched(), "");
    }
    fail_over();
    announce(watched(), "p a 1 b 1");
    run(100ms);
    EXPECT_EQ(fleet_.connections("b:1"), 1U);
}

TEST_F(SentinelRoute, a_sentinel_that_says_nothing_more_is_left) {
    open();
    run(1s);
    const auto before = watched();
    fleet_.at(before).heard = {};
    fleet_.at(before).otherwise = door::hang;
    run(6s);
    std::size_t open_wires = 0;
    for (const auto& one : sentinels) open_wires += one == before ? 0 : fleet_.connections(one);
    EXPECT_EQ(open_wires, 1U);
}

TEST_F(SentinelRoute, a_mistrusted_server_is_left_and_the_sentinels_are_asked_again) {
    open();
    run(2s);
    fail_over();
    route_->mistrust("k", {errc::unavailable, "READONLY"});
    const auto a = ask("x");
    run(1s);
    expect_answer(*a, "b:1 x");
    EXPECT_EQ(told(), "up down up other ");
    EXPECT_EQ(events_[1].reason.why, "READONLY");
}

TEST_F(SentinelRoute, another_life_at_the_same_address_is_another_server) {
    open();
    run(2s);
    fleet_.cut("a:1");
    run(2s);
    EXPECT_EQ(told(), "up down up ");
    lives_["a:1"] = "ac";
    fleet_.cut("a:1");
    run(2s);
    EXPECT_EQ(told(), "up down up down up other ");
}

TEST_F(SentinelRoute, may_be_destroyed_in_its_callbacks) {
    for (int at = 0; at < 12; ++at) {
        events_.clear();
        int n = 0;
        redis_target target;
        target.primary = "p";
        for (const auto& one : sentinels) {
            target.nodes.push_back(stream_address::tcp(one.substr(0, 2), 1));
        }
        fleet_.kill("s1:1");
        auto* const self = &route_;
        *self = make_sentinel_route(node_, fleet_, target, [&n, at, self](const route_event&) {
            if (n++ == at) self->reset();
        });
        if (route_) listen();
        for (int i = 0; i < 6 && route_; ++i) {
            run(300ms);
            lives_["a:1"] += "f";
            fleet_.cut("a:1");
        }
        run(3s);
        route_.reset();
        run(1s);
        EXPECT_EQ(fleet_.connections("a:1") + fleet_.connections("s2:1"), 0U);
    }
}

}  // namespace
}  // namespace trinco::detail::test
