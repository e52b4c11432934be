// What the end of a command says about the dependency.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <variant>

#include "apps/trinco/call/verdicts.hpp"

namespace trinco::program {
namespace {

using how = command_end::how_t;

exit_code_set codes(std::string_view text) {
    return std::get<exit_code_set>(parse_exit_codes("--failure-exit", text));
}

outcome exited(int code, const exit_rules& rules = {}, bool passed_on = false) {
    return outcome_of({.how = how::exited, .number = code}, passed_on, rules);
}

outcome signaled(int number) {
    return outcome_of({.how = how::signaled, .number = number}, false, {});
}

TEST(ExitCodes, AreNumbersAndRanges) {
    const exit_code_set some = codes("1,2,10-20,255,0");
    for (int n = 0; n < 256; ++n) {
        const bool is_in = n <= 2 || (n >= 10 && n <= 20) || n == 255;
        EXPECT_EQ(is_in, some.test(static_cast<std::size_t>(n))) << n;
    }
    EXPECT_EQ(1U, codes("7-7").count());
}

TEST(ExitCodes, AreNothingElse) {
    for (const char* text : {"", ",", "1,", ",1", "1,,2", "256", "-1", "1-", "-", "20-10", "1-2-3",
                             "a", "1 ,2", "0x1", "1.5", "+1", "99999999999999999999"}) {
        const auto read = parse_exit_codes("--failure-exit", text);
        const auto* const why = std::get_if<std::string>(&read);
        ASSERT_NE(nullptr, why) << text;
        EXPECT_TRUE(why->starts_with("--failure-exit \"" + std::string(text) + "\"")) << *why;
        EXPECT_NE(std::string::npos, why->find("0 to 255")) << *why;
    }
}

TEST(ExitRules, ACodeIsInOneListOnly) {
    EXPECT_FALSE(check_exit_rules({}));
    EXPECT_FALSE(check_exit_rules({codes("1-9"), codes("10")}));
    EXPECT_FALSE(check_exit_rules({{}, codes("0-255")}));
    const auto why = check_exit_rules({codes("1-9"), codes("8-20")});
    ASSERT_TRUE(why);
    EXPECT_NE(std::string::npos, why->find("exit code 8 ")) << *why;
}

TEST(Outcome, OfExitCodes) {
    EXPECT_EQ(outcome::success, exited(0));
    for (const int code : {1, 2, 75, 124, 126, 127, 128, 137, 139, 255}) {
        EXPECT_EQ(outcome::failure, exited(code)) << code;
    }
}

TEST(Outcome, OfExitCodesThatAreNamed) {
    const exit_rules rules{codes("1,10-20"), codes("75")};
    EXPECT_EQ(outcome::failure, exited(1, rules));
    EXPECT_EQ(outcome::failure, exited(20, rules));
    EXPECT_EQ(outcome::success, exited(2, rules));
    EXPECT_EQ(outcome::success, exited(0, rules));
    EXPECT_EQ(outcome::ignored, exited(75, rules));
    EXPECT_EQ(outcome::failure, exited(0, {codes("0"), {}}));
    EXPECT_EQ(outcome::ignored, exited(0, {{}, codes("0")}));
}

TEST(Outcome, OfSignals) {
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
        EXPECT_EQ(outcome::ignored, signaled(s)) << s;
        EXPECT_EQ(outcome::ignored, exited(128 + s)) << s;
        EXPECT_EQ(outcome::failure, exited(128 + s, {codes("128-255"), {}})) << s;
    }
    for (const int s : {SIGSEGV, SIGABRT, SIGKILL, SIGUSR1}) {
        EXPECT_EQ(outcome::failure, signaled(s)) << s;
    }
}

TEST(Outcome, OfACommandThatSomebodyInterrupted) {
    EXPECT_EQ(outcome::ignored, exited(1, {}, true));
    EXPECT_EQ(outcome::success, exited(0, {}, true));  // it did its work all the same
    EXPECT_EQ(outcome::ignored, exited(1, {codes("1"), {}}, true));
}

TEST(Outcome, OfACommandThatRanOutOfTime) {
    command_end end{.how = how::exited, .number = 0};
    end.acted = true;
    EXPECT_EQ(outcome::failure, outcome_of(end, false, {}));
    EXPECT_EQ(outcome::failure, outcome_of(end, false, {{}, codes("0")}));
    end = {.how = how::signaled, .number = SIGTERM};
    end.acted = true;
    EXPECT_EQ(outcome::failure, outcome_of(end, true, {}));
}

TEST(Outcome, OfACommandThatDidNotRun) {
    EXPECT_EQ(outcome::ignored, outcome_of({.how = how::not_started, .number = ENOENT}, false, {}));
    EXPECT_EQ(outcome::ignored, outcome_of({.how = how::guardian_lost}, false, {}));
}

}  // namespace
}  // namespace trinco::program
