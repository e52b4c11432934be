#include "apps/trinco/command_line/arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/exit_codes.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using words = std::vector<std::string>;

// One of each kind.
struct Arguments : testing::Test {
    Arguments() {
        args.positional("NAME", name, "the lock");
        args.positional("OTHER", other, "another", arguments::need::optional);
        args.flag("--shared", shared, "with others");
        args.text("--reason", reason, "TEXT", "why");
        args.optional_text("--label", label, "TEXT", "of the holder");
        args.duration("--wait", wait, {0ms, 24h}, "how long");
        args.optional_duration("--ttl", ttl, {1s, 1h}, "how long it lives");
        args.number("-n,--permits", permits, {1, 100}, "how many");
        args.optional_number("--calls", calls, {0, 10}, "how many calls");
        args.optional_real("--rate", rate, {0.0, 1.0}, "a share");
        args.output_option(format);
    }

    std::string mistake(const words& typed) {
        const auto wrong = args.parse(typed, "lock");
        if (!wrong) return "";
        EXPECT_EQ(exit_usage, wrong->code);
        return wrong->sentence;
    }

    arguments args;
    std::string name;
    std::string other;
    bool shared = false;
    std::string reason = "none";
    std::optional<std::string> label;
    std::chrono::milliseconds wait{10s};
    std::optional<std::chrono::milliseconds> ttl;
    std::uint32_t permits = 1;
    std::optional<std::uint32_t> calls;
    std::optional<double> rate;
    std::string format = "table";
};

TEST_F(Arguments, DefaultsStay) {
    EXPECT_EQ("", mistake({"job"}));
    EXPECT_EQ("job", name);
    EXPECT_EQ("", other);
    EXPECT_FALSE(shared);
    EXPECT_EQ("none", reason);
    EXPECT_FALSE(label || ttl || calls || rate);
    EXPECT_EQ(10s, wait);
    EXPECT_EQ(1U, permits);
    EXPECT_EQ("table", format);
}

TEST_F(Arguments, ValuesStandBehindOrInTheOption) {
    EXPECT_EQ("", mistake({"--wait", "3s", "job", "--ttl=5s", "--reason=a b", "-n", "7", "x",
                           "--calls=0", "--rate", "0.25", "-ojson", "--shared", "--label", "l"}));
    EXPECT_EQ("job", name);
    EXPECT_EQ("x", other);
    EXPECT_TRUE(shared);
    EXPECT_EQ("a b", reason);
    EXPECT_EQ("l", label);
    EXPECT_EQ(3s, wait);
    EXPECT_EQ(5s, ttl);
    EXPECT_EQ(7U, permits);
    EXPECT_EQ(0U, calls);
    EXPECT_EQ(0.25, rate);
    EXPECT_EQ("json", format);
}

TEST_F(Arguments, AnEmptyValueIsAValue) {
    EXPECT_EQ("", mistake({"--reason=", "--label", "", "job"}));
    EXPECT_EQ("", reason);
    EXPECT_EQ("", label);
    EXPECT_EQ("job", name);
}

TEST_F(Arguments, AValueMayLookLikeAnOption) {
    EXPECT_EQ("", mistake({"job", "--reason", "--shared", "--label=-x=y"}));
    EXPECT_EQ("--shared", reason);
    EXPECT_EQ("-x=y", label);
    EXPECT_FALSE(shared);
}

TEST_F(Arguments, AnUnknownOptionIsAnsweredWithTheNearest) {
    EXPECT_EQ("there is no option \"--wiat\"; did you mean --wait?", mistake({"--wiat", "3s"}));
}

TEST_F(Arguments, AnUnknownOptionWithAValueIsNamedWithoutIt) {
    EXPECT_EQ("there is no option \"--wiat\"; did you mean --wait?", mistake({"job", "--wiat=3s"}));
}

TEST_F(Arguments, AnUnknownOptionWithoutANearOneIsAnsweredWithHelp) {
    EXPECT_EQ("there is no option \"--frobnicate\"; 'trinco lock --help' lists what there is",
              mistake({"job", "--frobnicate"}));
}

TEST_F(Arguments, AnUnknownShortOption) {
    EXPECT_EQ("there is no option \"-x\"; 'trinco lock --help' lists what there is",
              mistake({"job", "-x"}));
}

TEST_F(Arguments, AMissingValue) {
    EXPECT_EQ("\"--wait\" needs DURATION behind it", mistake({"job", "--wait"}));
}

TEST_F(Arguments, AnOptionGivenTwice) {
    EXPECT_EQ("--wait is given 2 times: \"1s\" and \"2s\"; once is enough",
              mistake({"job", "--wait", "1s", "--wait=2s"}));
}

TEST_F(Arguments, AFlagGivenTwiceIsHarmless) {
    EXPECT_EQ("", mistake({"job", "--shared", "--shared"}));
    EXPECT_TRUE(shared);
}

TEST_F(Arguments, AFlagTakesNoValue) {
    EXPECT_EQ("--shared takes no value, but has \"no\"", mistake({"job", "--shared=no"}));
}

TEST_F(Arguments, ADurationWithoutUnit) {
    EXPECT_EQ("--wait \"30\" has no unit: 30s are seconds, 30ms milliseconds",
              mistake({"job", "--wait", "30"}));
}

TEST_F(Arguments, ANegativeDuration) {
    EXPECT_EQ("--ttl \"-3s\" is negative; it is 1s to 1h", mistake({"job", "--ttl", "-3s"}));
}

TEST_F(Arguments, ADurationOutsideOfItsRange) {
    EXPECT_EQ("--ttl \"2h\" is outside of 1s to 1h", mistake({"job", "--ttl", "2h"}));
    EXPECT_FALSE(ttl);
}

TEST_F(Arguments, ANumberOutsideOfItsRange) {
    for (const char* const text : {"0", "101", "-1", "1.5", "x", "", "99999999999999999999"}) {
        arguments own;
        std::uint32_t n = 1;
        own.number("-n,--permits", n, {1, 100}, "how many");
        const auto wrong = own.parse(words{"-n", text});
        ASSERT_TRUE(wrong) << text;
        EXPECT_EQ("--permits \"" + std::string(text) + "\" is not a number of 1 to 100",
                  wrong->sentence);
        EXPECT_EQ(1U, n);
    }
}

TEST_F(Arguments, AShareOutsideOfItsRange) {
    EXPECT_EQ("--rate \"nan\" is not a number of 0 to 1", mistake({"job", "--rate", "nan"}));
}

TEST_F(Arguments, AWordThatIsNoChoice) {
    EXPECT_EQ("--output \"xml\" is not known; it is table, json or name",
              mistake({"job", "-o", "xml"}));
}

TEST_F(Arguments, AMissingPositional) {
    EXPECT_EQ("NAME is missing: the lock; 'trinco lock --help' lists what there is", mistake({}));
}

TEST_F(Arguments, APositionalTooMany) {
    EXPECT_EQ("\"c\" was not expected; 'trinco lock --help' lists what there is",
              mistake({"a", "b", "c", "d"}));
    EXPECT_EQ("c", args.surplus());
}

TEST_F(Arguments, ASurplusIsKnownAlsoBeforeAnUnknownOption) {
    EXPECT_NE("", mistake({"a", "b", "curl", "-s"}));
    EXPECT_EQ("curl", args.surplus());
}

TEST_F(Arguments, WhatMayBeTheValueOfAnUnknownOptionIsNoSurplus) {
    EXPECT_EQ("there is no option \"--wiat\"; did you mean --wait?",
              mistake({"a", "b", "--wiat", "3s"}));
    EXPECT_FALSE(args.surplus());
}

TEST_F(Arguments, WhatIsNoOptionIsAWordWhateverItMeansElsewhere) {
    EXPECT_EQ("", mistake({"job", "++"}));
    EXPECT_EQ("++", other);
}

TEST_F(Arguments, LettersStandTogetherUpToAValue) {
    arguments own;
    bool verbose = false;
    bool quiet = false;
    own.flag("-v,--verbose", verbose, "more");
    own.flag("-q,--quiet", quiet, "less");
    own.number("-n,--permits", permits, {1, 100}, "how many");
    EXPECT_FALSE(own.parse(words{"-vqn", "7"}));
    EXPECT_TRUE(verbose && quiet);
    EXPECT_EQ(7U, permits);
    EXPECT_FALSE(own.wants_help());
}

TEST_F(Arguments, MistakesAmongLetters) {
    const auto said = [this](const words& typed) {
        arguments own;
        bool verbose = false;
        own.flag("-v,--verbose", verbose, "more");
        own.number("-n,--permits", permits, {1, 100}, "how many");
        const auto wrong = own.parse(typed, "lock");
        return own.wants_help() ? "help" : wrong ? wrong->sentence : "";
    };
    EXPECT_EQ("there is no option \"-vxn\"; 'trinco lock --help' lists what there is",
              said({"-vxn", "7"}));
    EXPECT_EQ("--verbose takes no value, but has \"true\"", said({"-v=true"}));
    EXPECT_EQ("\"-vn\" needs a value behind it", said({"-vn"}));
    EXPECT_EQ("--permits \"=7\" is not a number of 1 to 100", said({"-n", "=7"}));
    EXPECT_EQ("help", said({"-vh"}));
    EXPECT_EQ("there is no option \"---verbose\"; did you mean --verbose?", said({"---verbose"}));
    EXPECT_EQ("--verbose takes no value, but has \"\"", said({"--verbose="}));
}

TEST_F(Arguments, ADashAloneIsAPositional) {
    EXPECT_EQ("", mistake({"-"}));
    EXPECT_EQ("-", name);
}

TEST_F(Arguments, HelpCountsMoreThanMistakes) {
    EXPECT_EQ("", mistake({"--wiat", "--help"}));
    EXPECT_TRUE(args.wants_help());
}

TEST_F(Arguments, MistakesAreHarmlessToATerminal) {
    for (const words& typed : {words{"job", "--\x1b[31m"}, words{"job", "-\x1b"},
                               words{"job", "--wait", "\x1b[31m"}, words{"a", "b", "\x1b"}}) {
        arguments own;
        own.positional("NAME", name, "the lock");
        own.duration("--wait", wait, {0ms, 24h}, "how long");
        const auto wrong = own.parse(typed, "lock");
        ASSERT_TRUE(wrong);
        EXPECT_EQ(std::string::npos, wrong->sentence.find('\x1b'));
    }
}

TEST_F(Arguments, HelpShowsRangesAndDefaults) {
    const std::string text = args.help_text();
    const auto has = [&](std::string_view line) { return text.find(line) != std::string::npos; };
    EXPECT_TRUE(has("  NAME                          the lock\n")) << text;
    EXPECT_TRUE(has("  --wait DURATION               how long (0s to 1d, default 10s)\n"));
    EXPECT_TRUE(has("  --ttl DURATION                how long it lives (1s to 1h)\n"));
    EXPECT_TRUE(has("  -n, --permits NUMBER          how many (1 to 100, default 1)\n"));
    EXPECT_TRUE(has("  --rate NUMBER                 a share (0 to 1)\n"));
    EXPECT_TRUE(has("  -o, --output table|json|name  how rows are printed (default table)\n"));
    EXPECT_TRUE(has("  --shared                      with others\n"));
    EXPECT_TRUE(has("  -h, --help                    this text\n"));
}

TEST_F(Arguments, LongHelpIsWrappedBesideTheNames) {
    arguments own;
    bool yes = false;
    std::string sentence;
    for (int i = 0; i < 40; ++i) sentence += "word ";
    own.flag("--yes", yes, sentence + "end");
    for (std::size_t begin = 0; begin < own.help_text().size();) {
        const auto end = own.help_text().find('\n', begin);
        EXPECT_LE(end - begin, 96U);
        begin = end + 1;
    }
    EXPECT_NE(std::string::npos, own.help_text().find("\n              word"));
}

TEST(ArgumentsOfMany, TheLastPositionalsTakeWhatRemains) {
    arguments args;
    std::string name;
    words rest;
    args.positional("NAME", name, "the breaker");
    args.positionals("KEY=VALUE", rest, "options");
    EXPECT_FALSE(args.parse(words{"a", "x=1", "y=2"}));
    EXPECT_EQ((words{"x=1", "y=2"}), rest);
    EXPECT_FALSE(args.surplus());
}

TEST(ArgumentsOfMany, AreRequiredUnlessOptional) {
    arguments args;
    words rest;
    args.positionals("NAME", rest, "breakers");
    EXPECT_TRUE(args.parse(words{}));
    arguments relaxed;
    relaxed.positionals("NAME", rest, "breakers", arguments::need::optional);
    EXPECT_FALSE(relaxed.parse(words{}));
}

TEST(ArgumentsOfStores, EachCommandHasTheOptionsThatItCanUse) {
    const auto names = [](arguments::stores which) {
        arguments args;
        store_flags flags;
        args.store_options(flags, which);
        return args.option_names();
    };
    EXPECT_EQ((words{"--config", "--locks", "--prefix", "--help"}),
              names(arguments::stores::locks));
    EXPECT_EQ((words{"--config", "--breakers", "--namespace", "--instance", "--help"}),
              names(arguments::stores::breakers));
    EXPECT_EQ(7U, names(arguments::stores::both).size());
}

TEST(ArgumentsCompletion, KnowsCandidatesOfPlacesAndOptions) {
    arguments args;
    std::string name;
    std::string shell;
    std::string mode = "a";
    words rest;
    constexpr std::array<std::string_view, 2> modes = {"a", "b"};
    args.positional("NAME", name, "");
    args.positionals("SHELL", rest, "");
    args.text("-s,--shell", shell, "SHELL", "");
    args.choice("--mode", mode, modes, "");
    args.complete_with("SHELL", [] { return words{"bash"}; });
    args.complete_with("--shell", [] { return words{"zsh"}; });
    EXPECT_EQ((words{}), args.candidates_for(0));
    EXPECT_EQ((words{"bash"}), args.candidates_for(1));
    EXPECT_EQ((words{"bash"}), args.candidates_for(7));
    EXPECT_EQ((words{"zsh"}), args.candidates_for("-s"));
    EXPECT_EQ((words{"zsh"}), args.candidates_for("--shell"));
    EXPECT_EQ((words{"a", "b"}), args.candidates_for("--mode"));
    EXPECT_EQ((words{}), args.candidates_for("--none"));
    EXPECT_TRUE(args.takes_value("--mode"));
    EXPECT_FALSE(args.takes_value("--none"));
}

}  // namespace
}  // namespace trinco::program
