#include "store/redis/redis_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scripted_server.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using door = scripted_server::door;

std::string command(const std::vector<std::string>& words) {
    return resp_command(words);
}

// What became of one request.
struct asked {
    int times = 0;
    std::error_code error;
    resp_reply reply;
    boot_clock::time_point when;
    op interest;
};

class RedisLink : public testing::Test {
protected:
    void open(redis_link_options options = {}, redis_link::on_message heard = {}) {
        link_.emplace(
            node_, server_, stream_address::tcp("r", 1), std::move(options),
            [this](const redis_link_event& event) { events_.push_back(event); }, std::move(heard));
    }
    std::shared_ptr<asked> ask(const std::string& what, boot_clock::duration within = 10s) {
        auto a = std::make_shared<asked>();
        a->interest = link_->request(command({what}), node_.now() + within,
                                     [this, raw = a.get()](std::error_code error, resp_reply r) {
                                         ++raw->times;
                                         raw->error = error;
                                         raw->reply = std::move(r);
                                         raw->when = node_.now();
                                     });
        EXPECT_EQ(a->times, 0);  // never inside the call
        return a;
    }
    void run(boot_clock::duration d) { world_.run_for(d); }
    void expect_answer(const asked& a, const std::string& text) {
        EXPECT_EQ(a.times, 1);
        EXPECT_EQ(a.error, std::error_code());
        EXPECT_EQ(a.reply, resp_reply::of(text));
    }
    void expect_error(const asked& a, errc error) {
        EXPECT_EQ(a.times, 1);
        EXPECT_EQ(a.error, error) << a.error.message();
    }
    std::string told() const {
        std::string all;
        for (const auto& e : events_) all += e.up ? (e.again ? "again " : "up ") : "down ";
        return all;
    }

    sim::world world_{7};
    sim::node& node_ = world_.add_node("client");
    scripted_server server_{node_};
    std::vector<redis_link_event> events_;
    std::optional<redis_link> link_;
};

TEST_F(RedisLink, connects_by_itself_and_answers_in_order) {
    server_.answer_with_the_command();
    open();
    const auto early = ask("early");
    run(10ms);
    EXPECT_TRUE(link_->up());
    std::vector<std::shared_ptr<asked>> all;
    for (int i = 0; i < 64; ++i) all.push_back(ask(std::to_string(i)));
    run(10ms);
    expect_answer(*early, "early");
    for (int i = 0; i < 64; ++i)
        expect_answer(*all[static_cast<std::size_t>(i)], std::to_string(i));
    EXPECT_EQ(told(), "up ");
    EXPECT_EQ(server_.attempts.size(), 1U);
}

TEST_F(RedisLink, an_error_of_the_server_is_a_reply) {
    server_.answer_all([](const std::string&) { return "-OOM no\r\n"; });
    open();
    const auto a = ask("x");
    run(10ms);
    EXPECT_EQ(a->error, std::error_code());
    EXPECT_EQ(a->reply.error_word(), "OOM");
    EXPECT_TRUE(link_->up());
}

TEST_F(RedisLink, steps_come_before_requests_on_every_connection) {
    server_.answer_with_the_command();
    open({.steps = {{{"AUTH", "u", "p"}}, {{"SELECT", "2"}}}});
    const auto a = ask("x");
    run(10ms);
    server_.last().end();
    run(200ms);
    const auto b = ask("y");
    run(10ms);
    expect_answer(*a, "x");
    expect_answer(*b, "y");
    const std::vector<std::string> expected{"AUTH u p", "SELECT 2", "x",
                                            "AUTH u p", "SELECT 2", "y"};
    EXPECT_EQ(server_.commands, expected);
    EXPECT_EQ(told(), "up down again ");
}

TEST_F(RedisLink, a_refused_password_answers_denied_at_once_and_is_tried_again_slowly) {
    bool lets_in = false;
    server_.answer_all([&](const std::string& c) -> std::string {
        return lets_in || !c.starts_with("AUTH") ? "+OK\r\n" : "-WRONGPASS no SECRET\r\n";
    });
    open({.steps = {{{"AUTH", "SECRET"}}}});
    const auto a = ask("x");
    run(100ms);
    expect_error(*a, errc::denied);
    const auto b = ask("y");
    run(1ms);
    expect_error(*b, errc::denied);
    ASSERT_EQ(told(), "down ");
    EXPECT_EQ(events_[0].reason.error, errc::denied);
    EXPECT_EQ(events_[0].reason.why, "the server refused AUTH: WRONGPASS");
    run(4s);
    EXPECT_EQ(server_.attempts.size(), 1U);
    lets_in = true;
    run(2s);
    EXPECT_TRUE(link_->up());
    const auto c = ask("z");
    run(10ms);
    expect_answer(*c, "OK");
}

TEST_F(RedisLink, a_step_may_look_at_its_reply) {
    int roles = 0;
    server_.answer_all([&](const std::string&) -> std::string {
        return ++roles < 3 ? "*1\r\n+slave\r\n" : "*1\r\n+master\r\n";
    });
    open({.steps = {{{"ROLE"}, [](const resp_reply& r) -> std::optional<redis_refusal> {
                         if (r.elements.at(0).text == "master") return {};
                         return redis_refusal{errc::unavailable, "this is a replica"};
                     }}}});
    run(3s);
    EXPECT_TRUE(link_->up());
    EXPECT_EQ(told(), "down down up ");
}

TEST_F(RedisLink, a_deadline_before_sending_is_not_applied) {
    server_.otherwise = door::refuse;
    open();
    const auto start = node_.now();
    const auto a = ask("x", 300ms);
    run(5s);
    expect_error(*a, errc::unavailable);
    EXPECT_EQ(a->when - start, 300ms);
    server_.answer_with_the_command();
    server_.otherwise = door::open;
    run(2s);
    EXPECT_TRUE(server_.commands.empty());  // nor is it sent later
}

TEST_F(RedisLink, a_deadline_after_sending_is_unknown_and_leaves_the_connection) {
    open();
    run(10ms);
    const auto late = ask("late", 100ms);
    const auto good = ask("good", 900ms);
    run(500ms);
    expect_error(*late, errc::unknown_outcome);
    EXPECT_EQ(good->times, 0);
    server_.last().say("+late\r\n+good\r\n");
    run(10ms);
    expect_answer(*good, "good");
    EXPECT_EQ(late->times, 1);
    EXPECT_EQ(told(), "up ");
}

TEST_F(RedisLink, a_dropped_request_does_not_disturb_those_behind_it) {
    open();
    run(10ms);
    const auto a = ask("a");
    const auto b = ask("b");
    run(10ms);
    const auto c = ask("c");
    a->interest.cancel();
    c->interest.cancel();
    run(10ms);
    EXPECT_EQ(server_.last().take_commands(), (std::vector<std::string>{"a", "b"}));  // c: never
    server_.last().say("+a\r\n+b\r\n");
    run(10ms);
    EXPECT_EQ(a->times + c->times, 0);
    expect_answer(*b, "b");
}

TEST_F(RedisLink, a_stuck_server_costs_the_connection) {
    open();
    run(10ms);
    const auto start = node_.now();
    const auto a = ask("a");
    run(2s);
    expect_error(*a, errc::unknown_outcome);
    EXPECT_GE(a->when - start, 1s);
    EXPECT_LE(a->when - start, 1'200ms);
    EXPECT_EQ(told(), "up down again ");
    EXPECT_EQ(events_[1].reason.why, "the server at r:1 has not answered for 1000 ms");
}

TEST_F(RedisLink, a_slow_server_that_goes_on_answering_is_not_stuck) {
    open();
    run(10ms);
    std::vector<std::shared_ptr<asked>> all;
    for (int i = 0; i < 10; ++i) all.push_back(ask("x"));
    for (int i = 0; i < 10; ++i) {
        run(800ms);
        server_.last().say("+x\r\n");
    }
    run(1ms);
    for (const auto& a : all) expect_answer(*a, "x");
    EXPECT_EQ(told(), "up ");
}

TEST_F(RedisLink, our_own_pause_is_not_the_servers_fault) {
    server_.answer_with_the_command();
    open();
    run(10ms);
    const auto heard = server_.heard;
    server_.heard = {};
    const auto a = ask("a");
    run(1ms);
    // The reply comes while the process is stopped; on its return timers may run first.
    node_.pause_until(node_.now() + 5s);
    run(5s - 1ms);
    world_.schedule(1ms, [&] { server_.last().said.push_back({{}, "+a\r\n"}); });
    world_.schedule(3ms, [&] { server_.last().pump(); });
    run(100ms);
    expect_answer(*a, "a");
    EXPECT_EQ(told(), "up ");
}

TEST_F(RedisLink, an_interruption_leaves_what_was_sent_unknown_and_sends_the_rest_later) {
    open();
    run(10ms);
    server_.last().takes = false;  // what is written stays in our own system
    const auto a = ask("a");
    run(1ms);
    const auto b = ask("b");
    run(1ms);
    server_.answer_with_the_command();
    server_.last().reset();
    run(200ms);
    expect_error(*a, errc::unknown_outcome);
    expect_answer(*b, "b");
    EXPECT_EQ(server_.commands, (std::vector<std::string>{"b"}));
    EXPECT_EQ(told(), "up down again ");
}

TEST_F(RedisLink, the_steps_of_a_greeting_are_nobodys_requests) {
    open({.steps = {{{"AUTH", "u", "p"}}}});
    const auto a = ask("x");
    run(10ms);
    ASSERT_EQ(server_.wires.size(), 1U);
    EXPECT_FALSE(link_->up());
    EXPECT_FALSE(link_->awaits()) << "x was not sent";
}

TEST_F(RedisLink, what_was_sent_is_awaited_until_who_asked_has_heard_of_its_end) {
    open();
    run(10ms);
    bool awaited = false;
    const op asked =
        link_->request(command({"x"}), node_.now() + 10s,
                       [&](std::error_code, const resp_reply&) { awaited = link_->awaits(); });
    EXPECT_FALSE(link_->awaits());
    run(10ms);
    EXPECT_TRUE(link_->awaits());
    server_.last().end();
    run(10ms);
    EXPECT_TRUE(awaited);
    EXPECT_FALSE(link_->awaits());
}

TEST_F(RedisLink, what_is_no_reply_ends_the_connection) {
    for (const std::string bytes : {"HTTP/1.1 400 Bad Request\r\n", ":1\r\n+too much\r\n"}) {
        events_.clear();
        server_.wires.clear();
        open();
        run(10ms);
        const auto a = ask("a");
        run(1ms);
        server_.last().say(bytes);
        run(200ms);
        EXPECT_EQ(a->times, 1);
        EXPECT_EQ(told(), "up down again ");
        EXPECT_EQ(events_[1].reason.error, std::make_error_code(std::errc::protocol_error));
    }
}

TEST_F(RedisLink, comes_back_with_full_jitter_up_to_a_second) {
    server_.otherwise = door::refuse;
    open();
    run(60s);
    const auto& at = server_.attempts;
    ASSERT_GT(at.size(), 60U);
    ASSERT_LT(at.size(), 400U);
    boot_clock::duration longest{};
    boot_clock::duration shortest = 1h;
    for (std::size_t i = 20; i < at.size(); ++i) {
        longest = std::max(longest, at[i] - at[i - 1]);
        shortest = std::min(shortest, at[i] - at[i - 1]);
    }
    EXPECT_LE(longest, 1'002ms);
    EXPECT_GT(longest, 900ms);
    EXPECT_LT(shortest, 100ms);
}

TEST_F(RedisLink, a_new_request_connects_at_once_but_many_do_not_hammer) {
    server_.otherwise = door::refuse;
    open({.retry = {1h, 1h}});
    run(1s);
    ASSERT_EQ(server_.attempts.size(), 1U);
    server_.answer_with_the_command();
    server_.otherwise = door::open;
    const auto start = node_.now();
    const auto a = ask("a");
    run(10ms);
    expect_answer(*a, "a");
    EXPECT_LE(a->when - start, 2ms);

    server_.otherwise = door::refuse;
    server_.last().end();
    run(1ms);
    server_.attempts.clear();
    for (int i = 0; i < 1'000; ++i) {
        (void)ask("x");
        run(1ms);
    }
    EXPECT_LE(server_.attempts.size(), 52U);
    EXPECT_GE(server_.attempts.size(), 40U);
}

TEST_F(RedisLink, a_server_that_never_lets_in_is_given_up_in_time) {
    server_.doors = {door::hang, door::open, door::open};
    open({.steps = {{{"HELLO"}}}});
    run(1'500ms);
    ASSERT_GE(events_.size(), 1U);
    EXPECT_EQ(events_[0].reason.why, "the server at r:1 did not let us in within 1000 ms");
    run(5s);  // connected, and no answer to the step
    EXPECT_GE(server_.wires.size(), 2U);
    EXPECT_FALSE(link_->up());
}

TEST_F(RedisLink, over_a_bound_it_is_busy) {
    server_.otherwise = door::refuse;
    open({.requests_most = 3, .bytes_most = 1'000});
    const auto a = ask("a", 100ms);
    const auto b = ask("b", 100ms);
    const auto big = ask(std::string(1'000, 'x'));
    const auto c = ask("c", 100ms);
    const auto d = ask("d", 100ms);
    run(1ms);
    expect_error(*big, errc::busy);
    expect_error(*d, errc::busy);
    EXPECT_EQ(a->times + b->times + c->times, 0);
    run(200ms);
    const auto e = ask("e", 100ms);  // the others are over
    run(200ms);
    expect_error(*e, errc::unavailable);
}

TEST_F(RedisLink, reconnects_elsewhere_when_told_to) {
    open();
    run(10ms);
    const auto a = ask("a");
    run(1ms);
    link_->reconnect({errc::unavailable, "READONLY"}, stream_address::tcp("other", 2));
    EXPECT_EQ(a->times, 0);  // never inside a call
    server_.answer_with_the_command();
    run(200ms);
    expect_error(*a, errc::unknown_outcome);
    EXPECT_EQ(server_.asked.back(), stream_address::tcp("other", 2));
    EXPECT_EQ(told(), "up down again ");
}

TEST_F(RedisLink, messages_go_where_they_are_heard_and_disturb_no_reply) {
    std::vector<resp_reply> heard;
    open({}, [&](resp_reply r) { heard.push_back(std::move(r)); });
    run(10ms);
    const auto a = ask("SUBSCRIBE");
    run(1ms);
    const std::string message = "*3\r\n+message\r\n+c\r\n+m\r\n";
    server_.last().say(message + "*3\r\n+subscribe\r\n+c\r\n:1\r\n" + message);
    run(1ms);
    EXPECT_EQ(heard.size(), 2U);
    EXPECT_EQ(a->times, 1);
    EXPECT_EQ(a->reply.elements.at(0), resp_reply::of("subscribe"));
}

TEST_F(RedisLink, a_silent_peer_is_asked_whether_it_is_there) {
    server_.answer_with_the_command();
    open({.ping_after = 500ms});
    run(3s);
    EXPECT_GE(server_.commands.size(), 4U);
    EXPECT_LE(server_.commands.size(), 6U);
    EXPECT_EQ(told(), "up ");
    server_.heard = {};  // a half-open connection: nothing ever comes
    run(2s);
    EXPECT_EQ(told().substr(0, 8), "up down ");
}

TEST_F(RedisLink, may_be_destroyed_in_its_callbacks_and_then_nothing_runs) {
    server_.answer_with_the_command();
    open();
    run(10ms);
    int ran = 0;
    const auto by = node_.now() + 1s;
    const auto first = link_->request(command({"a"}), by, [&](std::error_code, const resp_reply&) {
        ++ran;
        link_.reset();
    });
    const auto second =
        link_->request(command({"b"}), by, [&](std::error_code, const resp_reply&) { ++ran; });
    run(5s);
    EXPECT_EQ(ran, 1);
    EXPECT_FALSE(server_.last().open);
}

// Random faults: every request is answered exactly once, with its own reply or a true error.
TEST_F(RedisLink, under_random_faults_each_is_answered_once_and_rightly) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        sim::world world(seed);
        auto& node = world.add_node("client");
        scripted_server server(node);
        std::map<scripted_wire*, std::string> owed;  // replies that are late
        bool speaks = true;
        server.heard = [&](scripted_wire& wire) {
            auto& owes = owed[&wire];
            for (auto& c : wire.take_commands()) {
                owes += "+" + c + "\r\n";
                server.commands.push_back(std::move(c));
            }
            if (speaks && !owes.empty()) wire.say(std::exchange(owes, {}));
        };
        redis_link link(node, server, stream_address::tcp("r", 1), {.steps = {{{"HELLO"}}}});
        struct row {
            int times = 0;
            bool right = true;
            bool unsent = false;
        };
        std::vector<row> rows(400);
        std::vector<op> interests;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto name = "request" + std::to_string(i);
            interests.push_back(
                link.request(command({name}), node.now() + world.between(1ms, 800ms),
                             [&rows, i, name](std::error_code error, const resp_reply& reply) {
                                 ++rows[i].times;
                                 rows[i].unsent = error == errc::unavailable;
                                 rows[i].right = error ? error == errc::unavailable ||
                                                             error == errc::unknown_outcome
                                                       : reply == resp_reply::of(name);
                             }));
            if (world.chance(0.05) && !server.wires.empty() && server.last().open) {
                world.chance(0.5) ? server.last().reset() : server.last().end();
            }
            if (world.chance(0.05)) {
                speaks = false;
            } else if (world.chance(0.3)) {
                speaks = true;
            }
            server.otherwise = world.chance(0.3) ? door::refuse : door::open;
            world.run_for(world.between(1ms, 20ms));
        }
        world.run_for(10s);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            ASSERT_EQ(rows[i].times, 1) << "seed " << seed << " request " << i;
            ASSERT_TRUE(rows[i].right) << "seed " << seed << " request " << i;
            const auto name = "request" + std::to_string(i);
            const auto arrived = std::find(server.commands.begin(), server.commands.end(), name);
            ASSERT_FALSE(rows[i].unsent && arrived != server.commands.end()) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace trinco::detail::test
