#include "apps/trinco/demo/shop.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/trinco/demo/sale.hpp"

namespace trinco::program::demo {
namespace {

class Shop : public testing::Test {
protected:
    Shop() {
        std::string name = testing::TempDir() + "shop-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~Shop() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] shop open(int tickets) const {
        shop made(folder_ / "shop");
        EXPECT_FALSE(made.open(tickets));
        return made;
    }

    std::filesystem::path folder_;
};

using answer = shop::answer;

TEST_F(Shop, SellsWhatIsThere) {
    const shop here = open(2);
    int left = 0;
    EXPECT_EQ(answer::done, here.read(left, {}));
    EXPECT_EQ(2, left);
    EXPECT_EQ(answer::done, here.sell("Ann", 2, {}));
    EXPECT_EQ(1, here.left());
    ASSERT_EQ(1u, here.receipts().size());
    EXPECT_EQ(2, here.receipts()[0].ticket);
    EXPECT_EQ("Ann", here.receipts()[0].seller);
    EXPECT_TRUE(here.tokens().empty());
}

// What the demonstration shows: two who read the same sell the same, and both have a receipt.
TEST_F(Shop, HasARaceWithoutTokens) {
    const shop here = open(1);
    EXPECT_EQ(answer::done, here.sell("Ann", 1, {}));
    EXPECT_EQ(answer::done, here.sell("Bob", 1, {}));
    EXPECT_EQ(0, here.left());
    EXPECT_EQ(2u, here.receipts().size());
}

TEST_F(Shop, RefusesALowerTokenThanItHasSeen) {
    const shop here = open(5);
    int left = 0;
    EXPECT_EQ(answer::done, here.read(left, 7));
    EXPECT_EQ(answer::done, here.read(left, 9));  // has sold nothing yet
    EXPECT_EQ(answer::refused, here.sell("late", 5, 7));
    EXPECT_EQ(answer::refused, here.read(left, 8));
    EXPECT_EQ(5, here.left());
    EXPECT_TRUE(here.receipts().empty());
    EXPECT_EQ(answer::done, here.sell("Ann", 5, 9));
    EXPECT_EQ(4, here.left());
    EXPECT_EQ(std::vector<std::uint64_t>{9}, here.tokens());
}

TEST_F(Shop, SaysWhenItCannotBeRead) {
    const shop closed(folder_ / "none");
    int left = 0;
    EXPECT_EQ(-1, closed.left());
    EXPECT_EQ(answer::failed, closed.read(left, {}));
    EXPECT_EQ(answer::failed, closed.read(left, 3));
    EXPECT_EQ(answer::failed, closed.sell("Ann", 1, {}));
}

TEST_F(Shop, GivesAPartOnce) {
    const shop here = open(5);
    EXPECT_TRUE(here.take_part("killed"));
    EXPECT_FALSE(here.take_part("killed"));
    EXPECT_TRUE(here.take_part("paused"));
}

TEST_F(Shop, ASaleTellsWhatHappens) {
    const shop here = open(1);
    std::vector<std::string> told;
    const auto tell = [&](const std::string& line) { told.push_back(line); };
    EXPECT_EQ(sale_made, make_sale(here, {.seller = "Ann", .token = 4}, tell));
    EXPECT_EQ(sale_sold_out, make_sale(here, {.seller = "Bob", .token = 5}, tell));
    EXPECT_EQ(sale_refused, make_sale(here, {.seller = "late", .token = 4}, tell));
    ASSERT_EQ(4u, told.size());
    EXPECT_TRUE(told[0].starts_with("reads 1 ")) << told[0];
    EXPECT_TRUE(told[0].ends_with(" 4")) << told[0];
    EXPECT_EQ("sold 1 4", told[1]);
    EXPECT_EQ("sold-out", told[2]);
    EXPECT_EQ("refused - 4", told[3]);
}

TEST(Parts, AreWrittenAndRead) {
    const std::vector<part> read = parts_of(text_of({{"killed", 80}, {"frozen", 7}}));
    ASSERT_EQ(2u, read.size());
    EXPECT_EQ("killed", read[0].name);
    EXPECT_EQ(80, read[0].at);
    EXPECT_EQ("frozen", read[1].name);
    EXPECT_EQ(7, read[1].at);
    EXPECT_TRUE(parts_of("").empty());
}

}  // namespace
}  // namespace trinco::program::demo
