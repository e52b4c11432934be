// How long a recovery takes, with the store and after it was lost.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

TEST(FleetRecovers, AfterOneOpeningWhoeverOpenedFirst) {
    const auto all = run_seeds(run_fleet_recovers, {}, 700);
    if (!is_full(all)) return;
    EXPECT_GT(all.seen.grants, all.seeds);
}

TEST(FleetRecovers, OnceWhereTheStoreWasLostMeanwhile) {
    const auto all = run_seeds(run_fleet_outlives, {}, 900);
    if (!is_full(all)) return;
    EXPECT_GT(all.faults, all.seeds * 2) << "instances that had recovered alone";
}

}  // namespace
