// What a fleet asks of its server has a bound that does not depend on its size.
#include "fleet_histories.hpp"

namespace {

using namespace trinco::sim;
using namespace std::chrono_literals;

// Of all seeds together, so that the bound is not kept by asking nothing. Each third one has
// another share of failures.
void expect_within_budget(const costly_fleet& of, std::uint64_t seeds, std::uint64_t at_least) {
    const auto all = run_seeds(
        [&](std::uint64_t seed, bool keep) { return run_fleet_cost(seed, of, keep); }, {}, seeds);
    EXPECT_GE(all.requests, all.seeds * at_least);
    EXPECT_GT(all.seen.outcomes, all.seeds * 10'000);
}

TEST(FleetCost, TenInstancesAskNoMoreThanTheBudgetAllows) {
    expect_within_budget({10, 200, 15s, 10s}, 12, 700);
}

TEST(FleetCost, AHundredInstancesAskNoMoreThanTheBudgetAllows) {
    expect_within_budget({100, 50, 15s, 10s}, 6, 1'400);
}

TEST(FleetCost, AThousandInstancesAskNoMoreThanTheBudgetAllows) {
    expect_within_budget({1'000, 10, 15s, 10s}, 3, 1'400);
}

}  // namespace
