// The histogram of durations, against a plain sorted list.
#include "core/histogram.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "property.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using trinco::test::holds;

TEST(Histogram, AnEmptyOneHasNoQuantiles) {
    const auto h = histogram().shape();
    EXPECT_EQ(h.count, 0U);
    EXPECT_TRUE(h.ranges.empty());
    EXPECT_EQ(h.quantile(0.5), 0us);
}

TEST(Histogram, RangesFollowEachOtherWithoutGapOrOverlap) {
    for (std::size_t i = 0; i + 2 < histogram::ranges; ++i) {
        const auto end = histogram::end_of(i);
        EXPECT_EQ(histogram::range_of(end), i);
        EXPECT_EQ(histogram::range_of(end + 1us), i + 1);
        if (end >= 8us) {
            const auto before = histogram::end_of(i - 1);
            EXPECT_LE(static_cast<double>(end.count()),
                      1.25 * static_cast<double>(before.count() + 1));
        }
    }
    EXPECT_EQ(histogram::range_of(7us), 7U) << "exact below 8 us";
    EXPECT_EQ(histogram::end_of(histogram::ranges - 2), microseconds((1 << 27) - 1));
    EXPECT_EQ(histogram::range_of(microseconds::max()), histogram::ranges - 1);
    EXPECT_EQ(histogram::end_of(histogram::ranges - 1), microseconds::max());
    EXPECT_EQ(histogram::range_of(-1us), 0U);
}

TEST(Histogram, CountsWhatIsNegativeAsNothingAndCutsNanoseconds) {
    histogram h;
    h.record(-5ns);
    h.record(1'999ns);
    h.record(10min);
    const auto shape = h.shape();
    EXPECT_EQ(shape.count, 3U);
    EXPECT_EQ(shape.total, 1us + 10min);
    EXPECT_EQ(shape.longest, 10min);
    EXPECT_EQ(shape.quantile(0), 0us);
    EXPECT_EQ(shape.quantile(0.5), 1us);
    EXPECT_EQ(shape.quantile(1), 10min);
    EXPECT_EQ(shape.quantile(7), 10min);
    EXPECT_EQ(shape.quantile(-7), 0us);
}

TEST(Histogram, QuantilesAreAtMostAQuarterTooHigh) {
    EXPECT_TRUE(holds("quantiles of a histogram", 500, [] {
        const auto exponents = *rc::gen::nonEmpty<std::vector<std::uint32_t>>();
        std::vector<std::int64_t> all;
        histogram h;
        for (const auto x : exponents) {
            all.push_back(static_cast<std::int64_t>(x >> (x % 32)) % (1 << 27));
            h.record(microseconds(all.back()));
        }
        std::sort(all.begin(), all.end());
        const auto shape = h.shape();
        RC_ASSERT(shape.count == all.size());
        RC_ASSERT(shape.longest.count() == all.back());
        std::uint64_t sum = 0;
        for (const auto& r : shape.ranges) sum += r.count;
        RC_ASSERT(sum == shape.count);
        std::int64_t before = 0;
        for (const double share : {0.0, 0.1, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0}) {
            const auto n = static_cast<double>(all.size());
            const auto at = static_cast<std::size_t>(std::max(std::ceil(share * n) - 1, 0.0));
            const auto exact = all[at];
            const auto got = shape.quantile(share).count();
            RC_ASSERT(got >= exact);
            RC_ASSERT(static_cast<double>(got) <= 1.25 * static_cast<double>(exact));
            RC_ASSERT(got >= before);
            before = got;
        }
    }));
}

TEST(Histogram, IsReadWhileItIsWritten) {
    histogram h;
    std::thread writer([&h] {
        for (int i = 0; i < 100'000; ++i) h.record(microseconds(i % 1'000));
    });
    std::uint64_t last = 0;
    for (int i = 0; i < 200; ++i) {
        const auto seen = h.shape().count;
        EXPECT_GE(seen, last);
        last = seen;
    }
    writer.join();
    EXPECT_EQ(h.shape().count, 100'000U);
    EXPECT_EQ(h.shape().total, microseconds(100 * 999 * 500));
}

}  // namespace
}  // namespace trinco::detail
