#include "core/names.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

using check = std::optional<std::string> (*)(std::string_view);

TEST(Names, EveryGoodWordIsTaken) {
    for (const check c : {check_breaker_name, check_namespace, check_instance, check_voter}) {
        for (const char* name : {"a", "Z9", "pay-ments", "a.b_c:d", "..", "-"}) {
            EXPECT_EQ(c(name), std::nullopt) << name;
        }
    }
    EXPECT_EQ(check_breaker_name(std::string(128, 'x')), std::nullopt);
    EXPECT_EQ(check_voter(std::string(64, 'x')), std::nullopt);
}

TEST(Names, EveryByteOutsideTheAlphabetIsRefused) {
    const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
    for (int byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        const bool word = (letters + ":-").find(c) != std::string::npos;
        const bool lock = (letters + "/-").find(c) != std::string::npos;
        const std::string name = {'x', c, 'x'};
        EXPECT_EQ(!check_breaker_name(name), word) << byte;
        EXPECT_EQ(!check_namespace(name), word) << byte;
        EXPECT_EQ(!check_lock_name(name), lock) << byte;
    }
}

TEST(Names, EachRefusalIsOneSentenceWithWhatValueAndRange) {
    struct refused {
        check by;
        std::string name;
        const char* sentence;
    };
    const std::string word = "characters of A-Z a-z 0-9 . _ : -";
    const std::string path =
        "1 to 200 characters of A-Z a-z 0-9 . _ / -, with no empty or \"..\" segment and no '/' at "
        "the end; one '/' may lead";
    const refused table[] = {
        {check_breaker_name, "", "the name of a breaker is \"\", but must be 1 to 128 "},
        {check_breaker_name, "a b", "the name of a breaker is \"a b\", but must be 1 to 128 "},
        {check_breaker_name, "a{b}", "the name of a breaker is \"a{b}\", but must be 1 to 128 "},
        {check_breaker_name, std::string("a\0b", 3),
         "the name of a breaker is \"a\\x00b\", but must be 1 to 128 "},
        {check_namespace, "a/b", "the namespace is \"a/b\", but must be 1 to 64 "},
        {check_instance, "\xff", "the instance is \"\\xff\", but must be 1 to 64 "},
        {check_voter, "\x1b[2J", "the voter is \"\\x1b[2J\", but must be 1 to 64 "},
    };
    for (const auto& t : table) EXPECT_EQ(t.by(t.name).value_or("taken"), t.sentence + word);
    EXPECT_EQ(check_lock_name("a//b").value_or("taken"),
              "the name of a lock is \"a//b\", but must be " + path);
}

TEST(Names, OneByteTooLongIsRefusedAndShownInPart) {
    const std::string shown = "\"" + std::string(64, 'x') + "...\" ";
    const auto breaker = check_breaker_name(std::string(129, 'x'));
    ASSERT_TRUE(breaker);
    EXPECT_NE(breaker->find(shown + "(129 bytes)"), std::string::npos) << *breaker;
    const auto voter = check_voter(std::string(65, 'x'));
    ASSERT_TRUE(voter);
    EXPECT_NE(voter->find(shown + "(65 bytes)"), std::string::npos) << *voter;
    EXPECT_LT(check_lock_name(std::string(1'000'000, '\n'))->size(), 600U);
}

TEST(Names, LockNamesArePathsThatLeadNowhereElse) {
    for (const char* name : {"a", "/a", "a/b.c/d-e_f", "/a/b", "a/...", "a/.b", ".", "..."}) {
        EXPECT_EQ(check_lock_name(name), std::nullopt) << name;
    }
    for (const char* name :
         {"", "/", "//a", "a/", "a//b", "/a/", "..", "/..", "../a", "a/..", "a/../b", "a:b"}) {
        EXPECT_TRUE(check_lock_name(name)) << name;
    }
    EXPECT_EQ(check_lock_name(std::string(200, 'x')), std::nullopt);
    EXPECT_TRUE(check_lock_name(std::string(201, 'x')));
}

TEST(Names, OneLineIsTextWithoutControlCharacters) {
    EXPECT_TRUE(is_one_line(""));
    EXPECT_TRUE(is_one_line("incident 7: \xc3\x9c"));
    for (const char* bad : {"\n", "a\r", "\x1b[0m", "\t", "\x7f"}) EXPECT_FALSE(is_one_line(bad));
    EXPECT_FALSE(is_one_line(std::string_view("\0", 1)));
}

TEST(Quoted, EscapesAndBounds) {
    EXPECT_EQ(detail::quoted("plain"), "\"plain\"");
    EXPECT_EQ(detail::quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
    EXPECT_EQ(detail::quoted("\r\n\x7f\xc3\xa9"), "\"\\x0d\\x0a\\x7f\\xc3\\xa9\"");
    EXPECT_EQ(detail::quoted("abcdef", 3), "\"abc...\" (6 bytes)");
    EXPECT_EQ(detail::quoted("abc", 3), "\"abc\"");
}

}  // namespace
}  // namespace trinco::detail
