// One bad instance neither opens the fleet nor keeps it open; a broken dependency opens all.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

class FleetOneBad : public testing::TestWithParam<seed_share> {};

void expect_evidence(std::size_t instances, const seed_share& share) {
    const auto all = run_seeds(
        [&](std::uint64_t seed, bool keep) { return run_fleet_one_bad(seed, instances, keep); },
        share);
    if (all.seeds == 0) GTEST_SKIP() << "another share has the seed";
    if (!is_full(all)) return;
    EXPECT_GT(all.seen.grants, all.seeds);
    EXPECT_GT(all.faults, all.seeds);
}

TEST_P(FleetOneBad, OfTwo) {
    expect_evidence(2, GetParam());
}

TEST_P(FleetOneBad, OfThree) {
    expect_evidence(3, GetParam());
}

TEST_P(FleetOneBad, OfTen) {
    expect_evidence(10, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Share, FleetOneBad, testing::ValuesIn(shares(2)), name_of_share);

}  // namespace
