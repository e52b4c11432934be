// The way to a primary under random schedules of faults.
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

struct row {
    int times = 0;
    bool right = true;
    bool unsent = false;
};

class random_sentinel_run {
public:
    explicit random_sentinel_run(std::uint64_t seed) : world_(seed) {
        for (const auto& one : servers_) add_server(one);
        for (const auto& one : sentinels) add_sentinel(one);
        is_primary_[primary_] = true;
        redis_target target;
        target.primary = "p";
        for (const auto& one : sentinels) {
            target.nodes.push_back(stream_address::tcp(one.substr(0, 2), 1));
        }
        route_ = make_sentinel_route(node_, fleet_, target, [](const route_event&) {});
        route_->listen("c", [](std::string_view) {});
    }

    void ask(std::size_t i) {
        const auto name = "r" + std::to_string(i);
        interests_.push_back(route_->request(
            "k", resp_command(std::vector<std::string>{name}), node_.now() + any(1ms, 900ms),
            [this, i, name](std::error_code error, const resp_reply& reply) {
                auto& one = rows[i];
                const bool is_replica = reply.error_word() == "READONLY";
                ++one.times;
                one.unsent = error == errc::unavailable;
                one.right = error ? one.unsent || error == errc::unknown_outcome
                                  : reply.text == name || is_replica;
                if (is_replica) route_->mistrust("k", {errc::unavailable, "READONLY"});
            }));
    }

    void trouble() {
        if (world_.chance(0.03)) fail_over();
        if (world_.chance(0.05)) fleet_.cut(servers_[world_.below(servers_.size())]);
        const auto& one = sentinels[world_.below(sentinels.size())];
        if (world_.chance(0.05)) fleet_.kill(one);
        if (world_.chance(0.1)) {
            fleet_.at(one).otherwise = world_.chance(0.3) ? door::hang : door::open;
        }
        world_.run_for(any(1ms, 20ms));
    }

    // The first Sentinel stays behind: nothing tells it.
    void calm() {
        for (const auto& one : sentinels) {
            fleet_.wake(one);
            if (one != sentinels.front()) named_[one] = primary_;
        }
        fleet_.wake(primary_);
        for (const auto& one : servers_) {
            if (one != primary_) fleet_.cut(one);
        }
        world_.run_for(12s);
    }

    [[nodiscard]] bool has_arrived(std::size_t i) const {
        const auto name = "r" + std::to_string(i);
        return std::any_of(done_.begin(), done_.end(), [&](const auto& of) {
            return std::find(of.second.begin(), of.second.end(), name) != of.second.end();
        });
    }
    // It answers, and is the primary.
    [[nodiscard]] bool is_well() {
        std::string last;
        const op end =
            route_->request("k", resp_command(std::vector<std::string>{"end"}), node_.now() + 3s,
                            [&](std::error_code, const resp_reply& r) { last = r.text; });
        world_.run_for(4s);
        const auto& all = done_[primary_];
        return last == "end" && std::find(all.begin(), all.end(), "end") != all.end();
    }

    std::vector<row> rows = std::vector<row>(300);

private:
    [[nodiscard]] boot_clock::duration any(boot_clock::duration a, boot_clock::duration b) {
        return world_.between(a, b);
    }
    void add_server(const std::string& at) {
        is_primary_[at] = false;
        fleet_.at(at).answer_all([this, at](const std::string& c) -> std::string {
            if (c == "ROLE") return resp_texts({is_primary_[at] ? "master" : "slave"});
            if (c.starts_with("INFO")) return resp_text("run_id:" + at.substr(0, 1) + "\r\n");
            if (c.starts_with("CLIENT")) return "+OK\r\n";
            if (c.starts_with("SUBSCRIBE")) return "*3\r\n+subscribe\r\n+x\r\n:1\r\n";
            if (!is_primary_[at]) return "-READONLY no\r\n";
            done_[at].push_back(c);
            return "+" + c + "\r\n";
        });
    }
    void add_sentinel(const std::string& at) {
        named_[at] = primary_;
        fleet_.at(at).answer_all([this, at](const std::string& c) -> std::string {
            if (c.starts_with("SENTINEL")) return resp_texts({named_[at].substr(0, 1), "1"});
            return c.starts_with("SUBSCRIBE") ? "*3\r\n+subscribe\r\n+x\r\n:1\r\n" : "+OK\r\n";
        });
    }
    // Some of the Sentinels learn it, and some of those tell it.
    void fail_over() {
        is_primary_[primary_] = false;
        if (world_.chance(0.5)) fleet_.kill(primary_);
        primary_ = servers_[world_.below(servers_.size())];
        is_primary_[primary_] = true;
        fleet_.wake(primary_);
        for (const auto& one : sentinels) {
            if (!world_.chance(0.7)) continue;
            named_[one] = primary_;
            for (const auto& wire : fleet_.at(one).wires) {
                if (wire->open && world_.chance(0.8)) {
                    wire->say(resp_texts(
                        {"message", "+switch-master", "p x 1 " + primary_.substr(0, 1) + " 1"}));
                }
            }
        }
    }

    sim::world world_;
    sim::node& node_ = world_.add_node("client");
    scripted_fleet fleet_{node_};
    const std::vector<std::string> servers_{"a:1", "b:1", "c:1"};
    std::string primary_ = "a:1";
    std::map<std::string, bool> is_primary_;
    std::map<std::string, std::string> named_;              // by each Sentinel
    std::map<std::string, std::vector<std::string>> done_;  // by each server
    std::unique_ptr<redis_route> route_;
    std::vector<op> interests_;
};

// Servers and Sentinels that die, lag, lie and come back: what is answered is true, by a server
// that called itself a primary; and when it is over the route is at the one that is.
TEST(SentinelRouteRandom, under_random_faults_each_is_answered_once_and_by_a_primary) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        random_sentinel_run one(seed);
        for (std::size_t i = 0; i < one.rows.size(); ++i) {
            one.ask(i);
            one.trouble();
        }
        one.calm();
        for (std::size_t i = 0; i < one.rows.size(); ++i) {
            const auto& row = one.rows[i];
            ASSERT_EQ(row.times, 1) << "seed " << seed << " request " << i;
            ASSERT_TRUE(row.right) << "seed " << seed << " request " << i;
            ASSERT_FALSE(row.unsent && one.has_arrived(i)) << "seed " << seed << " request " << i;
        }
        ASSERT_TRUE(one.is_well()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace trinco::detail::test
