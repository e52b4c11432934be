// The rules of core/loop.hpp, for each call of a breaker store.
#include "tests/contract/breaker_store_suite.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

// Every kind of call, with a completion that only says that it ran.
struct a_call {
    const char* name;
    std::function<op(member&, deadline, std::function<void(std::error_code)>)> start;
};

std::vector<a_call> every_call() {
    return {
        {"exchange",
         [](member& m, deadline by, std::function<void(std::error_code)> done) {
             const std::vector<news> batch{m.about("payments", calls(1, 0))};
             return m.store().exchange(
                 batch, by, [done](std::error_code ec, std::vector<verdict>) { done(ec); });
         }},
        {"look",
         [](member& m, deadline by, std::function<void(std::error_code)> done) {
             return m.store().look(m.looking("payments"), by,
                                   [done](std::error_code ec, const glance&) { done(ec); });
         }},
        {"probe",
         [](member& m, deadline by, std::function<void(std::error_code)> done) {
             return m.store().probe(m.asking("payments", 77), by,
                                    [done](std::error_code ec, probe_reply) { done(ec); });
         }},
        {"control",
         [](member& m, deadline by, std::function<void(std::error_code)> done) {
             control_request c;
             c.id = 9;
             c.breaker = "payments";
             c.verb = control_verb::resume;
             return m.store().control(c, by, [done](std::error_code ec, view) { done(ec); });
         }},
        {"inspect",
         [](member& m, deadline by, std::function<void(std::error_code)> done) {
             return m.store().inspect("", "", 10, by,
                                      [done](std::error_code ec, page) { done(ec); });
         }},
        {"stop",
         [](member& m, deadline by, std::function<void(std::error_code)> done) {
             return m.store().stop(by, [done](std::error_code ec, int) { done(ec); });
         }},
    };
}

TEST_P(BreakerStoreSuite, CompletesLaterAndOnce) {
    const auto all = every_call();
    std::vector<int> runs(all.size());
    std::vector<op> interests;
    for (std::size_t i = 0; i < all.size(); ++i) {
        SCOPED_TRACE(all[i].name);
        interests.push_back(
            all[i].start(add("a"), soon(), [&runs, i](std::error_code) { ++runs[i]; }));
        EXPECT_EQ(runs[i], 0) << "inside the call";
        EXPECT_TRUE(fixture().run_until([&] { return runs[i] > 0; }, 2s));
    }
    fixture().pass(1'200ms);  // past all deadlines, too
    EXPECT_EQ(runs, std::vector<int>(all.size(), 1));
}

TEST_P(BreakerStoreSuite, DroppingTheOpMeansThatTheCompletionDoesNotRun) {
    int runs = 0;
    for (const a_call& c : every_call()) {
        SCOPED_TRACE(c.name);
        member& m = add("a");
        {
            const op dropped = c.start(m, soon(), [&](std::error_code) { ++runs; });
        }
        op assigned = c.start(m, soon(), [&](std::error_code) { ++runs; });
        assigned = op();
        fixture().pass(20ms);
        EXPECT_EQ(runs, 0);
    }
    fixture().pass(1'200ms);
    EXPECT_EQ(runs, 0);
}

TEST_P(BreakerStoreSuite, AnOpMayBeDestroyedInItsOwnCompletion) {
    for (const a_call& c : every_call()) {
        SCOPED_TRACE(c.name);
        member& m = add("a");
        op interest;
        bool ran = false;
        interest = c.start(m, soon(), [&](std::error_code) {
            interest = op();
            ran = true;
        });
        EXPECT_TRUE(fixture().run_until([&] { return ran; }, 2s));
    }
}

TEST_P(BreakerStoreSuite, AnOpMayOutliveTheStore) {
    for (const a_call& c : every_call()) {
        SCOPED_TRACE(c.name);
        int runs = 0;
        op interest;
        {
            member m(fixture(), "x-1", "x");
            interest = c.start(m, soon(), [&](std::error_code) { ++runs; });
        }
        fixture().pass(50ms);
        EXPECT_EQ(runs, 0) << "the store is gone, and with it whoever waits for it";
        interest = op();
    }
}

TEST_P(BreakerStoreSuite, ACallWhoseDeadlineHasPassedCompletesAtOnce) {
    for (const a_call& c : every_call()) {
        if (std::string_view(c.name) == "stop") continue;
        SCOPED_TRACE(c.name);
        member& m = add("a");
        std::optional<std::error_code> got;
        const op interest = c.start(m, fixture().on().now(), [&](std::error_code ec) { got = ec; });
        EXPECT_TRUE(fixture().run_until([&] { return got.has_value(); }, 50ms));
        EXPECT_NE(got.value_or(std::error_code{}), std::error_code{});
    }
}

TEST_P(BreakerStoreSuite, ACallCompletesByItsDeadlineWhenNoAnswerComes) {
    const auto faults = fixture().can();
    if (!faults.drop_replies || !faults.drop_requests) GTEST_SKIP() << "never loses a message";
    for (const auto* drop : {&faults.drop_replies, &faults.drop_requests}) {
        for (const a_call& c : every_call()) {
            if (std::string_view(c.name) == "stop") continue;
            SCOPED_TRACE(c.name);
            member& m = add("a");
            (*drop)(true);
            std::optional<std::error_code> got;
            const op interest =
                c.start(m, fixture().on().now() + 100ms, [&](std::error_code ec) { got = ec; });
            fixture().pass(100ms + fixture().slack());
            (*drop)(false);
            ASSERT_TRUE(got.has_value());
            const error_kind kind = kind_of(*got);
            EXPECT_TRUE(kind == error_kind::unknown || kind == error_kind::not_applied)
                << got->message();
            EXPECT_TRUE(drop != &faults.drop_replies || kind == error_kind::unknown);
        }
    }
}

TEST_P(BreakerStoreSuite, AnExchangeRepeatedAfterALostReplyCountsOnce) {
    const auto faults = fixture().can();
    if (!faults.drop_replies) GTEST_SKIP() << "never loses a message";
    member& m = add("a");
    m.report("payments", {});
    const news n = m.about("payments", calls(3, 0));
    faults.drop_replies(true);
    EXPECT_EQ(kind_of(m.tell(n).error), error_kind::unknown);
    faults.drop_replies(false);
    verdict v = m.tell(n);
    if (kind_of(v.error) == error_kind::not_applied) v = m.tell(n);  // it had to reconnect
    ASSERT_FALSE(v.error) << v.error.message();
    EXPECT_EQ(v.window, calls(3, 0));
}

TEST_P(BreakerStoreSuite, StopCompletesAndEndsTheSubscription) {
    member& m = add("a");
    member& other = add("b");
    other.report("payments", {});
    m.subscribe();
    bool stopped = false;
    const op interest = m.store().stop(soon(), [&](std::error_code ec, int) {
        EXPECT_FALSE(ec);
        stopped = true;
    });
    EXPECT_TRUE(fixture().run_until([&] { return stopped; }, 2s));
    const auto before = m.heard.size();
    EXPECT_FALSE(other.control(order(control_verb::trip, "payments", 1)).error);
    fixture().pass(100ms);
    EXPECT_EQ(m.heard.size(), before);
}

}  // namespace
}  // namespace trinco::detail::test
