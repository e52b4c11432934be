#include "apps/trinco/output/table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace trinco::program {
namespace {

TEST(Table, AlignsColumnsWithoutTrailingSpaces) {
    table rows({"NAME", "STATE"});
    rows.row({"a", "closed"});
    rows.row({"payments", "open"});
    EXPECT_EQ(
        "NAME      STATE\n"
        "a         closed\n"
        "payments  open\n",
        rows.text());
}

TEST(Table, IsEmptyWithoutRows) {
    EXPECT_EQ("", table({"NAME", "STATE"}).text());
}

TEST(Table, AnEmptyOrMissingCellIsShown) {
    table rows({"A", "B", "C"});
    rows.row({"", "x"});
    EXPECT_EQ("A  B  C\n-  x  -\n", rows.text());
}

TEST(Table, CountsCharactersNotBytes) {
    table rows({"NAME", "X"});
    rows.row({"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", "1"});
    EXPECT_EQ("NAME   X\n\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc  1\n", rows.text());
}

TEST(Table, CellsAreHarmlessToATerminal) {
    table rows({"NAME"});
    rows.row({"\x1b[31m\n"});
    EXPECT_EQ("NAME\n\\x1b[31m\\x0a\n", rows.text());
}

TEST(Table, ColumnsThatMayGoAreDroppedWhenNoRowHasThem) {
    table t({"NAME", "NEXT", "CALLS", "WHY"});
    t.row({"a", "", "-", "x"});
    t.row({"b", "-", "-", ""});
    constexpr std::array<std::string_view, 2> sparse = {"NEXT", "WHY"};
    t.drop_if_empty(sparse);
    EXPECT_EQ("NAME  CALLS  WHY\na     -      x\nb     -      -\n", t.text());
}

TEST(Table, TheLastColumnIsCutToWhatFits) {
    table t({"NAME", "WHY"});
    t.row({"a", std::string(50, 'x')});
    t.row({"b", "wegen \u00dcberlast\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc"});
    t.row({"c", "short"});
    table narrow = t;
    t.cut_last(26);
    EXPECT_EQ("NAME  WHY\na     " + std::string(17, 'x') +
                  "...\nb     wegen \u00dcberlast\u00fc\u00fc\u00fc...\nc     short\n",
              t.text());
    narrow.cut_last(4);
    EXPECT_NE(std::string::npos, narrow.text().find("a     " + std::string(7, 'x') + "...\n"));
}

}  // namespace
}  // namespace trinco::program
