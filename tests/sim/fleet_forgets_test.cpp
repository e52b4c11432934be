// Open stays open and closed stays closed, whatever the store forgets.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

TEST(FleetForgets, OpenStaysOpenAndClosedStaysClosed) {
    const auto all = run_seeds(run_fleet_forgets);
    if (!is_full(all)) return;
    EXPECT_GT(all.faults, all.seeds);
}

}  // namespace
