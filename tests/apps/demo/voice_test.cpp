#include "apps/trinco/demo/voice.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <regex>
#include <string>

#include "apps/trinco/demo/summary.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

std::string without_colours(const std::string& text) {
    return std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
}

TEST(DemoRow, HasLabelBarAndCells) {
    const view_row row{.label = "stock", .filled = 0.5, .cells = {{"50 left"}, {"of 100"}}};
    EXPECT_EQ(" stock      [###############---------------]  50 left  of 100",
              drawn(row, 79, false));
}

TEST(DemoRow, BarsStayWithinTheirBounds) {
    EXPECT_NE(
        std::string::npos,
        drawn({.label = "a", .filled = 7.0}, 79, false).find("[##############################]"));
    EXPECT_NE(
        std::string::npos,
        drawn({.label = "a", .filled = -1.0}, 79, false).find("[------------------------------]"));
}

TEST(DemoRow, ColoursChangeNothingButColours) {
    const view_row row{.label = "gateway", .cells = {{"hangs", tone::bad}, {"calls 3"}}};
    const std::string coloured = drawn(row, 79, true);
    EXPECT_NE(std::string::npos, coloured.find("\x1b[31mhangs\x1b[0m"));
    EXPECT_EQ(drawn(row, 79, false), without_colours(coloured));
}

RC_GTEST_PROP(DemoRow, IsNeverWiderThanItMay, (const std::string& label, const std::string& text)) {
    const auto width = *rc::gen::inRange<std::size_t>(1, 100);
    const view_row row{.label = label, .filled = 0.3, .cells = {{text, tone::bad}, {text}}};
    const std::string line = without_colours(drawn(row, width, true));
    RC_ASSERT(line.size() <= width);
    for (const char c : line) RC_ASSERT(c >= ' ' && c <= '~');
}

// What a voice wrote.
class Voice : public testing::Test {
protected:
    Voice() { EXPECT_EQ(0, ::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK)); }
    ~Voice() override {
        for (const int end : pipe_) ::close(end);
    }

    [[nodiscard]] std::unique_ptr<voice> speaker(form as) {
        voice_settings with;
        with.as = as;
        with.descriptor = pipe_[1];
        with.since = std::chrono::steady_clock::now();
        with.on_deaf = [this](int error) { deaf_ = error; };
        return make_voice(with);
    }

    [[nodiscard]] std::string written() const {
        std::array<char, 65'536> text{};
        const ::ssize_t length = ::read(pipe_[0], text.data(), text.size());
        return {text.data(), static_cast<std::size_t>(std::max<::ssize_t>(length, 0))};
    }

    std::array<int, 2> pipe_{};
    int deaf_ = 0;
};

TEST_F(Voice, PlainLinesCarryTheTime) {
    const auto said = speaker(form::plain);
    said->show({{.label = "stock"}});
    said->tell("sold", "Ann has bought ticket 1", {});
    EXPECT_TRUE(std::regex_match(written(), std::regex(" +[0-9]+\\.[0-9] s  Ann has bought "
                                                       "ticket 1\n")));
}

TEST_F(Voice, JsonLinesCarryActEventAndFigures) {
    const auto said = speaker(form::json);
    said->enter("tickets");
    said->tell("sold", "Ann has \"it\"", json_object().add("ticket", 1));
    said->enter({});
    said->tell("end", "over", {});
    EXPECT_TRUE(std::regex_match(
        written(), std::regex(R"(\{"schema":1,"elapsed_ms":\d+,"act":"tickets","event":"sold",)"
                              R"("text":"Ann has \\"it\\"","figures":\{"ticket":1\}\}\n)"
                              R"(\{"schema":1,"elapsed_ms":\d+,"event":"end","text":"over"\}\n)")));
}

TEST_F(Voice, TellsWhenNobodyListens) {
    const auto said = speaker(form::plain);
    ::close(pipe_[0]);
    pipe_[0] = ::open("/dev/null", O_RDONLY);
    said->tell("sold", "Ann has bought ticket 1", {});
    EXPECT_EQ(EPIPE, deaf_);
}

constexpr act tickets{"tickets", "The last ticket", "scene", nullptr};

programme_result result(bool held) {
    programme_result seen;
    seen.nothing_left = true;
    act_result one;
    one.claims = {{"first", true, "the first holds"}, {"second", held, "the second"}};
    one.figures.add("sold", 100);
    seen.acts.push_back({&tickets, one});
    return seen;
}

TEST(DemoSummary, SaysWhatHeld) {
    const std::string text = summary_text({{&tickets}, 7}, result(true), false);
    EXPECT_NE(std::string::npos, text.find("  yes  the second\n")) << text;
    EXPECT_NE(std::string::npos, text.find("All of it held")) << text;
    EXPECT_NE(std::string::npos, text.find("seed 7")) << text;
    EXPECT_EQ(text, without_colours(summary_text({{&tickets}, 7}, result(true), true)));
}

TEST(DemoSummary, SaysWhatDidNot) {
    const programme_result seen = result(false);
    EXPECT_FALSE(seen.held());
    const std::string text = summary_text({{&tickets}, 7}, seen, false);
    EXPECT_NE(std::string::npos, text.find("  NO   the second\n")) << text;
    EXPECT_NE(std::string::npos, text.find("NOT all of it held")) << text;
}

TEST(DemoSummary, AnActWithoutClaimsOrAnyLeftoverIsAFailure) {
    programme_result seen = result(true);
    EXPECT_TRUE(seen.held());
    seen.nothing_left = false;
    EXPECT_FALSE(seen.held());
    seen.nothing_left = true;
    seen.acts[0].seen.claims.clear();
    EXPECT_FALSE(seen.held());
    seen.acts.clear();
    EXPECT_FALSE(seen.held());
}

TEST(DemoSummary, JsonHasAllActs) {
    EXPECT_EQ(R"({"schema":1,"event":"result","seed":7,"ok":true,"elapsed_ms":0,)"
              R"("nothing_left":true,"tickets":{"sold":100,"ok":true,"claims":{"first":true,)"
              R"("second":true},"failure":null},"breaker":null,"invoice":null,"leader":null})"
              "\n",
              summary_json({{&tickets}, 7}, result(true)));
}

}  // namespace
}  // namespace trinco::program::demo
