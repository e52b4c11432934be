#include "store/redis/script_runner.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_route.hpp"
#include "sim/world.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

script_call a_call(redis_script script = redis_script::probe) {
    return {script, {"key", "key:voters"}, {"one", "two"}};
}

struct outcome_of_run {
    int times = 0;
    std::error_code error;
    resp_reply reply;
    boot_clock::time_point when;
    op interest;
};

class ScriptRunner : public testing::Test {
protected:
    std::shared_ptr<outcome_of_run> run(boot_clock::duration within = 1s,
                                        script_call call = a_call()) {
        auto r = std::make_shared<outcome_of_run>();
        r->interest = runner_->run(std::move(call), node_.now() + within,
                                   [this, raw = r.get()](std::error_code error, resp_reply reply) {
                                       ++raw->times;
                                       raw->error = error;
                                       raw->reply = std::move(reply);
                                       raw->when = node_.now();
                                   });
        return r;
    }
    void pass(boot_clock::duration d) { world_.run_for(d); }
    [[nodiscard]] std::string verb() { return route_.first().at(0); }
    void expect(const outcome_of_run& r, errc error) {
        EXPECT_EQ(r.times, 1);
        EXPECT_EQ(r.error, error) << r.error.message();
    }
    void expect_well(const outcome_of_run& r) {
        EXPECT_EQ(r.times, 1);
        EXPECT_FALSE(r.error) << r.error.message();
        EXPECT_EQ(r.reply.text, "well");
    }

    sim::world world_{3};
    sim::node& node_ = world_.add_node("client");
    fake_route route_;
    std::optional<script_runner> runner_{std::in_place, node_, route_};
};

const auto well = resp_reply::of(std::string("well"));

TEST_F(ScriptRunner, a_script_goes_out_by_its_name) {
    const auto r = run();
    ASSERT_EQ(route_.open.size(), 1U);
    EXPECT_EQ(route_.open.front()->key, "key");
    const std::vector<std::string> expected{
        "EVALSHA", std::string(name_of(redis_script::probe)), "2", "key", "key:voters", "one",
        "two"};
    EXPECT_EQ(route_.first(), expected);
    EXPECT_EQ(name_of(redis_script::probe).size(), 40U);
    route_.answer(well);
    expect_well(*r);
    EXPECT_EQ(runner_->under_way(), 0U);
}

TEST_F(ScriptRunner, a_server_that_does_not_know_a_script_gets_its_text_once) {
    const auto first = run();
    const auto second = run();
    const auto third = run();
    for (int i = 0; i < 3; ++i) route_.answer_error("NOSCRIPT No matching script.");
    ASSERT_EQ(route_.open.size(), 3U);
    EXPECT_EQ(verb(), "EVAL");
    EXPECT_EQ(route_.first().at(1), text_of(redis_script::probe));
    EXPECT_EQ(route_.first().at(6), "two");
    route_.answer(well);
    EXPECT_EQ(verb(), "EVALSHA");  // it came behind the text
    route_.answer(well);
    route_.answer_error("NOSCRIPT No matching script.");  // it was another server
    EXPECT_EQ(verb(), "EVAL");
    route_.answer(well);
    for (const auto& r : {first, second, third}) expect_well(*r);
}

TEST_F(ScriptRunner, a_server_that_forgets_even_the_text_is_of_no_use) {
    const auto r = run();
    route_.answer_error("NOSCRIPT No matching script.");
    route_.answer_error("NOSCRIPT No matching script.");
    expect(*r, errc::unavailable);
}

TEST_F(ScriptRunner, the_index_goes_out_with_its_text_so_that_its_order_is_kept) {
    runner_->run_alone(a_call(redis_script::index), node_.now() + 1s);
    EXPECT_EQ(verb(), "EVAL");
    EXPECT_EQ(route_.first().at(1), text_of(redis_script::index));
}

TEST_F(ScriptRunner, a_server_that_cannot_now_is_left_once_a_pipeline_and_asked_again) {
    for (const char* word : {"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN",
                             "NOREPLICAS", "MISCONF"}) {
        SCOPED_TRACE(word);
        route_.mistrusted.clear();
        const auto a = run();
        const auto b = run();
        route_.answer_error(std::string(word) + " some text");
        route_.answer_error(std::string(word) + " some text");
        EXPECT_TRUE(route_.mistrusted.empty());  // the rest of the pipeline is read first
        pass(50ms);
        ASSERT_EQ(route_.mistrusted.size(), 1U);
        EXPECT_NE(route_.mistrusted[0].find(word), std::string::npos);
        EXPECT_EQ(runner_->refusal(), route_.mistrusted[0]);
        EXPECT_EQ(route_.only_time_helps,
                  std::string_view(word) == "NOREPLICAS" || std::string_view(word) == "MISCONF");
        ASSERT_EQ(route_.open.size(), 2U);
        route_.answer(well);
        route_.answer(well);
        expect_well(*a);
        expect_well(*b);
        EXPECT_TRUE(runner_->refusal().empty());
    }
}

TEST_F(ScriptRunner, it_asks_again_until_the_deadline_and_never_after) {
    const auto begin = node_.now();
    const auto r = run(1s);
    while (r->times == 0 && node_.now() < begin + 5s) {
        if (!route_.open.empty()) {
            EXPECT_LT(node_.now(), begin + 1s);
            route_.answer_error("LOADING");
        }
        pass(1ms);
    }
    expect(*r, errc::unavailable);
    EXPECT_EQ(r->when, begin + 1s);
    const auto tries = route_.requests;
    EXPECT_GT(tries, 3U);
    EXPECT_LT(tries, 30U);
    pass(5s);
    EXPECT_EQ(route_.requests, tries);
}

TEST_F(ScriptRunner, an_unknown_outcome_is_tried_again_while_there_is_time) {
    const auto r = run(1s);
    route_.fail(errc::unknown_outcome);
    EXPECT_EQ(r->times, 0);
    ASSERT_EQ(route_.open.size(), 1U);
    EXPECT_EQ(route_.open.front()->by, node_.now() + 1s);
    route_.answer(well);
    expect_well(*r);
}

TEST_F(ScriptRunner, what_may_have_happened_stays_unknown) {
    const auto late = run(1s);
    pass(1s);
    route_.fail(errc::unknown_outcome);
    expect(*late, errc::unknown_outcome);
    EXPECT_TRUE(route_.open.empty());

    // Whatever hinders a repetition says nothing about the first time.
    const auto hindered = run(1s);
    route_.fail(errc::unknown_outcome);
    route_.fail(errc::unavailable);
    expect(*hindered, errc::unknown_outcome);
    const auto refused = run(1s);
    route_.fail(errc::unknown_outcome);
    route_.answer_error("OOM command not allowed");
    expect(*refused, errc::unknown_outcome);
}

TEST_F(ScriptRunner, a_refusal_is_answered_at_once_and_said) {
    const std::vector<std::pair<std::string, errc>> all{{"OOM command not allowed", errc::busy},
                                                        {"BUSY script", errc::busy},
                                                        {"NOAUTH x", errc::denied},
                                                        {"WRONGPASS x", errc::denied},
                                                        {"NOPERM x", errc::denied},
                                                        {"WRONGTYPE x", errc::conflict}};
    for (const auto& [text, error] : all) {
        const auto r = run();
        route_.answer_error(text);
        expect(*r, error);
        EXPECT_TRUE(route_.open.empty());
        EXPECT_TRUE(runner_->refusal().starts_with("the server answers ")) << runner_->refusal();
    }
    pass(1s);
    EXPECT_TRUE(route_.mistrusted.empty());
}

TEST_F(ScriptRunner, a_dropped_one_is_neither_answered_nor_tried_again) {
    const auto r = run();
    r->interest.cancel();
    EXPECT_EQ(runner_->under_way(), 0U);
    route_.answer_error("LOADING");
    pass(2s);
    EXPECT_EQ(r->times, 0);
    EXPECT_EQ(route_.requests, 1U);

    const auto waiting = run();
    route_.answer_error("LOADING");
    waiting->interest.cancel();
    pass(2s);
    EXPECT_EQ(waiting->times, 0);
    EXPECT_EQ(route_.requests, 2U);
}

TEST_F(ScriptRunner, it_may_end_in_a_completion_of_its_own) {
    auto interest = runner_->run(a_call(), node_.now() + 1s,
                                 [this](std::error_code, const resp_reply&) { runner_.reset(); });
    const auto other = run();
    route_.answer(well);
    EXPECT_FALSE(runner_.has_value());
    pass(2s);
    EXPECT_EQ(other->times, 0);
    interest.cancel();
}

TEST_F(ScriptRunner, it_says_when_nothing_is_under_way_any_more) {
    int idle = 0;
    runner_->when_idle([&] { ++idle; });
    const auto a = run();
    runner_->run_alone("index", {"ZREM", "index", "x"}, node_.now() + 1s);
    route_.answer(well);
    pass(1ms);
    EXPECT_EQ(idle, 1);  // of run
    EXPECT_EQ(runner_->alone(), 1U);
    EXPECT_EQ(route_.first().at(0), "ZREM");
    route_.answer(resp_reply::of(1));
    EXPECT_EQ(idle, 1);  // later
    pass(1ms);
    EXPECT_EQ(idle, 2);
    EXPECT_EQ(runner_->alone(), 0U);
}

TEST_F(ScriptRunner, what_runs_alone_neither_counts_nor_says_why_the_server_refuses) {
    const auto index = a_call(redis_script::index);
    runner_->run_alone(index, node_.now() + 1s);
    EXPECT_EQ(runner_->under_way(), 0U);
    EXPECT_EQ(runner_->alone(), 1U);
    route_.answer_error("NOPERM no right to the index");
    EXPECT_EQ(runner_->refusal(), "");
    const auto r = run();
    route_.answer_error("OOM command not allowed");
    runner_->run_alone(index, node_.now() + 1s);
    route_.answer(resp_reply::of(1));
    EXPECT_NE(runner_->refusal().find("OOM"), std::string::npos) << runner_->refusal();
    expect(*r, errc::busy);
}

}  // namespace
}  // namespace trinco::detail::test
