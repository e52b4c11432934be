#include "apps/trinco/output/distribution.hpp"

#include <gtest/gtest.h>

#include <string>

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

distribution of(std::initializer_list<std::chrono::nanoseconds> times) {
    distribution all;
    for (const auto one : times) all.add(one);
    return all;
}

TEST(Distribution, RanksAreTimesThatWereMeasured) {
    distribution all;
    for (int i = 100; i >= 1; --i) all.add(std::chrono::microseconds(i));
    EXPECT_EQ(50us, all.p50());
    EXPECT_EQ(99us, all.p99());
    EXPECT_EQ(100us, all.most());
    EXPECT_EQ(7us, of({7us}).p50());
    EXPECT_EQ(9us, of({7us, 9us}).p99());
    EXPECT_EQ(0ns, distribution().p99());
}

TEST(Distribution, BucketsGrowInOneTwoFive) {
    const auto all = of({900ns, 2us, 3us, 20us, 21us, 50us}).buckets();
    ASSERT_EQ(6U, all.size());
    const std::array<std::pair<std::chrono::nanoseconds, std::size_t>, 6> wanted = {
        {{1us, 1}, {2us, 1}, {5us, 1}, {10us, 0}, {20us, 1}, {50us, 2}}};
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(wanted[i].first, all[i].up_to) << i;
        EXPECT_EQ(wanted[i].second, all[i].number) << i;
    }
    EXPECT_TRUE(distribution().buckets().empty());
}

TEST(Distribution, TheFirstBucketIsTheFirstThatHoldsSomething) {
    const auto all = of({1'300us, 1'400us}).buckets();
    ASSERT_EQ(1U, all.size());
    EXPECT_EQ(2ms, all[0].up_to);
    EXPECT_EQ(2U, all[0].number);
}

TEST(Distribution, HistogramShowsSmallPartsToo) {
    distribution all;
    for (int i = 0; i < 400; ++i) all.add(15us);
    all.add(1'100us);
    const std::string text = histogram_of(all, 2);
    EXPECT_TRUE(text.starts_with("  up to  20 us  " + std::string(40, '#') + " 400\n")) << text;
    EXPECT_NE(std::string::npos, text.find("  up to 2.0 ms  # 1\n")) << text;
    EXPECT_NE(std::string::npos, text.find("  up to  50 us  0\n")) << text;
}

TEST(Distribution, TextsFitTheirSize) {
    EXPECT_EQ("48 us", measured_text(48'200ns));
    EXPECT_EQ("1.3 ms", measured_text(1'310us));
    EXPECT_EQ("12 ms", measured_text(12'100us));
    EXPECT_EQ("2.1 s", measured_text(2'100ms));
    EXPECT_EQ("p50 2 us, p99 9 us, most 9 us", summary_of(of({1us, 2us, 9us})));
}

TEST(Distribution, JsonHasRanksAndBuckets) {
    EXPECT_EQ(R"({"count":2,"p50_us":1.5,"p99_us":7,"most_us":7,"buckets":[)"
              R"({"up_to_us":2,"number":1},{"up_to_us":5,"number":0},{"up_to_us":10,"number":1}]})",
              json_of(of({1'500ns, 7us})).text());
}

}  // namespace
}  // namespace trinco::program
