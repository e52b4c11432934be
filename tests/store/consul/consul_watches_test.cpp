// Watches over addresses that say what a test lets them say: the rules of blocking queries.
#include "store/consul/consul_watches.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "consul_client_scene.hpp"

namespace trinco::detail::test {
namespace {

class ConsulWatches : public ConsulClient {
protected:
    static constexpr const char* key = "/v1/kv/k";

    [[nodiscard]] std::string asked_now() {
        const auto all = by_->waiting("/v1/kv/");
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? std::string() : all.front()->request.target;
    }
};

TEST_F(ConsulWatches, the_state_is_told_at_once_and_then_waited_for) {
    make(1);
    const auto w = watch();
    run();
    EXPECT_EQ(asked_now(), "/v1/kv/k") << "the state as it is";
    answer(key, 404, "", index(5));
    ASSERT_EQ(w->news.size(), 1U);
    EXPECT_TRUE(w->news[0].rows.empty());
    EXPECT_EQ(w->news[0].index, 5U);
    run(100ms);
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=5&wait=60s");
    answer(key, 200, row("s1"), index(7));
    ASSERT_EQ(w->news.size(), 2U);
    EXPECT_EQ(w->news[1].rows.at(0).session, "s1");
    run(100ms);
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=7&wait=60s");
}

TEST_F(ConsulWatches, a_tree_and_a_majority_are_asked_for_each_time) {
    make(1);
    const auto w = watch({"k/", true, true});
    run();
    EXPECT_EQ(asked_now(), "/v1/kv/k/?recurse&consistent");
    answer(key, 404, "", index(5));
    run(100ms);
    EXPECT_EQ(asked_now(), "/v1/kv/k/?index=5&wait=60s&recurse&consistent");
}

TEST_F(ConsulWatches, an_answer_without_a_change_is_no_news) {
    make(1);
    const auto w = watch();
    run();
    answer(key, 200, row("s1"), index(7));
    run(10s);
    answer(key, 200, row("s1"), index(7));
    run(10s);
    answer(key, 200, row("s1"), index(9));
    EXPECT_EQ(w->news.size(), 1U);
    run();
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=9&wait=60s");
    answer(key, 200, row("s1", 10), index(10));
    EXPECT_EQ(w->news.size(), 2U);
}

TEST_F(ConsulWatches, index_0_is_never_sent) {
    make(1);
    const auto w = watch();
    run();
    answer(key, 404, "", index(0));
    EXPECT_EQ(w->news.at(0).index, 1U);
    run(100ms);
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=1&wait=60s");
}

TEST_F(ConsulWatches, an_index_that_goes_backwards_begins_anew) {
    make(1);
    const auto w = watch();
    run();
    answer(key, 200, row("s1"), index(700));
    run(10s);
    answer(key, 200, row("s1"), index(3));
    run(100ms);
    EXPECT_EQ(asked_now(), "/v1/kv/k");
    answer(key, 200, row("s2", 4), index(4));
    ASSERT_EQ(w->news.size(), 2U);
    EXPECT_EQ(w->news[1].rows.at(0).session, "s2");
    run(100ms);
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=4&wait=60s");
}

TEST_F(ConsulWatches, it_asks_at_most_once_in_100_ms) {
    make(1);
    const auto w = watch();
    run(2ms);
    for (std::uint64_t n = 1; n <= 20; ++n) {
        for (const auto& one : by_->waiting(key)) by_->answer(one, 200, row("s", n), index(n));
        run(50ms);
    }
    std::size_t times = 0;
    for (const auto& one : by_->all) {
        if (one->request.target.starts_with(key)) ++times;
    }
    EXPECT_LE(times, 11U);
    EXPECT_GE(times, 9U);
}

TEST_F(ConsulWatches, a_server_may_take_a_sixteenth_longer) {
    make(1);
    const auto w = watch();
    run();
    answer(key, 200, row("s1"), index(7));
    run(100ms);
    const auto waiting = one(key);
    run(60s + 3'750ms);
    EXPECT_TRUE(waiting->waits());
    by_->answer(waiting, 200, row("s1"), index(7));
    run(200ms);
    ASSERT_NE(one(key), waiting);
    const auto second = one(key);
    run(68s + 500ms);
    EXPECT_TRUE(second->waits());
    run(1s);
    EXPECT_FALSE(second->waits()) << "but it does not wait for ever";
    run(1s);
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=7&wait=60s");
}

TEST_F(ConsulWatches, it_is_silent_while_the_server_is_away_and_goes_on_behind_what_it_told) {
    make(2);
    const auto w = watch();
    run();
    const auto first = one(key)->host;
    answer(key, 200, row("s1"), index(7));
    run(100ms);
    by_->doors[first] = door::refuse;
    one(key)->wire->reset();
    run(1s);
    EXPECT_NE(one(key)->host, first);
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=7&wait=60s");
    answer(key, 200, row("s2", 8), index(8));
    EXPECT_EQ(w->news.size(), 2U);
    EXPECT_FALSE(w->over);
}

TEST_F(ConsulWatches, it_follows_the_way_when_others_leave_an_address) {
    make(2);
    const auto w = watch();
    run();
    const auto first = one(key)->host;
    answer(key, 200, row("s1"), index(7));
    run(100ms);
    const auto change = set();
    run();
    answer("/v1/txn", 500, "No cluster leader");
    by_->doors[first] = door::refuse;
    run(1s);
    EXPECT_NE(one(key)->host, first);
    EXPECT_EQ(asked_now(), "/v1/kv/k?index=7&wait=60s");
}

TEST_F(ConsulWatches, a_way_that_changes_all_the_time_does_not_take_them_along_each_time) {
    make(2);
    const auto w = watch();
    run();
    answer(key, 200, row("s1"), index(7));
    run(2s);
    const auto before = by_->all.size();
    for (int i = 0; i < 30; ++i) {
        const auto change = set();
        run(50ms);
        for (const auto& one : by_->waiting("/v1/txn")) by_->answer(one, 500, "No cluster leader");
        run(50ms);
    }
    std::size_t times = 0;
    for (auto i = before; i < by_->all.size(); ++i) {
        if (by_->all[i]->request.target.starts_with(key)) ++times;
    }
    EXPECT_GE(times, 2U);
    EXPECT_LE(times, 5U) << "in three seconds";
}

TEST_F(ConsulWatches, trouble_is_waited_out_with_pauses) {
    make(1);
    const auto w = watch();
    run();
    for (int i = 0; i < 5; ++i) {
        answer(key, 429, "Your IP is issuing too many concurrent connections");
        run(1'001ms);
    }
    EXPECT_FALSE(w->over);
    std::size_t times = 0;
    for (const auto& one : by_->all) {
        if (one->request.target.starts_with(key)) ++times;
    }
    EXPECT_EQ(times, 6U);
    answer(key, 404, "", index(4));
    EXPECT_EQ(w->news.size(), 1U);
}

TEST_F(ConsulWatches, a_refusal_ends_it_with_a_reason) {
    make(1);
    const auto a = watch({"a", false, false});
    const auto b = watch({"b", false, false});
    run();
    answer("/v1/kv/a", 403, "Permission denied");
    answer("/v1/kv/b", 400, "Missing key name");
    EXPECT_EQ(a->over, errc::denied);
    EXPECT_EQ(b->over, errc::invalid);
    EXPECT_NE(rpc_->why(make_error_code(errc::invalid)).find("Missing key name"),
              std::string::npos);
    EXPECT_TRUE(a->news.empty());
}

TEST_F(ConsulWatches, many_take_turns) {
    make(1);
    constexpr std::size_t count = consul_watches::at_once + 10;
    std::vector<std::shared_ptr<told>> all;
    const auto name = [](std::size_t i) { return "w" + std::to_string(i) + "/"; };
    for (std::size_t i = 0; i < count; ++i) all.push_back(watch({name(i), true, false}));
    for (int turns = 0; turns < 40; ++turns) {
        run(100ms);
        for (const auto& one : by_->waiting("/v1/kv/w")) {
            if (one->request.target.find("index=") == std::string::npos) {
                by_->answer(one, 404, "", index(3));
            }
        }
        EXPECT_LE(by_->waiting("/v1/kv/w").size(), consul_watches::at_once);
    }
    for (const auto& one : all) EXPECT_EQ(one->news.size(), 1U);
    // Each is asked again and again, so each hears of its change.
    std::vector<bool> seen(count);
    for (int turns = 0; turns < 60; ++turns) {
        run(100ms);
        for (const auto& one : by_->waiting("/v1/kv/w")) {
            seen[std::stoul(one->request.target.substr(8))] = true;
        }
    }
    for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(seen[i]) << i;
    for (std::size_t i = consul_watches::at_once; i < count; ++i) all[i]->interest.cancel();
    run(2s);
    const auto before = by_->all.size();
    run(50s);
    EXPECT_EQ(by_->all.size(), before) << "with a place for each nobody gives way";
}

TEST_F(ConsulWatches, those_that_come_and_go_do_not_put_off_the_turn_of_others) {
    make(1);
    std::vector<std::shared_ptr<told>> all;
    for (std::size_t i = 0; i < consul_watches::at_once; ++i) all.push_back(watch());
    run();
    const auto waits = watch({"w", false, false});
    for (int i = 0; i < 10; ++i) {
        const auto shortly = watch({"x", false, false});
        run(300ms);
    }
    EXPECT_EQ(by_->waiting("/v1/kv/w").size(), 1U);
}

TEST_F(ConsulWatches, an_answer_that_redirects_ends_it_and_the_address_stays) {
    make(2);
    const auto w = watch();
    run();
    answer(key, 301, "");
    EXPECT_EQ(w->over, errc::invalid);
    EXPECT_EQ(rpc_->trouble(), "");
}

TEST_F(ConsulWatches, too_many_are_busy) {
    make(1);
    by_->doors["h0"] = door::hang;
    std::vector<std::shared_ptr<told>> all;
    for (std::size_t i = 0; i < consul_watches::most; ++i) all.push_back(watch());
    const auto last = watch();
    run(1ms);
    EXPECT_EQ(last->over, errc::busy);
    for (const auto& one : all) EXPECT_FALSE(one->over);
}

TEST_F(ConsulWatches, one_that_is_dropped_by_its_own_news_is_over) {
    make(1);
    op mine;
    int heard = 0;
    mine = rpc_->watch(
        {"k", false, false},
        [&](const read_reply&) {
            ++heard;
            mine.cancel();
        },
        [](std::error_code) { FAIL(); });
    run();
    answer(key, 404, "", index(4));
    run(10s);
    EXPECT_EQ(heard, 1);
    EXPECT_TRUE(by_->waiting(key).empty());
}

}  // namespace
}  // namespace trinco::detail::test
