#include "store/redis/redis_steps.hpp"

#include <gtest/gtest.h>

#include <string>

#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

std::string refused(const redis_step& step, std::string line) {
    const auto refusal = refusal_of(step, resp_reply::error_of(std::move(line)));
    return refusal ? refusal->why : "not refused";
}

TEST(RedisSteps, a_reply_that_is_no_error_is_no_refusal) {
    EXPECT_FALSE(refusal_of({{"SELECT", "2"}}, resp_reply::of("OK")));
}

TEST(RedisSteps, the_servers_line_is_shown_whole) {
    EXPECT_EQ("the server refused SELECT: \"ERR DB index is out of range\"",
              refused({{"SELECT", "99"}}, "ERR DB index is out of range"));
    EXPECT_EQ("the server refused AUTH: \"WRONGPASS invalid username-password pair\"",
              refused({{"AUTH", "ann", "geheim"}}, "WRONGPASS invalid username-password pair"));
}

TEST(RedisSteps, a_line_is_printable_and_bounded) {
    const auto shown = refused({{"SELECT", "1"}}, "ERR \x1b[31m" + std::string(5'000, 'x'));
    EXPECT_NE(std::string::npos, shown.find("ERR \\x1b[31m")) << shown;
    EXPECT_LT(shown.size(), 300U);
    EXPECT_EQ(std::string::npos, shown.find('\x1b'));
}

TEST(RedisSteps, a_line_that_may_repeat_the_password_is_not_shown) {
    const redis_step step{{"AUTH", "ann", "correct horse battery"}};
    const std::string kind = "the server refused AUTH: ERR";
    EXPECT_EQ(kind, refused(step, "ERR unknown command 'AUTH', with args beginning with: 'ann' "));
    EXPECT_EQ(kind, refused(step, "ERR cannot use correct horse battery"));
    // Cut, and with bytes of it replaced.
    EXPECT_EQ(kind, refused(step, "ERR cannot use ...ct horse bat"));
    EXPECT_EQ(kind, refused({{"AUTH", "xy"}}, "ERR syntax 'xy'"));
}

TEST(RedisSteps, who_is_not_let_in_is_denied) {
    for (const char* line : {"NOAUTH a", "WRONGPASS b", "NOPERM c"}) {
        EXPECT_EQ(errc::denied, refusal_of({{"PING"}}, resp_reply::error_of(line))->error);
    }
    EXPECT_EQ(errc::unavailable, refusal_of({{"PING"}}, resp_reply::error_of("LOADING d"))->error);
}

}  // namespace
}  // namespace trinco::detail
