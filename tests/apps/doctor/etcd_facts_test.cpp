// What the statuses of members mean.
#include <gtest/gtest.h>

#include <set>

#include "apps/trinco/doctor/etcd_facts.hpp"
#include "apps/trinco/doctor/etcd_versions.hpp"
#include "apps/trinco/doctor/outage.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "net/tls_factory.hpp"
#include "store/stream_trouble.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;

etcd_status running(std::string version, std::uint64_t leader = 1) {
    etcd_status s;
    s.endpoint = "10.0.0.1:2379";
    s.version = std::move(version);
    s.member = 1;
    s.leader = leader;
    s.term = 7;
    s.size = 4'096;
    s.size_in_use = 4'096;
    return s;
}

const finding& only(const examination& e) {
    EXPECT_EQ(1U, e.all.size());
    return e.all.front();
}

bool says(const finding& one, std::string_view words) {
    return one.sentence.find(words) != std::string::npos;
}

finding of_version(const std::string& version, std::size_t members = 3) {
    examination e;
    judge_etcd_version({running(version)}, std::vector<etcd_member>(members), e);
    return only(e);
}

TEST(EtcdFacts, EachBugIsKnownUntilTheVersionThatFixedIt) {
    struct row {
        const char* last_with;
        const char* first_without;
        const char* bug;
    };
    const row rows[] = {
        {"3.4.30", "3.4.31", "etcd#15247"}, {"3.5.12", "3.5.13", "etcd#15247"},
        {"3.4.37", "3.4.38", "etcd#20616"}, {"3.5.22", "3.5.23", "etcd#20616"},
        {"3.6.4", "3.6.5", "etcd#20616"},   {"3.4.35", "3.4.36", "etcd#19179"},
        {"3.5.17", "3.5.18", "etcd#19179"}, {"3.5.12", "3.5.13", "event of a watch"},
        {"3.5.2", "3.5.3", "etcd#13766"},   {"3.5.0", "3.4.18", "etcd#13766"},
        {"3.5.5", "3.5.6", "etcd#14733"},   {"3.5.0", "3.4.20", "etcd#14733"},
        {"3.5.5", "3.5.6", "etcd#14571"},   {"3.5.5", "3.5.4", "etcd#14571"},
        {"3.4.21", "3.4.22", "etcd#14571"}, {"3.4.20", "3.4.19", "etcd#14571"}};
    for (const row& r : rows) {
        EXPECT_TRUE(says(of_version(r.last_with), r.bug)) << r.last_with << " " << r.bug;
        EXPECT_FALSE(says(of_version(r.first_without), r.bug)) << r.first_without << " " << r.bug;
    }
    EXPECT_EQ(level::good, of_version("3.5.23").how);
    EXPECT_EQ(level::good, of_version("3.6.5").how);
    EXPECT_EQ(level::good, of_version("3.7.0").how);
    EXPECT_EQ(level::warn, of_version("3.4.38").how) << "its waiters are not confirmed";
    EXPECT_EQ(level::bad, of_version("3.3.27").how);
}

TEST(EtcdFacts, WhatOnlyALonelyMemberForgetsIsSaidOfOneAlone) {
    for (const char* version : {"3.4.20", "3.5.4"}) {
        EXPECT_TRUE(says(of_version(version, 1), "etcd#14370")) << version;
        EXPECT_FALSE(says(of_version(version, 3), "etcd#14370")) << version;
        EXPECT_FALSE(says(of_version(version, 0), "etcd#14370")) << "not known";
    }
    EXPECT_FALSE(says(of_version("3.4.21", 1), "etcd#14370"));
    EXPECT_FALSE(says(of_version("3.5.5", 1), "etcd#14370"));
}

TEST(EtcdFacts, ACandidateComesBeforeItsRelease) {
    EXPECT_TRUE(says(of_version("3.6.0-rc.1"), "etcd#15247")) << "fixed in 3.6.0";
    EXPECT_TRUE(says(of_version("3.6.0-alpha.0"), "etcd#15247"));
    EXPECT_FALSE(says(of_version("3.6.0"), "etcd#15247"));
    EXPECT_EQ(level::bad, of_version("3.4.0-rc.4").how);
    EXPECT_NE(level::bad, of_version("3.4.0").how);
    EXPECT_EQ(level::good, of_version("3.5.23-rke2r1").how) << "of a packager";
    EXPECT_EQ(level::good, of_version("3.6.5+git").how);
    EXPECT_LT(*etcd_version_of("3.6.0-beta.0"), *etcd_version_of("3.6.0"));
    EXPECT_LT(*etcd_version_of("3.5.99"), *etcd_version_of("3.6.0-rc.1"));
    for (const char* none : {"", "3", "3.5", "3.5.", "3-5-1", "three.5.1"}) {
        EXPECT_FALSE(etcd_version_of(none)) << none;
    }
}

TEST(EtcdFacts, NobodyAtAllIsBad) {
    examination e;
    judge_reach({}, e);
    EXPECT_EQ(level::bad, only(e).how);
    EXPECT_NE("", only(e).advice);
}

TEST(EtcdFacts, NobodyLeads) {
    examination e;
    judge_leader({running("3.5.23", 0)}, {}, e);
    EXPECT_EQ(level::bad, only(e).how);
    examination some;
    judge_leader({running("3.5.23", 0), running("3.5.23", 1)}, {}, some);
    EXPECT_EQ(level::warn, only(some).how);
}

// 1 ... n, as each of the same cluster says it.
std::vector<etcd_status> statuses(std::size_t n) {
    std::vector<etcd_status> all(n, running("3.5.23"));
    for (std::size_t i = 0; i < n; ++i) {
        all[i].member = i + 1;
        all[i].endpoint = "10.0.0." + std::to_string(i + 1) + ":2379";
    }
    return all;
}

std::vector<etcd_member> members(std::size_t n) {
    std::vector<etcd_member> all(n);
    for (std::size_t i = 0; i < n; ++i) {
        all[i].id = i + 1;
        all[i].name = "n" + std::to_string(i + 1);
    }
    return all;
}

finding of_members(const std::vector<etcd_status>& asked,
                   const std::vector<std::vector<etcd_member>>& told) {
    examination e;
    judge_members(asked, told, e);
    return only(e);
}

TEST(EtcdFacts, AnEvenNumberOfMembersSurvivesNoMoreThanOneLess) {
    const auto levels = [](std::size_t n) { return of_members(statuses(n), {members(n)}).how; };
    EXPECT_EQ(level::warn, levels(1)) << "nobody stands in for it";
    EXPECT_EQ(level::warn, levels(2));
    EXPECT_EQ(level::good, levels(3));
    EXPECT_EQ(level::warn, levels(4));
}

TEST(EtcdFacts, MembersOfTwoClustersAreNoStore) {
    auto asked = statuses(3);
    asked[1].cluster = 9;
    examination e;
    judge_members(asked, {members(3), members(3), members(3)}, e);
    EXPECT_EQ(level::bad, only(e).how);
    EXPECT_EQ(exit_usage, e.code);
    EXPECT_TRUE(says(only(e), "10.0.0.1:2379, 10.0.0.3:2379 of 0; 10.0.0.2:2379 of 9"));
    asked[1].version.clear();
    EXPECT_EQ(level::warn, of_members(asked, {members(3)}).how) << "it has not answered";
}

TEST(EtcdFacts, WhatTlsPreventsHasAnAdviceOfItsOwn) {
    using trinco::detail::tls_errc;
    const trinco::detail::server_words etcd{"etcd", "etcd"};
    const auto advice = [](const std::string& why) {
        etcd_status silent;
        silent.endpoint = "10.0.0.1:2379";
        silent.errors = {silent.endpoint + ": " + why};
        examination e;
        judge_reach({silent}, e);
        return only(e).advice;
    };
    std::set<std::string> all{advice("connection refused; is etcd running there?")};
    for (const auto fault :
         {tls_errc::wrong_name, tls_errc::unknown_authority, tls_errc::expired,
          tls_errc::not_yet_valid, tls_errc::certificate_wanted, tls_errc::refused_by_peer,
          tls_errc::not_tls, tls_errc::key_unreadable}) {
        const auto why = trouble_of(fault, trinco::detail::tls_settings{}, etcd).sentence;
        EXPECT_TRUE(all.insert(advice(why)).second) << why << ": " << advice(why);
    }
    const auto closes = closes_sentence(etcd);
    EXPECT_TRUE(all.insert(advice(closes)).second) << advice(closes);
    auto two = statuses(2);
    two[1].version.clear();
    two[1].errors = {"10.0.0.2:2379: its certificate has expired"};
    examination e;
    judge_reach(two, e);
    EXPECT_NE(std::string::npos, e.all[0].advice.find("new certificate")) << e.all[0].advice;
}

TEST(EtcdFacts, TheOnlyMemberIsNoMajority) {
    const auto found = of_members(statuses(1), {members(1)});
    EXPECT_EQ(level::warn, found.how);
    EXPECT_TRUE(says(found, "1 member (\"n1\"); none may be lost: while it is away no lock"))
        << found.sentence;
    EXPECT_NE(std::string::npos, found.advice.find("run three"));
    // One that only learns has no vote.
    auto with_learner = members(2);
    with_learner[1].learner = true;
    EXPECT_EQ(level::warn, of_members(statuses(2), {with_learner}).how);
}

TEST(EtcdFacts, WhoIsAwayCannotBeLostAgain) {
    const auto of = [](std::size_t all, std::size_t away) {
        auto asked = statuses(all);
        for (std::size_t i = 0; i < away; ++i) asked[i].version.clear();
        return of_members(asked, {members(all)});
    };
    EXPECT_EQ(level::warn, of(3, 1).how);
    EXPECT_TRUE(says(of(3, 1), "2 of 3 members answer: none more may be lost"));
    EXPECT_TRUE(says(of(5, 1), "4 of 5 members answer: 1 more may be lost"));
    EXPECT_TRUE(says(of(5, 2), "3 of 5 members answer: none more may be lost"));
    EXPECT_TRUE(says(of(4, 1), "3 of 4 members answer: none more may be lost"));
    EXPECT_TRUE(says(of(3, 0), "3 members (\"n1\", \"n2\", \"n3\"); 1 may be lost"));
    // Neither a place of the URL where no member is, nor a learner, which has no vote.
    auto more = statuses(4);
    more[3].version.clear();
    EXPECT_EQ(level::good, of_members(more, {members(3)}).how);
    auto with_learner = members(4);
    with_learner[3].learner = true;
    EXPECT_EQ(level::good, of_members(more, {with_learner}).how);
    // Who is not named was not asked.
    const auto some = of_members(statuses(1), {members(3)});
    EXPECT_TRUE(says(some, "3 members (")) << some.sentence;
    EXPECT_TRUE(says(some, "the URL names 1 of them")) << some.sentence;
}

TEST(EtcdFacts, MembersThatListOthersAreTold) {
    const auto well = members(3);
    EXPECT_EQ(level::good, of_members(statuses(3), {well, well, well}).how);
    EXPECT_EQ(level::good, of_members(statuses(3), {{}, well, {}}).how) << "some did not say";
    // As many, but others; and one that went on by itself.
    auto other = members(3);
    other[2].id = 77;
    for (const auto& one : {other, members(1)}) {
        const auto found = of_members(statuses(3), {well, {}, one});
        EXPECT_EQ(level::bad, found.how);
        EXPECT_TRUE(says(found, "10.0.0.1:2379 lists 3 members")) << found.sentence;
        EXPECT_TRUE(says(found, "10.0.0.3:2379 lists ")) << found.sentence;
    }
}

TEST(EtcdFacts, AMemberIsCountedOnceHoweverItIsNamed) {
    auto asked = statuses(3);
    asked[2].member = 1;
    const auto twice = of_members(asked, {members(3)});
    EXPECT_EQ(level::warn, twice.how) << "three places, and one of three is missing";
    EXPECT_TRUE(says(twice, "3 places of the URL are 2 members")) << twice.sentence;
    EXPECT_TRUE(says(twice, "names 2 of them"));
    asked[2].member = 55;
    const auto removed = of_members(asked, {members(3)});
    EXPECT_EQ(level::warn, removed.how);
    EXPECT_TRUE(says(removed, "10.0.0.3:2379 is none of them"));
    asked[2].version.clear();
    const auto away = of_members(asked, {members(3)});
    EXPECT_FALSE(says(away, "none of them")) << "who is away may be the third";
    EXPECT_TRUE(says(away, "2 of 3 members answer")) << away.sentence;
}

TEST(EtcdFacts, AMemberThatIsAwayIsCountedOnceHoweverItIsNamed) {
    auto asked = statuses(5);
    asked[3] = asked[4];  // of the fifth both addresses are named, and of the fourth none
    asked[3].endpoint = "10.1.0.5:2379";
    auto known = members(5);
    for (const auto i : {3, 4}) known[4].client_urls.push_back("https://" + asked[i].endpoint);
    asked[3].version.clear();
    asked[4].version.clear();
    const auto found = of_members(asked, {known});
    EXPECT_TRUE(says(found, "4 of 5 members answer: 1 more may be lost")) << found.sentence;
    EXPECT_TRUE(says(found, "5 places of the URL are 4 members")) << found.sentence;
    EXPECT_TRUE(says(found, "names 4 of them")) << found.sentence;
    // One of its addresses answers, and so it is there.
    asked[4].version = "3.5.23";
    const auto half = of_members(asked, {known});
    EXPECT_TRUE(says(half, "5 members (")) << half.sentence;
    // Nobody gives that address as its own: it may be any of those that were not heard of.
    asked[3].endpoint = "n4.example.com:2379";
    EXPECT_TRUE(says(of_members(asked, {known}), "4 of 5 members answer"));
}

TEST(EtcdFacts, AnAlarmIsBadAndTheWayOutIsSaid) {
    auto full = running("3.5.23");
    full.errors = {"memberID:1 alarm:NOSPACE "};
    examination e;
    judge_space({full}, e);
    EXPECT_EQ(level::bad, only(e).how);
    EXPECT_EQ(3U, only(e).commands.size());
    auto corrupt = running("3.5.23");
    corrupt.errors = {"memberID:1 alarm:CORRUPT "};
    examination other;
    judge_space({corrupt}, other);
    EXPECT_EQ(level::bad, other.worst());
}

TEST(EtcdFacts, AnOutageIsSurvivedFromAnyMoment) {
    // 15 s less 0.75 s of margin, 3 s of grace, 5 s until the renewal that was just due, 1 s for
    // repeating it.
    EXPECT_EQ(5'250ms, survived_outage(15s));
    EXPECT_EQ(28'000ms, survived_outage(60s));
    examination slow;
    judge_outage(8s, slow);
    EXPECT_EQ(level::warn, only(slow).how) << "a new leader takes longer than that";
}

}  // namespace
}  // namespace trinco::program::doctor
