#include "wire/resp/resp_writer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace trinco::detail {
namespace {

std::string written(const std::vector<std::string>& words) {
    return resp_command(words);
}

TEST(RespWriter, writes_an_array_of_bulk_strings) {
    EXPECT_EQ(written({"PING"}), "*1\r\n$4\r\nPING\r\n");
    EXPECT_EQ(written({"SET", "k", ""}), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
}

TEST(RespWriter, a_word_may_hold_any_byte) {
    const std::string odd("%s\r\n\0 \xff", 7);
    EXPECT_EQ(written({"ECHO", odd}), "*2\r\n$4\r\nECHO\r\n$7\r\n" + odd + "\r\n");
}

TEST(RespWriter, no_words_are_no_command) {
    EXPECT_EQ(written({}), "");
}

TEST(RespWriter, words_may_be_views) {
    const std::string long_one(12'345, 'x');
    const std::vector<std::string_view> words{"SET", "k", long_one};
    EXPECT_EQ(resp_command(words), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12345\r\n" + long_one + "\r\n");
}

}  // namespace
}  // namespace trinco::detail
