// The words of a fallback.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "apps/trinco/call/words.hpp"

namespace trinco::program {
namespace {

using words = std::vector<std::string>;

words split(std::string_view text) {
    const auto read = split_words(text);
    if (const auto* why = std::get_if<std::string>(&read)) return {"(" + *why + ")"};
    return std::get<words>(read);
}

TEST(SplitWords, AtBlanks) {
    EXPECT_EQ((words{"true"}), split("true"));
    EXPECT_EQ((words{"echo", "a", "b"}), split("  echo a\t\tb \n"));
}

TEST(SplitWords, QuotesAndBackslashesKeepBlanks) {
    EXPECT_EQ((words{"cat", "/var/last rates.json"}), split("cat '/var/last rates.json'"));
    EXPECT_EQ((words{"echo", "it's \"closed\""}), split(R"(echo "it's \"closed\"")"));
    EXPECT_EQ((words{"a b", "c\\d", "\\"}), split(R"(a\ b 'c\d' \\)"));
    EXPECT_EQ((words{"ab cd"}), split(R"(a'b c'"d")"));
    EXPECT_EQ((words{"x", ""}), split("x ''"));
    EXPECT_EQ((words{"a\\b\\"}), split(R"("a\b\\")"));
}

TEST(SplitWords, NothingElseHasAMeaning) {
    EXPECT_EQ((words{"echo", "$HOME", "`x`", "|", "*", "~", "#", "a;b", "&", ">f"}),
              split("echo $HOME `x` | * ~ # a;b & >f"));
}

TEST(SplitWords, WhatCannotBeReadIsASentence) {
    for (const char* text : {"", "   ", "''", "'' x"}) {
        EXPECT_NE(std::string::npos, split(text).front().find("has no word to run")) << text;
    }
    EXPECT_NE(std::string::npos, split("echo 'a").front().find("its ' is not closed"));
    EXPECT_NE(std::string::npos, split("echo \"a'").front().find("its \" is not closed"));
    EXPECT_NE(std::string::npos, split("echo a\\").front().find("backslash"));
}

}  // namespace
}  // namespace trinco::program
