// Failures travel faster than successes: a healthy fleet must not open at the start of a window.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;

TEST(FleetStart, FiftyInstancesWithTenPercentFailures) {
    const healthy_fleet fifty{50, 50, 50, 0.10, std::chrono::milliseconds(700)};
    const auto all = run_seeds(
        [&](std::uint64_t seed, bool keep) { return run_fleet_start(seed, fifty, keep); });
    EXPECT_GT(all.seen.outcomes, all.seeds * 1'000);
}

TEST(FleetStart, ThousandInstancesWithFivePercentFailures) {
    const healthy_fleet thousand{1'000, 100, 10, 0.05, std::chrono::milliseconds(350)};
    const auto all = run_seeds(
        [&](std::uint64_t seed, bool keep) { return run_fleet_start(seed, thousand, keep); });
    EXPECT_GT(all.seen.outcomes, all.seeds * 500);
}

}  // namespace
