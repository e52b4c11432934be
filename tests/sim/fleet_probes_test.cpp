// Probes of a fleet whose server forgets: never more than N unexpired ones.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

TEST(FleetProbes, NeverMoreThanNUnexpiredWhateverTheServerForgets) {
    const auto all = run_seeds(run_fleet_probes);
    if (!is_full(all)) return;
    EXPECT_GT(all.seen.grants, all.seeds * 10);
    EXPECT_GT(all.faults, all.seeds * 10);
}

}  // namespace
