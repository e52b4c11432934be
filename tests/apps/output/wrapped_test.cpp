#include "apps/trinco/output/wrapped.hpp"

#include <gtest/gtest.h>

#include <string>

namespace trinco::program {
namespace {

TEST(Wrapped, BreaksBetweenWordsAndIndentsWhatFollows) {
    EXPECT_EQ("one two\n  three\n  four", wrapped("one two three four", 2, 9));
    EXPECT_EQ("one two\nthree\nfour", wrapped("one two three four", 0, 9));
}

TEST(Wrapped, NeverCutsAWord) {
    EXPECT_EQ("a\n  unbreakable\n  b", wrapped("a unbreakable b", 2, 6));
}

TEST(Wrapped, LeavesAloneWhatFits) {
    EXPECT_EQ("", wrapped(""));
    EXPECT_EQ("one two", wrapped("one two"));
    EXPECT_EQ("gr\xc3\xbc\xc3\x9f dich", wrapped("gr\xc3\xbc\xc3\x9f dich", 0, 9));
}

}  // namespace
}  // namespace trinco::program
