// One bad instance neither opens the fleet nor keeps it open; a broken dependency opens all.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

fleet_history one_bad_of(std::size_t n) {
    return [n](std::uint64_t seed, bool keep) { return run_fleet_one_bad(seed, n, keep); };
}

void expect_evidence(const fleet_totals& all) {
    if (!is_full(all)) return;
    EXPECT_GT(all.seen.grants, all.seeds);
    EXPECT_GT(all.faults, all.seeds);
}

TEST(FleetOneBad, OfTwo) {
    expect_evidence(run_seeds(one_bad_of(2)));
}
TEST(FleetOneBad, OfThree) {
    expect_evidence(run_seeds(one_bad_of(3)));
}
TEST(FleetOneBad, OfTen) {
    expect_evidence(run_seeds(one_bad_of(10)));
}

}  // namespace
