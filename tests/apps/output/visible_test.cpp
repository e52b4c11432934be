#include "apps/trinco/output/visible.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

namespace trinco::program {
namespace {

TEST(Visible, KeepsTextAndShowsBytesOfTheRest) {
    EXPECT_EQ("gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\x92 \"\\",
              visible("gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\x92 \"\\"));
    EXPECT_EQ("a\\x00\\x0a\\x7f", visible(std::string_view("a\0\n\x7f", 4)));
    EXPECT_EQ("\\xff\\xc3", visible("\xff\xc3"));
    EXPECT_EQ("\\xc2\\x9b31m", visible("\xc2\x9b"
                                       "31m"));  // the escape beyond ASCII
    EXPECT_EQ(
        "\\xe2\\x80\\xae"
        "txt",
        visible("\xe2\x80\xae"
                "txt"));  // right to left
}

TEST(Visible, TellsUtf8FromTheRest) {
    for (const char* const text : {"", "a", "caf\xc3\xa9", "\xf0\x9f\x94\x92", "\x01"}) {
        EXPECT_TRUE(is_utf8(text)) << text;
    }
    for (const char* const text :
         {"\xff", "caf\xe9", "caf\xc3", "\xc0\xaf", "\xed\xa0\x80", "a\x80"}) {
        EXPECT_FALSE(is_utf8(text)) << text;
    }
}

RC_GTEST_PROP(Visible, IsOneLineOfWhateverBytesAndStaysAsItIsThen, (const std::string& text)) {
    const std::string shown = visible(text);
    RC_ASSERT(std::none_of(shown.begin(), shown.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    }));
    RC_ASSERT(visible(shown) == shown);
}

TEST(Width, CountsCharacters) {
    EXPECT_EQ(0U, width_of(""));
    EXPECT_EQ(3U, width_of("gr\xc3\xbc"));
    EXPECT_EQ(2U, width_of("\xf0\x9f\x94\x92\xff"));
}

}  // namespace
}  // namespace trinco::program
