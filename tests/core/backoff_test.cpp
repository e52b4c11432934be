#include "core/backoff.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/core/property.hpp"

namespace trinco::detail {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, TheLimitDoublesUpToTheLongest) {
    const backoff b{milliseconds(50), milliseconds(1'000)};
    EXPECT_EQ(b.limit(0), milliseconds(50));
    EXPECT_EQ(b.limit(1), milliseconds(100));
    EXPECT_EQ(b.limit(4), milliseconds(800));
    EXPECT_EQ(b.limit(5), milliseconds(1'000));
    EXPECT_EQ(b.limit(4'000'000'000U), milliseconds(1'000));
}

TEST(Backoff, AShareOfOneIsNeverOne) {
    EXPECT_EQ(unit_share(0), 0.0);
    EXPECT_LT(unit_share(~std::uint64_t{0}), 1.0);
    EXPECT_GT(unit_share(~std::uint64_t{0}), 0.9999999);
}

TEST(Backoff, WaitsReachBothEndsAndStayWithin) {
    const backoff b{milliseconds(50), milliseconds(1'000)};
    EXPECT_EQ(b.wait(2, 0), milliseconds(0));
    EXPECT_EQ(b.wait(2, ~std::uint64_t{0}), milliseconds(200));
    EXPECT_EQ(b.wait(2, std::uint64_t{1} << 63), milliseconds(100));
    EXPECT_TRUE(test::holds("a wait is within its limit", 1000, [](std::uint64_t random) {
        const backoff any{milliseconds(1 + *rc::gen::inRange(0, 10'000)), milliseconds(60'000)};
        const auto attempt = *rc::gen::arbitrary<std::uint32_t>();
        const auto wait = any.wait(attempt, random);
        RC_ASSERT(wait >= milliseconds(0));
        RC_ASSERT(wait <= any.limit(attempt));
        RC_ASSERT(any.limit(attempt) <= any.longest);
        RC_ASSERT(any.limit(attempt) >= any.first);
    }));
}

}  // namespace
}  // namespace trinco::detail
