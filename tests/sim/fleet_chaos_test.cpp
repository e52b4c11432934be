// A fleet under everything that can happen to messages, processes, server and dependency.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

TEST(FleetChaos, NeverMoreThanNProbesSumsExactAllAgreeAndCloseAfterHealing) {
    const auto all = run_seeds(run_fleet_chaos);
    if (!is_full(all)) return;
    // A checker that saw nothing proves nothing.
    EXPECT_GT(all.seen.grants, all.seeds * 5);
    EXPECT_GT(all.seen.retries, all.seeds);
    EXPECT_GT(all.faults, all.seeds * 2);
    EXPECT_GT(all.seen.outcomes, all.seeds * 100);
}

TEST(FleetChaos, OneSeedReplaysToTheIdenticalHistory) {
    for (const std::uint64_t seed : {5U, 42U, 1'999U}) {
        const auto first = run_fleet_chaos(seed, true);
        const auto second = run_fleet_chaos(seed, true);
        EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
        EXPECT_EQ(first.events, second.events) << "seed " << seed;
        EXPECT_EQ(first.history, second.history) << "seed " << seed;
    }
    EXPECT_NE(run_fleet_chaos(5).digest, run_fleet_chaos(6).digest);
}

}  // namespace
