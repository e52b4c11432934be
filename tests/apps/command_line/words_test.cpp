// The words that people type: which was meant, and how a line of them is shown.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/command_line/shell_words.hpp"

namespace trinco::program {
namespace {

constexpr std::array<std::string_view, 4> known = {"version", "lock", "locks", "help"};

TEST(Nearest, FindsWhatWasMeant) {
    EXPECT_EQ("version", nearest("vesrion", known));
    EXPECT_EQ("version", nearest("ver_sion", known));
    EXPECT_EQ("version", nearest("verion", known));
    EXPECT_EQ("lock", nearest("lokc", known));
    EXPECT_EQ("lock", nearest("lock", known));
    EXPECT_EQ("help", nearest("halp", known));
}

TEST(Nearest, FindsNothingWhenNoneIsClose) {
    EXPECT_EQ("", nearest("frobnicate", known));
    EXPECT_EQ("", nearest("", known));
    EXPECT_EQ("", nearest("x", known));
    EXPECT_EQ("", nearest(std::string(5'000, 'x'), known));
    EXPECT_EQ("", nearest("lock", {}));
}

std::string line_of(std::vector<std::string> words, std::size_t most = 200) {
    return shell_words(words, most);
}

TEST(ShellWords, AreQuotedWhereAShellNeedsIt) {
    EXPECT_EQ("trinco lock a/b -- curl --x=1",
              line_of({"trinco", "lock", "a/b", "--", "curl", "--x=1"}));
    EXPECT_EQ("echo 'two words' '' '$HOME' 'it'\\''s' '*'",
              line_of({"echo", "two words", "", "$HOME", "it's", "*"}));
}

TEST(ShellWords, AreShortened) {
    EXPECT_EQ("aaaa...", line_of({"aaaa", "bbbb"}, 4));
    EXPECT_EQ("aaaa bbbb", line_of({"aaaa", "bbbb"}, 9));
}

}  // namespace
}  // namespace trinco::program
