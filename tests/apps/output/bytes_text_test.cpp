#include "apps/trinco/output/bytes_text.hpp"

#include <gtest/gtest.h>

namespace trinco::program {
namespace {

TEST(BytesText, HasTheUnitInWhichItIsAtLeastOne) {
    EXPECT_EQ("0 bytes", bytes_text(0));
    EXPECT_EQ("1 byte", bytes_text(1));
    EXPECT_EQ("1023 bytes", bytes_text(1'023));
    EXPECT_EQ("1.0 KiB", bytes_text(1'024));
    EXPECT_EQ("1.5 KiB", bytes_text(1'536));
    EXPECT_EQ("879 KiB", bytes_text(900'000));
    EXPECT_EQ("1.0 MiB", bytes_text(1'048'575));
    EXPECT_EQ("95.4 MiB", bytes_text(100'000'000));
    EXPECT_EQ("100 MiB", bytes_text(104'857'600));
    EXPECT_EQ("77.6 GiB", bytes_text(83'362'000'000));
    EXPECT_EQ("16777216 TiB", bytes_text(UINT64_MAX));
}

}  // namespace
}  // namespace trinco::program
