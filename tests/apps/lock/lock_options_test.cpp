#include "apps/trinco/lock/lock_options.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/lock/lease.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::lease_timing;

lock_options of_name(std::string name) {
    lock_options o;
    o.name = std::move(name);
    return o;
}

settings with_prefix(const std::string& prefix) {
    settings with;
    with.prefix = prefix;
    with.ttl = 15s;
    return with;
}

lock_plan good(const lock_options& o, const std::string& prefix = "") {
    const auto plan = plan_of(o, with_prefix(prefix), "/usr/bin/backup");
    const auto* const bad = std::get_if<problem>(&plan);
    EXPECT_EQ(bad, nullptr) << bad->sentence;
    return bad == nullptr ? std::get<lock_plan>(plan) : lock_plan{};
}

std::string complaint(const lock_options& o, const std::string& prefix = "") {
    const auto plan = plan_of(o, with_prefix(prefix), "true");
    const auto* const bad = std::get_if<problem>(&plan);
    EXPECT_NE(bad, nullptr);
    if (bad == nullptr) return {};
    EXPECT_EQ(bad->code, exit_usage);
    return bad->sentence;
}

TEST(LockOptions, BareNameWaitsForEverForAnExclusiveLock) {
    const auto plan = good(of_name("jobs/nightly"));
    EXPECT_EQ(plan.what.name, "jobs/nightly");
    EXPECT_EQ(plan.what.kind, detail::claim_kind::exclusive);
    EXPECT_EQ(plan.what.n, 0U);
    EXPECT_EQ(plan.wait, std::nullopt);
    EXPECT_EQ(plan.ttl, 15s);
    EXPECT_EQ(plan.grace, 3s);
    EXPECT_EQ(plan.at_act, on_deadline::term);
}

TEST(LockOptions, PrefixStandsBeforeTheNameAndBothAreCheckedTogether) {
    EXPECT_EQ(good(of_name("nightly"), "team/").what.name, "team/nightly");
    EXPECT_NE(complaint(of_name("a//b")), "");
    EXPECT_NE(complaint(of_name("/b"), "a/"), "");
    EXPECT_NE(complaint(of_name("")), "");
}

TEST(LockOptions, KindsOfHolders) {
    auto o = of_name("x");
    o.shared = true;
    EXPECT_EQ(good(o).what.kind, detail::claim_kind::shared);
    o.permits = 3;
    EXPECT_NE(complaint(o), "");
    o.shared = false;
    EXPECT_EQ(good(o).what.kind, detail::claim_kind::permit);
    EXPECT_EQ(good(o).what.n, 3U);
}

TEST(LockOptions, WaysNotToWait) {
    auto o = of_name("x");
    o.no_wait = true;
    EXPECT_EQ(good(o).wait, 0ms);
    o.wait = 0ms;
    EXPECT_EQ(good(o).wait, 0ms);
    o.wait = 1ms;
    EXPECT_NE(complaint(o), "");
    o.no_wait = false;
    EXPECT_EQ(good(o).wait, 1ms);
}

TEST(LockOptions, LabelsAreOneLineAndNameTheProcessByDefault) {
    auto o = of_name("x");
    const auto label = good(o).label;
    EXPECT_NE(label.find(":" + std::to_string(::getpid()) + " backup"), std::string::npos);
    o.label = "nightly run";
    EXPECT_EQ(good(o).label, "nightly run");
    o.label = std::string(257, 'x');
    EXPECT_NE(complaint(o), "");
    o.label = "two\nlines";
    EXPECT_NE(complaint(o), "");
}

// From the renewal that becomes due to the TERM there is at least a third of the TTL.
TEST(LockOptions, EveryGraceThatIsAllowedLeavesTimeForRenewals) {
    for (const auto ttl : {1s, 2s, 3s, 5s, 15s, 60s, 3'600s, 86'400s}) {
        SCOPED_TRACE(ttl.count());
        const auto left = lease_timing::believed(ttl) - lease_timing::renew_after(ttl);
        EXPECT_GE(left - longest_grace(ttl), detail::boot_clock::duration(ttl) / 3);
        EXPECT_LT(left - longest_grace(ttl) - 1ms, detail::boot_clock::duration(ttl) / 3);
        EXPECT_LE(default_grace(ttl), longest_grace(ttl));
        EXPECT_GT(default_grace(ttl), 0ms);
        EXPECT_LE(default_grace(ttl), 5s);
        auto o = of_name("x");
        o.ttl = ttl;
        o.grace = longest_grace(ttl);
        EXPECT_EQ(good(o).grace, longest_grace(ttl));
        *o.grace += 1ms;
        EXPECT_NE(complaint(o).find(std::to_string(longest_grace(ttl).count()) + "ms"),
                  std::string::npos);
    }
    EXPECT_EQ(default_grace(15s), 3s);
    EXPECT_EQ(default_grace(60s), 5s);
    EXPECT_EQ(longest_grace(15s), 4'250ms);
    // As the help says: less than a fifth with the shortest TTL alone.
    EXPECT_EQ(default_grace(1s), 83ms);
    EXPECT_EQ(default_grace(2s), 400ms);
}

TEST(LockOptions, TtlIsWholeSeconds) {
    auto o = of_name("x");
    o.ttl = 1'500ms;
    EXPECT_NE(complaint(o).find("1500 ms"), std::string::npos);
}

TEST(LockOptions, TheOptionCountsMoreThanTheSettingOfTheTtl) {
    auto o = of_name("x");
    settings with;
    with.ttl = 60s;
    const auto by_setting = std::get<lock_plan>(plan_of(o, with, "true"));
    EXPECT_EQ(by_setting.ttl, 60s);
    EXPECT_EQ(by_setting.grace, 5s);
    o.ttl = 2s;
    EXPECT_EQ(std::get<lock_plan>(plan_of(o, with, "true")).ttl, 2s);
}

}  // namespace
}  // namespace trinco::program
