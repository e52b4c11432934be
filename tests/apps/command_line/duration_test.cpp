#include "apps/trinco/command_line/duration.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <variant>

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

std::chrono::milliseconds length_of(std::string_view text) {
    const auto read = parse_duration(text);
    if (const auto* const wrong = std::get_if<std::string>(&read)) {
        ADD_FAILURE() << *wrong;
        return -1ms;
    }
    return std::get<std::chrono::milliseconds>(read);
}

std::string complaint_of(std::string_view text) {
    const auto read = parse_duration(text);
    const auto* const wrong = std::get_if<std::string>(&read);
    return wrong == nullptr ? "" : *wrong;
}

TEST(Duration, ReadsANumberAndAUnit) {
    EXPECT_EQ(250ms, length_of("250ms"));
    EXPECT_EQ(30s, length_of("30s"));
    EXPECT_EQ(5min, length_of("5m"));
    EXPECT_EQ(5min, length_of("5min"));
    EXPECT_EQ(2h, length_of("2h"));
    EXPECT_EQ(48h, length_of("2d"));
    EXPECT_EQ(1500ms, length_of("1.5s"));
    EXPECT_EQ(90s, length_of("1.5min"));
    EXPECT_EQ(500ms, length_of(".5s"));
    EXPECT_EQ(1ms, length_of("0.6ms"));
}

TEST(Duration, ReadsSeveralUnitsTheLargerFirst) {
    EXPECT_EQ(90min, length_of("1h30m"));
    EXPECT_EQ(63s, length_of("1 min 3 s"));
    EXPECT_EQ(1s, length_of("1 s"));
    EXPECT_EQ(26h + 1min + 500ms, length_of("1d2h1min500ms"));
    EXPECT_EQ(24h * 37'000, length_of("36499d 24h") + 24h * 500);
}

// What is printed can be typed; printing it again is the same.
RC_GTEST_PROP(Duration, WordsAreReadBack, ()) {
    const std::chrono::milliseconds d(*rc::gen::inRange<std::int64_t>(0, 400'000'000'000));
    const auto words = duration_words(d);
    RC_ASSERT(duration_words(length_of(words)) == words);
    std::string dense = words;
    std::erase(dense, ' ');
    RC_ASSERT(length_of(dense) == length_of(words));
}

TEST(Duration, ZeroNeedsNoUnit) {
    EXPECT_EQ(0ms, length_of("0"));
    EXPECT_EQ(0ms, length_of("0s"));
}

TEST(Duration, WithoutAUnitSaysWhatWasMeant) {
    EXPECT_EQ("\"30\" has no unit: 30s are seconds, 30ms milliseconds", complaint_of("30"));
    EXPECT_EQ("\"0.5\" has no unit: 0.5s are seconds, 0.5ms milliseconds", complaint_of("0.5"));
}

TEST(Duration, OtherTextsGetOneSentence) {
    EXPECT_EQ("\"-3s\" is negative", complaint_of("-3s"));
    EXPECT_EQ("\"-3\" is negative", complaint_of("-3"));
    EXPECT_EQ("\"3 sec\" has the unknown unit \"sec\"; units are ms, s, min (or m), h and d",
              complaint_of("3 sec"));
    EXPECT_EQ("\"1h30\" has no unit behind its last number: 30s are seconds, 30ms milliseconds",
              complaint_of("1h30"));
    for (const char* const text : {"30m1h", "1s1s", "1m1min"}) {
        EXPECT_NE(std::string::npos, complaint_of(text).find("the larger unit comes first"))
            << text;
    }
    EXPECT_EQ("\"30 \" has no unit behind its last number: 30s are seconds, 30ms milliseconds",
              complaint_of("30 "));
    EXPECT_EQ("\"3S\" has the unknown unit \"S\"; units are ms, s, min (or m), h and d",
              complaint_of("3S"));
    for (const char* const text : {"", "s", "soon", "+3s", " 3s", "nan", "infs", "--wait", "0x1p3s",
                                   "3s ", "3  s", "1h 30", "1h-30m", "1h,30m"}) {
        EXPECT_NE("", complaint_of(text)) << text;
    }
    EXPECT_EQ("\"1000000d\" is longer than a century", complaint_of("1000000d"));
    EXPECT_NE(std::string::npos, complaint_of(std::string(400, '9') + "s").find("a century"));
    EXPECT_EQ(std::string::npos, complaint_of("\x1b[31m").find('\x1b'));
}

RC_GTEST_PROP(Duration, OptionTextIsReadBackExactly, ()) {
    const std::chrono::milliseconds d(*rc::gen::inRange<std::int64_t>(0, 400'000'000'000));
    RC_ASSERT(length_of(duration_option(d)) == d);
}

TEST(Duration, OptionTextHasTheLargestUnit) {
    EXPECT_EQ("0s", duration_option(0ms));
    EXPECT_EQ("1500ms", duration_option(1500ms));
    EXPECT_EQ("90s", duration_option(90s));
    EXPECT_EQ("5min", duration_option(300s));
    EXPECT_EQ("365d", duration_option(365 * 24h));
}

TEST(Duration, WordsAreRoundedToWhatIsWorthSaying) {
    EXPECT_EQ("0 ms", duration_words(0ms));
    EXPECT_EQ("999 ms", duration_words(999ms));
    EXPECT_EQ("1 s", duration_words(1s));
    EXPECT_EQ("1.5 s", duration_words(1460ms));
    EXPECT_EQ("59.9 s", duration_words(59'949ms));
    EXPECT_EQ("1 min", duration_words(59'950ms));
    EXPECT_EQ("3 min 20 s", duration_words(200s));
    EXPECT_EQ("1 h", duration_words(59min + 59'500ms));
    EXPECT_EQ("2 h 5 min", duration_words(2h + 5min + 20s));
    EXPECT_EQ("1 d", duration_words(23h + 59min + 31s));
    EXPECT_EQ("3 d 4 h", duration_words(76h + 10min));
    EXPECT_EQ("-2 s", duration_words(-2s));
}

}  // namespace
}  // namespace trinco::program
