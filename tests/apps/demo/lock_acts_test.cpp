// What acts (c) and (d) claim of what their processes have told: each claim can fail.
#include "apps/trinco/demo/invoice_story.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "apps/trinco/demo/leader_story.hpp"
#include "apps/trinco/demo/provider.hpp"
#include "apps/trinco/demo/shared_store.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

// All others hold; "": all hold.
void expect_only(const act_result& what, std::string_view broken) {
    bool found = broken.empty();
    for (const auto& one : what.claims) {
        EXPECT_EQ(one.held, one.name != broken) << one.name;
        EXPECT_LE(one.sentence.size(), 72U) << one.sentence;
        found = found || one.name == broken;
    }
    EXPECT_TRUE(found) << broken;
}

invoice_outcome all_invoices() {
    invoice_outcome all;
    all.by_lock = {2, "a", "", "", "b", "receipt-b", 40ms, true};
    all.by_once = {1, "c", "c", "done", "", "receipt-c", 2'100ms, true};
    all.not_charged = {1, "", "d", "not_done", "d", "receipt-d", 50ms, true};
    all.asked_later = "receipt-c";
    all.charges_later = 1;
    return all;
}

TEST(InvoiceStory, ClaimsWhatWasSeenWithItsFigures) {
    const auto what = judge_invoices(all_invoices());
    expect_only(what, "");
    EXPECT_EQ(what.claims.at(1).sentence,
              "once, which asks the provider: charged once, recorded 2100 ms later");
    EXPECT_NE(what.figures.text().find(R"("once":{"charges":1)"), std::string::npos);
    EXPECT_NE(what.figures.text().find(R"("same_run":true,"retry_ms":2100)"), std::string::npos);
}

TEST(InvoiceStory, ALockThatChargedOnceShowsNothing) {
    auto seen = all_invoices();
    seen.by_lock.charges = 1;
    expect_only(judge_invoices(seen), "lock_alone_charged_twice");
}

TEST(InvoiceStory, ASecondChargeOrAnotherRunBreaksTheClaimOfOnce) {
    for (const auto& spoil :
         {+[](paid_invoice& one) { one.charges = 2; }, +[](paid_invoice& one) { one.charges = 0; },
          +[](paid_invoice& one) { one.heard = "not_done"; },
          +[](paid_invoice& one) { one.asked = "z"; },
          +[](paid_invoice& one) { one.second_run = "c"; },
          +[](paid_invoice& one) { one.finished = false; }}) {
        auto seen = all_invoices();
        spoil(seen.by_once);
        expect_only(judge_invoices(seen), "once_charged_once");
    }
}

TEST(InvoiceStory, WhatWasNotChargedRunsAgainUnderItsIdAndOnlyOnce) {
    for (const auto& spoil : {+[](paid_invoice& one) { one.charges = 0; },
                              +[](paid_invoice& one) { one.second_run = "z"; },
                              +[](paid_invoice& one) { one.heard = ""; }}) {
        auto seen = all_invoices();
        spoil(seen.not_charged);
        expect_only(judge_invoices(seen), "run_again_under_its_id");
    }
}

TEST(InvoiceStory, AskingAgainGivesTheReceiptAndChargesNothing) {
    auto seen = all_invoices();
    seen.charges_later = 2;
    expect_only(judge_invoices(seen), "told_what_was_recorded");
    seen = all_invoices();
    seen.asked_later = "receipt-z";
    expect_only(judge_invoices(seen), "told_what_was_recorded");
}

TEST(Provider, ChargesWhateverItIsAskedToAndKnowsItsIds) {
    const auto folder = std::filesystem::path(testing::TempDir()) / "trinco-provider";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const provider it(folder);
    EXPECT_EQ(it.charges("42"), 0U);
    const auto receipt = it.charge("0123456789", "42");
    EXPECT_EQ(receipt, "receipt-01234567");
    EXPECT_TRUE(it.charge("0123456789", "42").has_value());
    EXPECT_TRUE(it.charge("9", "4").has_value());
    EXPECT_EQ(it.charges("42"), 2U);
    EXPECT_EQ(it.receipt("0123456789"), receipt);
    EXPECT_FALSE(it.receipt("01234567").has_value());
    EXPECT_FALSE(provider(folder / "none").charge("1", "2").has_value());
    std::filesystem::remove_all(folder);
}

// ---- the lost leader ----------------------------------------------------------------------------

leader_outcome all_of_the_leader() {
    leader_outcome all;
    all.before = {"service-1", "service-2", "service-3", "service-4"};
    all.after = all.before;
    all.granted = all.before;
    all.tokens = {5, 9, 10, 12};
    all.killed = true;
    all.holder_kept = true;
    all.no_grant = 1'480ms;
    all.grants = 200;
    return all;
}

TEST(LeaderStory, ClaimsWhatWasSeenWithItsFigures) {
    const auto what = judge_leader(all_of_the_leader());
    expect_only(what, "");
    EXPECT_EQ(what.claims.at(2).sentence,
              "no lock could be granted for 1480 ms, then two nodes went on");
    EXPECT_NE(what.figures.text().find(R"("tokens":[5,9,10,12],"no_grant_ms":1480)"),
              std::string::npos)
        << what.figures.text();
}

TEST(LeaderStory, AnotherQueueAfterwardsOrTwoHoldersBreakTheClaimOfTheHolder) {
    for (const auto& spoil : {+[](leader_outcome& all) { std::swap(all.after[0], all.after[1]); },
                              +[](leader_outcome& all) { all.holder_kept = false; },
                              +[](leader_outcome& all) { all.early = true; },
                              +[](leader_outcome& all) { all.after.clear(); }}) {
        auto seen = all_of_the_leader();
        spoil(seen);
        expect_only(judge_leader(seen), "same_holder");
    }
}

TEST(LeaderStory, AnotherOrderOrATokenThatDoesNotGrowBreaksTheClaimOfTheOrder) {
    for (const auto& spoil :
         {+[](leader_outcome& all) { std::swap(all.granted[1], all.granted[2]); },
          +[](leader_outcome& all) { all.tokens[2] = 9; },
          +[](leader_outcome& all) { all.granted.pop_back(); }}) {
        auto seen = all_of_the_leader();
        spoil(seen);
        expect_only(judge_leader(seen), "same_order");
    }
}

TEST(LeaderStory, AStoreThatNeverGrantsAgainBreaksTheClaimOfGrants) {
    auto seen = all_of_the_leader();
    seen.no_grant.reset();
    expect_only(judge_leader(seen), "grants_again");
}

// ---- a place of its own in an etcd of the user --------------------------------------------------

TEST(OwnPrefix, StandsBehindThatOfTheUrl) {
    EXPECT_EQ(with_prefix("etcd://h", "own"), "etcd://h?prefix=own");
    EXPECT_EQ(with_prefix("etcds://h?ca=/x", "own"), "etcds://h?ca=/x&prefix=own");
    EXPECT_EQ(with_prefix("etcd://h?prefix=a", "own"), "etcd://h?prefix=a/own");
    EXPECT_EQ(with_prefix("etcds://h?ca=/x&prefix=a/&verify=no", "own"),
              "etcds://h?ca=/x&prefix=a/own&verify=no");
    EXPECT_EQ(with_prefix("etcd://h?token_epoch=1", "own"), "etcd://h?token_epoch=1&prefix=own");
}

TEST(OwnPrefix, TellsSinceWhenItMayBe) {
    EXPECT_EQ(prefix_of_demo(1'700'000'000, 0xabc), "trinco-demo-1700000000-00000abc");
    EXPECT_EQ(time_in_prefix(prefix_of_demo(1'700'000'000, 7) + "/x"), 1'700'000'000);
    for (const char* other : {"", "trinco-demo-", "trinco-demo-x", "trinco-demo-17", "demo-1-2"}) {
        EXPECT_FALSE(time_in_prefix(other).has_value()) << other;
    }
}

}  // namespace
}  // namespace trinco::program::demo
