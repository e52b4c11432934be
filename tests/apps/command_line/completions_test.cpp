// What `trinco complete` answers, without a shell.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "apps/trinco/completion/completion_commands.hpp"
#include "apps/trinco/completion/scripts.hpp"

namespace trinco::program {
namespace {

using words = std::vector<std::string>;

words complete(words typed) {
    return completions(typed);
}

bool contains(const words& all, const std::string& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

TEST(Completions, OfTheFirstWordAreCommands) {
    const words all = complete({""});
    EXPECT_TRUE(contains(all, "version"));
    EXPECT_TRUE(contains(all, "lock"));
    EXPECT_TRUE(contains(all, "locks"));
    EXPECT_FALSE(contains(all, "complete"));  // hidden
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_EQ((words{"version"}), complete({"ver"}));
    EXPECT_EQ((words{}), complete({"frobnicate"}));
    EXPECT_EQ((words{"--help", "--version"}), complete({"-"}));
}

TEST(Completions, OfANounAreItsVerbs) {
    EXPECT_EQ((words{"show"}), complete({"config", ""}));
    EXPECT_TRUE(contains(complete({"breaker", "tr"}), "trip"));
    EXPECT_TRUE(contains(complete({"locks", "-"}), "--output"));
}

TEST(Completions, OfADashAreOptions) {
    EXPECT_EQ((words{"--locks"}), complete({"config", "show", "--lo"}));
    EXPECT_EQ((words{"--help", "--output"}), complete({"version", "-"}));
    EXPECT_TRUE(contains(complete({"lock", "job", "-"}), "--"));
    EXPECT_FALSE(contains(complete({"version", "-"}), "--"));
}

TEST(Completions, OfAnOptionAreItsValues) {
    EXPECT_EQ((words{"json", "table"}), complete({"version", "-o", ""}));
    EXPECT_EQ((words{"json"}), complete({"version", "--output", "j"}));
    EXPECT_EQ((words{"--output=json"}), complete({"version", "--output=j"}));
    EXPECT_EQ((words{}), complete({"config", "show", "--config", ""}));  // the shell's: a file
}

TEST(Completions, OfAPlaceAreItsCandidates) {
    EXPECT_EQ((words{"bash", "fish", "zsh"}), complete({"completion", ""}));
    EXPECT_EQ((words{}), complete({"completion", "bash", ""}));
    EXPECT_TRUE(contains(complete({"help", ""}), "exit-codes"));
    EXPECT_TRUE(contains(complete({"help", ""}), "lock"));
    EXPECT_TRUE(contains(complete({"help", "breakers", ""}), "trip"));
}

TEST(Completions, AreNoneBehindTheSeparator) {
    EXPECT_EQ((words{}), complete({"lock", "job", "--", ""}));
    EXPECT_EQ((words{}), complete({"lock", "job", "--", "ls", "-"}));
    EXPECT_EQ((words{}), complete({}));
}

TEST(Completions, MistakesBeforeDoNoHarm) {
    EXPECT_EQ((words{"--output"}), complete({"version", "--frobnicate", "--ou"}));
    EXPECT_EQ((words{}), complete({"frobnicate", "", ""}));
    EXPECT_EQ((words{}), complete({"locks", "frobnicate", ""}));
}

TEST(CompletionScript, IsThereForEachShell) {
    for (const char* const shell : {"bash", "zsh", "fish"}) {
        EXPECT_NE(std::string::npos, completion_script(shell).find("complete --")) << shell;
    }
    EXPECT_EQ("", completion_script("tcsh"));
}

}  // namespace
}  // namespace trinco::program
