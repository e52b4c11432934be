// What holds of every command that there is, and of those to come.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "apps/trinco/command_line/command.hpp"
#include "apps/trinco/help/help.hpp"

namespace trinco::program {
namespace {

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

TEST(CommandTable, EachNameAndVerbIsThereOnce) {
    std::set<std::string> seen;
    for (const command_entry& entry : command_table()) {
        EXPECT_TRUE(seen.insert(called(entry)).second) << called(entry);
        EXPECT_EQ(&entry, find_command(entry.name, entry.verb)) << called(entry);
    }
}

TEST(CommandTable, VerbsRunACommandAndNounsManage) {
    for (const command_entry& entry : command_table()) {
        if (entry.hidden) continue;
        EXPECT_FALSE(entry.runs_a_command && !entry.verb.empty()) << called(entry);
        EXPECT_EQ(entry.runs_a_command, has(entry.usage, " -- ")) << called(entry);
    }
}

TEST(CommandTable, UsageAndSummaryAreOneLineEach) {
    for (const command_entry& entry : command_table()) {
        EXPECT_TRUE(entry.usage.starts_with(called(entry))) << called(entry);
        EXPECT_FALSE(entry.summary.empty()) << called(entry);
        EXPECT_FALSE(entry.summary.ends_with('.')) << entry.summary;
        for (const std::string_view line : {entry.usage, entry.summary}) {
            EXPECT_FALSE(has(line, "\n")) << line;
            EXPECT_LE(line.size(), 80U) << line;
        }
    }
}

TEST(CommandTable, EachListedCommandHasTwoExamplesOfItself) {
    for (const command_entry& entry : command_table()) {
        if (entry.hidden) continue;
        const std::string_view all = entry.examples;
        EXPECT_EQ(1, std::count(all.begin(), all.end(), '\n')) << called(entry);
        EXPECT_TRUE(all.starts_with(entry.name)) << called(entry);
        EXPECT_TRUE(has(all, "\n" + std::string(entry.name))) << called(entry);
    }
}

TEST(CommandTable, EachCommandDeclaresItsOptionsOnceWithHelp) {
    for (const command_entry& entry : command_table()) {
        const auto made = entry.make();
        ASSERT_NE(nullptr, made) << called(entry);
        arguments args;
        made->declare(args);
        const auto names = args.option_names();
        EXPECT_EQ(names.size(), std::set<std::string>(names.begin(), names.end()).size());
        const std::string text = args.help_text();
        for (const std::string& name : names) EXPECT_TRUE(has(text, name)) << name;
    }
}

TEST(Help, OfEachCommandHasUsageSummaryOptionsAndExamples) {
    for (const command_entry& entry : command_table()) {
        if (entry.hidden) continue;
        const std::string text = help_on_command(entry);
        EXPECT_TRUE(text.starts_with("usage: trinco " + std::string(entry.usage) + "\n")) << text;
        EXPECT_TRUE(has(text, "\noptions\n"));
        EXPECT_TRUE(has(text, "\nexamples\n  trinco " + std::string(entry.name)));
        for (std::size_t begin = 0; begin < text.size();) {
            const auto end = text.find('\n', begin);
            EXPECT_LE(end - begin, 100U) << text.substr(begin, end - begin);
            begin = end + 1;
        }
    }
}

TEST(Help, OfEachNounHasItsVerbs) {
    for (const command_entry& entry : command_table()) {
        if (entry.hidden || entry.verb.empty()) continue;
        EXPECT_TRUE(
            has(help_on_noun(entry.name), std::string(entry.name) + " " + std::string(entry.verb)))
            << called(entry);
    }
}

TEST(Help, TheOverviewHasEachListedCommandAndEachTopic) {
    const std::string text = help_overview();
    for (const command_entry& entry : command_table()) {
        const std::string name = "\n  trinco " + std::string(entry.name);
        const bool listed = has(text, name + " ") || has(text, name + "\n");
        EXPECT_EQ(!entry.hidden, listed) << called(entry);
        EXPECT_TRUE(entry.hidden || has(text, entry.verb)) << called(entry);
    }
    for (const std::string_view topic : help_topics()) {
        EXPECT_TRUE(has(text, "\n  " + std::string(topic) + " ")) << topic;
        EXPECT_FALSE(help_on_topic(topic).empty()) << topic;
    }
}

TEST(Help, NoTopicHasTheNameOfACommand) {
    for (const std::string_view topic : help_topics()) {
        // 'trinco help config' is the file; the command is explained by 'trinco help config show'.
        if (topic == "config") continue;
        EXPECT_EQ(nullptr, find_command(topic)) << topic;
    }
    EXPECT_EQ("", help_on_topic("frobnicate"));
}

TEST(Nouns, AreFoundByTheirPluralAndSingular) {
    EXPECT_EQ("config", noun_of("config"));
    EXPECT_EQ("", noun_of("version"));
    EXPECT_EQ("", noun_of("frobnicate"));
    EXPECT_EQ("", noun_of(""));
    EXPECT_EQ("breakers", noun_of("breakers"));
    EXPECT_EQ("breakers", noun_of("breaker"));
    EXPECT_EQ("locks", noun_of("locks"));
    EXPECT_EQ("", noun_of("lock"));  // a command of its own
}

}  // namespace
}  // namespace trinco::program
