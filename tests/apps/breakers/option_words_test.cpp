// Options as people write them, and as they travel.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/help/help.hpp"
#include "core/breaker/policy.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

TEST(OptionWords, ValuesAreReadAsTheTableOfOptionsShowsThem) {
    breaker_options o;
    EXPECT_FALSE(assign_option("failure_rate", "0.3", o));
    EXPECT_FALSE(assign_option("window", "1.5min", o));
    EXPECT_FALSE(assign_option("minimum_calls", "12", o));
    EXPECT_FALSE(assign_option("recovery_ramp", "0", o));
    EXPECT_FALSE(assign_option("consistency", "strict", o));
    EXPECT_EQ(0.3, o.failure_rate);
    EXPECT_EQ(90s, o.window);
    EXPECT_EQ(12U, o.minimum_calls);
    EXPECT_EQ(consistency::strict, o.consistency);
    o.failure_count = 3;
    EXPECT_FALSE(assign_option("failure_count", "off", o));
    EXPECT_EQ(0U, o.failure_count);
}

TEST(OptionWords, WhoWritesAPercentageWithoutItsSignIsAsked) {
    breaker_options o;
    const auto ends = [&](const char* value, std::string_view with) {
        return assign_option("failure_rate", value, o).value_or("").ends_with(with);
    };
    EXPECT_TRUE(ends("30", "; or do you mean 30%?"));
    EXPECT_FALSE(ends("300", "?"));
    EXPECT_FALSE(ends("half", "?"));
    EXPECT_EQ(breaker_options().failure_rate, o.failure_rate);
}

TEST(OptionWords, TheHelpMarksWhatCannotBeSetForAll) {
    const std::string help = help_options();
    std::size_t marked = 0;
    for (auto at = help.find("\n    set:"); at != std::string::npos;
         at = help.find("\n    set:", at + 1)) {
        ++marked;
    }
    std::size_t own = 0;
    for (const auto& option : detail::breaker_option_table())
        own += is_shared_option(option) ? 0 : 1;
    EXPECT_EQ(own, marked);
    EXPECT_GT(own, 0U);
}

TEST(OptionWords, WhatIsNoValueIsASentence) {
    breaker_options o;
    for (const auto& [key, value] :
         std::vector<std::pair<const char*, const char*>>{{"failure_rate", "half"},
                                                          {"failure_rate", ""},
                                                          {"window", "20"},
                                                          {"window", "soon"},
                                                          {"minimum_calls", "1.5"},
                                                          {"minimum_calls", "-1"},
                                                          {"minimum_calls", "off"},
                                                          {"consistency", "loose"},
                                                          {"open_for", "-1s"},
                                                          {"failure_rate", "0"},
                                                          {"failure_rate", "1.01"},
                                                          {"failure_rate", "nan"},
                                                          {"window", "99ms"},
                                                          {"window", "61min"},
                                                          {"half_open_probes", "0"}}) {
        const auto why = assign_option(key, value, o);
        ASSERT_TRUE(why) << key << "=" << value;
        EXPECT_NE(std::string::npos, why->find(key)) << *why;
    }
    EXPECT_EQ(breaker_options{}, o);
    EXPECT_EQ("there is no option \"failure_rat\" of breakers; did you mean failure_rate?",
              assign_option("failure_rat", "1", o));
    EXPECT_EQ("there is no option \"frobnicate\" of breakers; 'trinco help options' lists them",
              assign_option("frobnicate", "1", o));
    EXPECT_EQ(
        "the option error_threshold_percentage is called failure_rate here, and its unit is: share "
        "of 1; 'trinco help options' lists all",
        assign_option("error_threshold_percentage", "50", o));
    for (const auto& [key, here] : std::vector<std::pair<std::string, std::string>>{
             {"reset_timeout", "open_for"},
             {"cooldown_time", "open_for"},
             {"permitted_calls_in_half_open", "half_open_probes"}}) {
        EXPECT_NE(std::string::npos, assign_option(key, "1", o)->find(here)) << key;
    }
}

TEST(OptionWords, Pairs) {
    ASSERT_TRUE(split_pair("a=b=c"));
    EXPECT_EQ("a", split_pair("a=b=c")->key);
    EXPECT_EQ("b=c", split_pair("a=b=c")->value);
    EXPECT_TRUE(split_pair("a="));
    EXPECT_FALSE(split_pair("=b"));
    EXPECT_FALSE(split_pair("ab"));
    EXPECT_FALSE(split_pair(""));
}

TEST(OptionWords, WhatTravelsIsWhatTheRecordReads) {
    breaker_options o;
    std::string text;
    std::size_t shared = 0;
    for (const detail::option_row& row : detail::breaker_option_table()) {
        if (!is_shared_option(row)) continue;
        ++shared;
        text += (text.empty() ? "" : " ") + on_wire(row, o);
    }
    // All that the policy has, but for the mark that there are slow calls.
    EXPECT_EQ(18U, shared);
    const auto read = detail::parse_policy(text, {});
    ASSERT_TRUE(std::holds_alternative<detail::policy>(read));
    EXPECT_EQ(detail::policy_of(o), std::get<detail::policy>(read));
}

TEST(OptionWords, ATextOfTheStoreIsReadBack) {
    breaker_options o;
    o.failure_rate = 0.07;
    o.window = 123s;
    o.recovery_ramp = 4s;
    o.quorum = 3;
    const breaker_options back = options_of_text(detail::to_text(detail::policy_of(o)));
    EXPECT_EQ(o, back);
    EXPECT_EQ(breaker_options{}, options_of_text(""));
    EXPECT_EQ(breaker_options{}, options_of_text("  x=1 failure_rate= window_ms=never =  "));
}

TEST(OptionWords, AreShownAsTheyAreWritten) {
    breaker_options o;
    o.window = 90s;
    std::string text;
    for (const option_shown& shown : shared_options(o)) {
        text += std::string(shown.key) + "=" + shown.value + ";";
    }
    EXPECT_NE(std::string::npos, text.find("window=90 s;"));
    EXPECT_NE(std::string::npos, text.find("failure_count=off;"));
    EXPECT_EQ(std::string::npos, text.find("consistency"));
}

TEST(OptionWords, DifferencesAreNamedWithBothValues) {
    breaker_options here;
    breaker_options there;
    EXPECT_EQ("", differences(here, there));
    here.window = 30s;
    there.quorum = 1;
    there.store_timeout = 7s;  // each process's own
    EXPECT_EQ("window 30 s (there 10 s), quorum 2 (there 1)", differences(here, there));
}

}  // namespace
}  // namespace trinco::program
