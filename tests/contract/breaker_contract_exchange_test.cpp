// exchange and inspect of a breaker store.
#include <algorithm>

#include "tests/contract/breaker_store_suite.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

TEST_P(BreakerStoreSuite, TheFirstExchangeRegistersTheInstance) {
    member& a = add("a");
    EXPECT_TRUE(a.inspect("").value.rows.empty());
    const verdict v = a.report("payments", {});
    EXPECT_FALSE(v.error);
    EXPECT_EQ(v.fleet.state, breaker_state::closed);
    EXPECT_EQ(v.live, 1U);
    EXPECT_NE(v.own_stamp, 0U);
    const auto p = a.inspect("");
    ASSERT_EQ(p.value.rows.size(), 1U);
    ASSERT_EQ(p.value.rows[0].shares.size(), 1U);
    EXPECT_EQ(p.value.rows[0].shares[0].instance, "a-1");
    EXPECT_EQ(p.value.rows[0].shares[0].voter, "a");
}

TEST_P(BreakerStoreSuite, CountsOfAllInstancesMeetInOneWindow) {
    member& a = add("a");
    member& b = add("b");
    EXPECT_EQ(a.report("payments", calls(5, 1)).window, calls(5, 1));
    const verdict v = b.report("payments", calls(2, 1), 300ms);
    EXPECT_TRUE(v.counted);
    EXPECT_EQ(v.window, calls(7, 2));
    EXPECT_EQ(v.live, 2U);
    fixture().pass(2'300ms);
    EXPECT_EQ(a.report("payments", {}).window, counts{});
    EXPECT_EQ(a.inspect("payments").value.rows.at(0).totals, calls(7, 2));
}

TEST_P(BreakerStoreSuite, EveryCounterOfACountTravels) {
    member& a = add("a");
    counts n;
    n.success = 6;
    n.failure = 5;
    n.slow_success = 4;
    n.slow_failure = 3;
    n.ignored = 2;
    n.rejected = 1;
    EXPECT_EQ(a.report("payments", n).window, n);
    news stale = a.about("payments");
    stale.stale = n;
    EXPECT_EQ(a.tell(stale).window, n);
    EXPECT_EQ(a.inspect("").value.rows.at(0).totals, n + n);
}

TEST_P(BreakerStoreSuite, ASeqIsCountedOnce) {
    member& a = add("a");
    const news n = a.about("payments", calls(4, 0));
    EXPECT_TRUE(a.tell(n).counted);
    const verdict again = a.tell(n);
    EXPECT_FALSE(again.error);
    EXPECT_FALSE(again.counted);
    EXPECT_EQ(again.window, calls(4, 0));
    EXPECT_EQ(a.inspect("").value.rows.at(0).totals, calls(4, 0));
}

TEST_P(BreakerStoreSuite, SeqsOfTwoInstancesAndTwoBreakersAreTheirOwn) {
    member& a = add("a");
    member& b = add("b");
    a.report("x", calls(1, 0));
    EXPECT_TRUE(a.report("y", calls(1, 0)).counted);
    EXPECT_TRUE(b.report("x", calls(1, 0)).counted);
    EXPECT_EQ(b.report("x", {}).window, calls(2, 0));
}

TEST_P(BreakerStoreSuite, VerdictsComeInTheOrderOfTheNews) {
    member& a = add("a");
    std::vector<news> batch;
    for (int i = 0; i < 64; ++i) {
        batch.push_back(
            a.about("b" + std::to_string(63 - i), calls(static_cast<std::uint64_t>(i + 1), 0)));
    }
    const auto got = a.exchange(batch);
    ASSERT_FALSE(got.error) << got.error.message();
    ASSERT_EQ(got.value.size(), 64U);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(got.value[i].window, calls(i + 1, 0));
}

TEST_P(BreakerStoreSuite, AnEmptyBatchIsAnswered) {
    const auto got = add("a").exchange({});
    EXPECT_FALSE(got.error);
    EXPECT_TRUE(got.value.empty());
}

TEST_P(BreakerStoreSuite, ABreakerTwiceInOneBatchIsExchangedTwice) {
    member& a = add("a");
    const auto got =
        a.exchange({a.about("payments", calls(1, 0)), a.about("payments", calls(2, 0))});
    ASSERT_EQ(got.value.size(), 2U);
    EXPECT_EQ(got.value[1].window, calls(3, 0));
}

TEST_P(BreakerStoreSuite, OneBadElementDoesNotHinderTheOthers) {
    member& a = add("a");
    news bad_name = a.about("no spaces");
    news too_long = a.about(std::string(129, 'x'));
    news slices = a.about("slices");
    slices.slices.resize(max_slices + 1);
    news options = a.about("options");
    options.options = "failure_rate=seven";
    news era = a.about("era");
    era.mine.era = ~std::uint64_t{0};
    const auto got =
        a.exchange({bad_name, too_long, slices, options, era, a.about("payments", calls(1, 0))});
    ASSERT_FALSE(got.error) << got.error.message();
    ASSERT_EQ(got.value.size(), 6U);
    EXPECT_EQ(got.value[0].error, errc::invalid);
    EXPECT_EQ(got.value[1].error, errc::invalid);
    EXPECT_EQ(got.value[2].error, errc::busy);
    EXPECT_EQ(got.value[3].error, errc::invalid);
    EXPECT_EQ(got.value[4].error, errc::invalid);
    EXPECT_FALSE(got.value[5].error);
    EXPECT_EQ(got.value[5].window, calls(1, 0));
    EXPECT_EQ(a.inspect("").value.rows.size(), 1U);
}

TEST_P(BreakerStoreSuite, ABatchOverTheBoundIsBusyAndDoesNothing) {
    member& a = add("a");
    std::vector<news> batch;
    for (std::size_t i = 0; i <= max_news; ++i) batch.push_back(a.about("payments"));
    EXPECT_EQ(a.exchange(batch).error, errc::busy);
    EXPECT_TRUE(a.inspect("").value.rows.empty());
}

TEST_P(BreakerStoreSuite, TheFleetsBreakerOpensForBoth) {
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    EXPECT_EQ(a.known("payments").era, b.known("payments").era);
    const auto rows = a.inspect("payments").value.rows;
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].now.fleet.state, breaker_state::open);
    EXPECT_EQ(rows[0].now.fleet.reason, "failure_rate");
}

TEST_P(BreakerStoreSuite, ASendersNewerViewIsTakenOverAndOthersLearnIt) {
    member& a = add("a");
    member& b = add("b");
    a.report("payments", {});
    b.report("payments", {});
    view newer;
    newer.era = a.known("payments").era + max_era / 2;
    newer.rev = 4;
    newer.state = breaker_state::open;
    newer.remaining = 900ms;
    newer.backoff_level = 3;
    newer.reason = "failure_rate";
    newer.over = override_kind::observing;
    newer.over_remaining = 5s;
    news n = a.about("payments");
    newer.options_stamp = n.mine.options_stamp;
    n.mine = newer;
    ASSERT_FALSE(a.tell(n).error);
    const view got = b.report("payments", {}).fleet;
    EXPECT_EQ(got.era, newer.era);
    EXPECT_EQ(got.rev, newer.rev);
    EXPECT_EQ(got.state, newer.state);
    EXPECT_EQ(got.backoff_level, 3);
    EXPECT_EQ(got.over, override_kind::observing);
    expect_about(got.remaining, 900ms);
    expect_about(got.over_remaining, 5s);
}

TEST_P(BreakerStoreSuite, AVerdictIsNeverOlderThanTheSendersView) {
    member& a = add("a");
    for (std::uint64_t era : {5U, 3U, 9U, 9U, 2U}) {
        for (std::uint64_t rev : {1U, 7U, 0U}) {
            news n = a.about("payments");
            n.mine.era = era;
            n.mine.rev = rev;
            const verdict v = a.tell(n);
            ASSERT_FALSE(v.error);
            EXPECT_FALSE(n.mine.newer_than(v.fleet));
            EXPECT_GE(v.fleet.era, era);
        }
    }
    EXPECT_EQ(a.known("payments").era, 9U);
}

TEST_P(BreakerStoreSuite, OutcomesOfAnOlderEraCountInTheTotalsOnly) {
    member& a = add("a");
    a.report("payments", calls(1, 0));
    news late = a.about("payments", calls(0, 50));
    ASSERT_FALSE(a.control(order(control_verb::reset, "payments", 3)).error);
    const verdict v = a.tell(late);
    EXPECT_TRUE(v.counted);
    EXPECT_EQ(v.window, counts{});
    EXPECT_EQ(a.inspect("").value.rows.at(0).totals, calls(1, 50));
}

TEST_P(BreakerStoreSuite, OptionsTheLatestStampGovernsAndAnotherSendersGetTheText) {
    member& a = add("a");
    member& b = add("b");
    const auto first = a.report("payments", {});
    EXPECT_EQ(first.options, to_text(suite_policy()));
    EXPECT_TRUE(a.report("payments", {}).options.empty());
    policy other = suite_policy();
    other.quorum = 5;
    fixture().pass(5ms);
    news n = b.about("payments");
    n.options = to_text(other);
    const auto second = b.tell(n);
    EXPECT_GT(second.own_stamp, first.own_stamp);
    EXPECT_EQ(second.fleet.options_stamp, second.own_stamp);
    const auto learnt = a.report("payments", {});
    EXPECT_EQ(learnt.options, to_text(other));
    EXPECT_EQ(learnt.own_stamp, first.own_stamp);
    EXPECT_TRUE(a.report("payments", {}).options.empty());
    const auto shares = a.inspect("").value.rows.at(0).shares;  // the difference is reported
    ASSERT_EQ(shares.size(), 2U);
    EXPECT_NE(shares[0].options_stamp, shares[1].options_stamp);
}

TEST_P(BreakerStoreSuite, ALostRecordAsksForTheOptionsAndLearnsTheState) {
    const auto faults = fixture().can();
    if (!faults.lose_data) GTEST_SKIP() << "never loses data";
    member& a = add("a");
    member& b = add("b");
    open_it(a, b, "payments");
    const era_t era = a.known("payments").era;
    faults.lose_data();
    fixture().pass(1ms);
    verdict v = a.report("payments", {});
    EXPECT_EQ(v.fleet.era, era);
    EXPECT_EQ(v.fleet.state, breaker_state::open);
    EXPECT_TRUE(v.send_options);
    news n = a.about("payments");
    n.options = to_text(suite_policy());
    v = a.tell(n);
    EXPECT_FALSE(v.send_options);
    EXPECT_NE(v.fleet.options_stamp, 0U);
    EXPECT_EQ(b.report("payments", {}).fleet.era, era);
}

TEST_P(BreakerStoreSuite, InspectIsPagedAndSortedByName) {
    member& a = add("a");
    for (const char* name : {"b", "ab", "aa", "c", "ac"}) a.report(name, calls(1, 0));
    auto p = a.inspect("", "", 2).value;
    ASSERT_EQ(p.rows.size(), 2U);
    EXPECT_EQ(p.rows[0].breaker, "aa");
    EXPECT_EQ(p.rows[1].breaker, "ab");
    EXPECT_FALSE(p.next.empty());
    p = a.inspect("", p.next, 2).value;
    ASSERT_EQ(p.rows.size(), 2U);
    EXPECT_EQ(p.rows[0].breaker, "ac");
    p = a.inspect("", p.next, 2).value;
    ASSERT_EQ(p.rows.size(), 1U);
    EXPECT_EQ(p.rows[0].breaker, "c");
    EXPECT_TRUE(p.next.empty());
    p = a.inspect("a", "aa").value;
    ASSERT_EQ(p.rows.size(), 2U);
    EXPECT_EQ(p.rows[1].breaker, "ac");
    EXPECT_TRUE(p.next.empty());
    EXPECT_EQ(a.inspect("a*").value.rows.size(), 3U);
    EXPECT_TRUE(a.inspect("zz").value.rows.empty());
    EXPECT_EQ(a.inspect("", "", 0).error, errc::invalid);
    EXPECT_EQ(a.inspect("", "", 1'001).error, errc::invalid);
}

TEST_P(BreakerStoreSuite, WhenTheFleetIsGoneNothingIsLeft) {
    const auto faults = fixture().can();
    if (!faults.breakers_kept) GTEST_SKIP() << "its keys cannot be counted";
    member& a = add("a");
    news n = a.about("payments");
    policy brief = suite_policy();
    brief.key_ttl = 10s;
    n.options = to_text(brief);
    a.tell(n);
    a.report("other", {});
    fixture().pass(9'900ms);
    EXPECT_EQ(faults.breakers_kept(), 2U);
    a.report("other", {});
    fixture().pass(200ms);
    EXPECT_EQ(faults.breakers_kept(), 1U);
    fixture().pass(20s);
    EXPECT_EQ(faults.breakers_kept(), 0U);
    EXPECT_TRUE(a.inspect("").value.rows.empty());
}

}  // namespace
}  // namespace trinco::detail::test
