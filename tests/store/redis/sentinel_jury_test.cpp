// A primary that was away and is back: whether it is followed again.
#include "store/redis/sentinel_jury.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scripted_fleet.hpp"
#include "store/redis/sentinel_route.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using door = scripted_server::door;

const std::vector<std::string> sentinels{"s1:1", "s2:1", "s3:1"};
const auto here = stream_address::tcp("a", 1);
const auto there = stream_address::tcp("b", 1);

resp_reply texts(const std::vector<std::string>& all) {
    std::vector<resp_reply> elements;
    for (const auto& one : all) elements.push_back(resp_reply::of(one));
    return resp_reply::of(std::move(elements));
}

TEST(SentinelJury, understands_what_a_sentinel_says_of_a_primary) {
    const auto word = word_in(texts({"name", "p", "ip", "10.0.0.1", "port", "6379", "flags",
                                     "s_down,o_down,master", "config-epoch", "12", "quorum"}));
    ASSERT_TRUE(word);
    EXPECT_EQ(word->primary, stream_address::tcp("10.0.0.1", 6379));
    EXPECT_EQ(word->epoch, 12U);
    EXPECT_TRUE(word->unreachable);
    EXPECT_TRUE(word->replacing);
    const auto calm = word_in(texts({"port", "1", "flags", "master,s_downx", "ip", "h"}));
    ASSERT_TRUE(calm);
    EXPECT_EQ(calm->epoch, 0U);
    EXPECT_FALSE(calm->unreachable || calm->replacing);
    EXPECT_TRUE(word_in(texts({"ip", "h", "port", "1", "flags", "master,failover_in_progress"}))
                    ->replacing);
    EXPECT_FALSE(word_in(texts({"ip", "h", "port", "0"})));
    EXPECT_FALSE(word_in(texts({})));
    EXPECT_FALSE(word_in(resp_reply::error_of("ERR No such master with that name")));
    EXPECT_FALSE(word_in(resp_reply{}));
}

TEST(SentinelJury, follows_it_only_when_nobody_knows_better) {
    const auto may = [](const std::vector<sentinel_word>& words) {
        return !judge_return(words, here).refusal;
    };
    EXPECT_TRUE(may({}));
    EXPECT_TRUE(may({{here, 3}, {here, 3}, {here, 3}}));
    EXPECT_TRUE(may({{here, 3, true}, {here, 3}, {here, 3}})) << "one is cut off";
    EXPECT_TRUE(may({{here, 3}, {there, 2}})) << "one that has not heard of it yet";
    EXPECT_FALSE(may({{here, 3, true}, {here, 3, true}, {here, 3}}));
    EXPECT_FALSE(may({{here, 3, true}})) << "nobody else speaks";
    EXPECT_FALSE(may({{here, 3}, {here, 3}, {here, 3, false, true}}));
    EXPECT_TRUE(may({{here, 3}, {there, 2, true, true}})) << "that is said of the one before";
    EXPECT_TRUE(may({{here, 3, true}, {here, 3}, {there, 2, true}}));
    EXPECT_FALSE(may({{here, 3, true}, {there, 2}})) << "nobody else speaks of it";
    const auto moved = judge_return({{here, 3}, {there, 4}, {here, 3}}, here);
    EXPECT_TRUE(moved.refusal);
    EXPECT_EQ(moved.elsewhere, there);
}

// A primary a, its replica b, and Sentinels whose words the test writes.
struct return_scene {
    explicit return_scene(std::uint64_t seed) : world_(seed) {
        for (const auto& one : sentinels) {
            says_[one] = {"a", "master", "3"};
            fleet_.at(one).answer_all([this, one](const std::string& c) -> std::string {
                const auto& s = says_[one];
                if (c.starts_with("SENTINEL GET")) return resp_texts({s.at, "1"});
                if (c.starts_with("SENTINEL MASTER")) {
                    ++juries_;
                    return resp_texts({"name", "p", "ip", s.at, "port", "1", "flags", s.flags,
                                       "config-epoch", s.epoch});
                }
                if (c.starts_with("SUBSCRIBE")) return "*3\r\n+subscribe\r\n+x\r\n:1\r\n";
                return "+OK\r\n";
            });
        }
        for (const auto* one : {"a:1", "b:1"}) {
            fleet_.at(one).answer_all([this, at = std::string(one)](const std::string& c) {
                if (c == "ROLE") return resp_texts({"master", "0"});
                if (c.starts_with("INFO")) {
                    return info_ ? resp_text("run_id:" + lives_[at] + "\r\n")
                                 : std::string("-NOPERM no\r\n");
                }
                if (c.starts_with("CLIENT")) return std::string("+OK\r\n");
                served_.push_back(at);
                return "+" + at + "\r\n";
            });
        }
        redis_target target;
        target.kind = redis_target::kind_t::sentinel;
        target.primary = "p";
        for (const auto& one : sentinels) {
            target.nodes.push_back(stream_address::tcp(one.substr(0, 2), 1));
        }
        route_ = make_sentinel_route(node_, fleet_, std::move(target), [this](const auto& e) {
            if (e.kind == route_event::kind_t::down) why_ = e.reason.why;
        });
        world_.run_for(2s);
        EXPECT_TRUE(route_->up("k"));
        EXPECT_EQ(juries_, 0) << "who comes for the first time asks one Sentinel";
    }
    // a is killed, and back with nothing at once.
    void restart() {
        fleet_.cut("a:1");
        lives_["a:1"] += "f";
    }
    void request() {
        interest_ = route_->request("k", resp_command(std::vector<std::string>{"x"}),
                                    node_.now() + 30s, [](std::error_code, const resp_reply&) {});
    }

    struct saying {
        std::string at;
        std::string flags;
        std::string epoch;
    };
    sim::world world_;
    sim::node& node_ = world_.add_node("client");
    scripted_fleet fleet_{node_};
    std::map<std::string, saying> says_;
    std::map<std::string, std::string> lives_{{"a:1", "a"}, {"b:1", "b"}};
    bool info_ = true;
    int juries_ = 0;
    std::vector<std::string> served_;
    std::string why_;
    std::unique_ptr<redis_route> route_;
    op interest_;
};

class SentinelReturn : public testing::Test, protected return_scene {
protected:
    SentinelReturn() : return_scene(7) {}
};

TEST_F(SentinelReturn, is_followed_where_nobody_has_missed_it) {
    restart();
    request();
    world_.run_for(200ms);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
    EXPECT_EQ(juries_, 3);
}

TEST_F(SentinelReturn, of_the_connection_only_asks_nobody) {
    fleet_.cut("a:1");
    request();
    world_.run_for(200ms);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
    EXPECT_EQ(juries_, 0) << "it is the same server";
}

TEST_F(SentinelReturn, is_not_followed_while_it_is_being_replaced) {
    says_["s3:1"].flags = "master,failover_in_progress";
    restart();
    request();
    world_.run_for(3s);
    EXPECT_TRUE(served_.empty());
    EXPECT_EQ(why_, "the primary was away, and the Sentinels are replacing it");
    for (const auto& one : sentinels) says_[one] = {"b", "master", "4"};
    world_.run_for(1500ms);
    EXPECT_EQ(served_, std::vector<std::string>{"b:1"});
}

// The one that is asked first has not heard yet that b is the primary.
TEST_F(SentinelReturn, is_not_followed_where_one_knows_the_next_primary) {
    says_["s3:1"] = {"b", "master", "4"};
    restart();
    request();
    world_.run_for(500ms);
    EXPECT_EQ(served_, std::vector<std::string>{"b:1"});
}

TEST_F(SentinelReturn, is_not_followed_before_the_sentinels_reach_it) {
    says_["s1:1"].flags = says_["s2:1"].flags = "s_down,master";
    restart();
    request();
    world_.run_for(2s);
    EXPECT_TRUE(served_.empty());
    says_["s1:1"].flags = "master";
    world_.run_for(1500ms);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
}

TEST_F(SentinelReturn, a_silent_sentinel_costs_a_moment) {
    fleet_.at("s2:1").otherwise = door::hang;
    const auto start = node_.now();
    restart();
    request();
    while (served_.empty() && node_.now() < start + 3s) world_.run_for(10ms);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
    EXPECT_LE(node_.now() - start, 800ms);
}

TEST_F(SentinelReturn, whose_run_id_may_not_be_asked_for_may_be_another) {
    info_ = false;
    says_["s3:1"].flags = "master,o_down";
    fleet_.cut("a:1");
    request();
    world_.run_for(2s);
    EXPECT_TRUE(served_.empty());
    says_["s3:1"].flags = "master";
    world_.run_for(1500ms);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
}

// A fail-over that does not end is no reason to stay away for ever.
TEST_F(SentinelReturn, is_followed_in_the_end) {
    says_["s3:1"].flags = "master,failover_in_progress";
    const auto start = node_.now();
    restart();
    request();
    world_.run_for(9s);
    EXPECT_TRUE(served_.empty());
    while (served_.empty() && node_.now() < start + 15s) world_.run_for(100ms);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
}

// The doubts of the first restart are no longer those of the second.
TEST_F(SentinelReturn, of_a_second_restart_is_doubted_anew) {
    says_["s3:1"].flags = "master,failover_in_progress";
    restart();
    request();
    world_.run_for(9s);
    restart();
    world_.run_for(8s);
    EXPECT_TRUE(served_.empty());
    world_.run_for(6s);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
}

// One Sentinel leads the fail-over, the others learn of it within two seconds; a is back at some
// moment of it. Nothing that is asked for reaches a.
TEST(SentinelReturnRandom, nobody_follows_what_is_being_replaced) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        return_scene s(seed);
        auto& world = s.world_;
        s.fleet_.kill("a:1");
        for (const auto& one : sentinels) s.says_[one].flags = "s_down,o_down,master";
        world.run_for(world.between(100ms, 1500ms));
        const auto leader = sentinels[world.below(3)];
        s.says_[leader].flags = "master,failover_in_progress";
        const auto done = world.now() + world.between(200ms, 1s);
        for (const auto& one : sentinels) {
            world.schedule((one == leader ? done : done + world.between(0ms, 2s)) - world.now(),
                           [&s, one] {
                               s.says_[one] = {"b", "master", "4"};
                           });
        }
        world.schedule(world.between(0ms, 1500ms), [&s] {
            s.lives_["a:1"] += "f";
            s.fleet_.wake("a:1");
            for (const auto& one : sentinels) {  // those that ping it reach it again
                auto& flags = s.says_[one].flags;
                if (flags == "s_down,o_down,master") flags = "master";
            }
        });
        s.request();
        world.run_for(6s);
        ASSERT_FALSE(s.served_.empty()) << "seed " << seed;
        ASSERT_EQ(std::count(s.served_.begin(), s.served_.end(), "a:1"), 0) << "seed " << seed;
    }
}

TEST_F(SentinelReturn, sentinels_that_may_not_tell_hinder_nobody) {
    for (const auto& one : sentinels) {
        fleet_.at(one).answer_all([](const std::string& c) -> std::string {
            if (c.starts_with("SENTINEL GET")) return resp_texts({"a", "1"});
            return c.starts_with("SENTINEL") ? "-NOPERM no\r\n" : "+OK\r\n";
        });
    }
    restart();
    request();
    world_.run_for(300ms);
    EXPECT_EQ(served_, std::vector<std::string>{"a:1"});
}

}  // namespace
}  // namespace trinco::detail::test
