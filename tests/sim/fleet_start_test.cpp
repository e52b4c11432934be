// Failures travel faster than successes: a healthy fleet must not open at the start of a window.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

class FleetStart : public testing::TestWithParam<seed_share> {};

void expect_closed(const healthy_fleet& of, const seed_share& share, std::uint64_t outcomes) {
    const auto all = run_seeds(
        [&](std::uint64_t seed, bool keep) { return run_fleet_start(seed, of, keep); }, share);
    if (all.seeds == 0) GTEST_SKIP() << "another share has the seed";
    EXPECT_GT(all.seen.outcomes, all.seeds * outcomes);
}

TEST_P(FleetStart, FiftyInstancesWithTenPercentFailures) {
    expect_closed({50, 50, 50, 0.10, std::chrono::milliseconds(700)}, GetParam(), 1'000);
}

TEST_P(FleetStart, ThousandInstancesWithFivePercentFailures) {
    expect_closed({1'000, 100, 10, 0.05, std::chrono::milliseconds(350)}, GetParam(), 500);
}

INSTANTIATE_TEST_SUITE_P(Share, FleetStart, testing::ValuesIn(shares(4)), name_of_share);

}  // namespace
