// One lock for trinco and for `etcdctl lock` and `etcdctl elect`, on real servers:
// exclusion, order and hand-over in both directions. Without servers the tests are skipped.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "etcd_other_clients.hpp"

namespace trinco::detail::test {
namespace {

TEST_P(EtcdInterop, EtcdctlWaitsForUsAndWeWaitForIt) {
    const auto on = open();
    enter(on, 1, "n");
    auto other = run(
        {"lock", "n", "--", "sh", "-c",
         "echo in >> " + file("log") + "; while [ ! -e " + file("go") + " ]; do sleep 0.02; done"});
    ASSERT_TRUE(queue_grows_to("n", 2));
    enter(on, 2, "n");
    const auto ours = await(on, 2);
    on_.run_for(300ms);
    EXPECT_TRUE(lines("log").empty()) << "it runs while we hold";
    leave(on, 1);
    ASSERT_TRUE(comes_true([&] { return lines("log").size() == 1; }));
    on_.run_for(300ms);
    EXPECT_FALSE(ours->granted) << "we are granted while it holds";
    const auto listed = rows("n");
    ASSERT_EQ(listed.size(), 2U);
    EXPECT_TRUE(listed[0].holds);
    EXPECT_EQ(listed[0].kind, claim_kind::exclusive);
    std::ofstream(file("go")).put('x');
    ASSERT_TRUE(comes_true([&] { return ours->granted; }));
    EXPECT_GT(ours->token, listed[0].token);
    int code = -1;
    ASSERT_TRUE(comes_true([&] { return other->ended(&code); }));
    EXPECT_EQ(code, 0);
}

TEST_P(EtcdInterop, TwentyMixedContendersHaveItOneAfterAnotherInTheOrderOfComing) {
    constexpr std::uint64_t each = 10;
    const auto first = open();
    enter(first, 1, "n");
    // Whoever is in makes the folder, which only one can.
    const auto in = file("in");
    const std::string script = "mkdir " + in + " || echo overlap >> " + file("violations") +
                               "; echo $ETCD_LOCK_KEY >> " + file("log") + "; sleep 0.02; rmdir " +
                               in;
    std::vector<std::unique_ptr<other_process>> theirs;
    std::vector<lease> leases;
    std::vector<std::unique_ptr<waiting>> ours;
    for (std::uint64_t i = 0; i < each; ++i) {
        theirs.push_back(run({"lock", "n", "--", "sh", "-c", script}));
        leases.push_back(open());
        enter(leases.back(), 1, "n");
        ours.push_back(await(leases.back(), 1));
    }
    ASSERT_TRUE(queue_grows_to("n", 2 * each + 1));
    std::vector<std::string> expected;
    for (const auto& row : rows("n")) {
        expected.push_back(row.handle.substr(row.handle.find(' ') + 1));
    }
    expected.erase(expected.begin());
    leave(first, 1);
    std::vector<bool> had(each, false);
    std::uint64_t token = 0;
    const auto take_ours = [&] {
        for (std::size_t i = 0; i < each; ++i) {
            if (!ours[i]->granted || had[i]) continue;
            had[i] = true;
            EXPECT_GT(ours[i]->token, token);
            token = ours[i]->token;
            EXPECT_EQ(::mkdir(in.c_str(), 0700), 0) << "somebody else is in";
            std::ofstream(file("log"), std::ios::app) << "n/" << leases[i].id << '\n';
            ::usleep(20'000);
            EXPECT_EQ(::rmdir(in.c_str()), 0);
            return i;
        }
        return std::size_t{each};
    };
    for (int i = 0; i < 2'000 && lines("log").size() < 2 * each; ++i) {
        if (const auto mine = take_ours(); mine < each) leave(leases[mine], 1);
        on_.run_for(10ms);
    }
    EXPECT_EQ(lines("log"), expected) << "everybody once, in the order of the queue";
    EXPECT_TRUE(lines("violations").empty());
    EXPECT_TRUE(comes_true([&] { return rows("n").empty(); }));
}

TEST_P(EtcdInterop, AnElectionAndALockOfOneNameAreOneQueue) {
    std::vector<std::string> seen;
    const auto observer = store_->observe("n", [&](std::optional<entry> holder) {
        seen.push_back(holder ? holder->info : "nobody");
    });
    ASSERT_TRUE(comes_true([&] { return !seen.empty(); }));
    const auto leader = run({"elect", "n", "leader-1"});
    ASSERT_TRUE(comes_true([&] { return seen.back() == "leader-1"; }));
    const auto on = open();
    enter(on, 1, "n");
    const auto ours = await(on, 1);
    on_.run_for(300ms);
    EXPECT_FALSE(ours->granted);
    leader->interrupt();
    ASSERT_TRUE(comes_true([&] { return ours->granted; }));
    leave(on, 1);
    ASSERT_TRUE(comes_true([&] { return seen.back() == "nobody"; }));
    EXPECT_EQ(seen.front(), "nobody");
}

TEST_P(EtcdInterop, ANestedNameBlocksEtcdctlAndNotUs) {
    const auto on = open();
    enter(on, 1, "n/child");
    enter(on, 2, "n");
    const auto ours = await(on, 2);
    EXPECT_TRUE(comes_true([&] { return ours->granted; })) << "a nested name blocks us";
    leave(on, 2);
    // etcdctl does wait for it, as it does for any key under its name.
    auto other = run({"lock", "n", "--", "true"});
    ASSERT_TRUE(queue_grows_to("n", 2));
    on_.run_for(300ms);
    EXPECT_FALSE(other->ended());
    leave(on, 1);
    int code = -1;
    ASSERT_TRUE(comes_true([&] { return other->ended(&code); }));
    EXPECT_EQ(code, 0);
}

INSTANTIATE_TEST_SUITE_P(Servers, EtcdInterop,
                         ::testing::ValuesIn(etcd_kinds({"etcd", "etcd-3.4"})),
                         [](const auto& one) { return version_of(one.param); });

}  // namespace
}  // namespace trinco::detail::test
