// What the statuses of members mean.
#include <gtest/gtest.h>

#include "apps/trinco/doctor/etcd_facts.hpp"

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

finding of_version(const std::string& version) {
    examination e;
    judge_etcd_version({running(version)}, e);
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
        {"3.5.17", "3.5.18", "etcd#19179"}, {"3.5.12", "3.5.13", "event of a watch"}};
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

TEST(EtcdFacts, NobodyLeads) {
    examination e;
    judge_leader({running("3.5.23", 0)}, {}, e);
    EXPECT_EQ(level::bad, only(e).how);
    examination some;
    judge_leader({running("3.5.23", 0), running("3.5.23", 1)}, {}, some);
    EXPECT_EQ(level::warn, only(some).how);
}

TEST(EtcdFacts, AnEvenNumberOfMembersSurvivesNoMoreThanOneLess) {
    const auto levels = [](std::size_t members) {
        examination e;
        std::vector<etcd_member> all(members);
        for (std::size_t i = 0; i < members; ++i) all[i].id = i + 1;
        judge_members(std::vector<etcd_status>(members, running("3.5.23")), all, e);
        return only(e).how;
    };
    EXPECT_EQ(level::good, levels(1));
    EXPECT_EQ(level::warn, levels(2));
    EXPECT_EQ(level::good, levels(3));
    EXPECT_EQ(level::warn, levels(4));
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
