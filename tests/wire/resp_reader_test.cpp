#include "wire/resp/resp_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trinco::detail {
namespace {

using kind = resp_reply::kind_t;
using fault_kind = resp_fault::kind_t;

// The only reply in the bytes.
resp_reply only(std::string_view bytes) {
    resp_reader reader;
    reader.feed(bytes);
    auto reply = reader.next();
    EXPECT_TRUE(reply && reader.idle() && !reader.next()) << bytes;
    return reply ? *reply : resp_reply{};
}

// The fault that reading them ends with.
resp_fault fault_of(std::string_view bytes, const resp_limits& limits = {}) {
    resp_reader reader(limits);
    reader.feed(bytes);
    while (reader.next()) continue;
    EXPECT_NE(reader.fault(), nullptr) << bytes;
    return reader.fault() != nullptr ? *reader.fault() : resp_fault{};
}

TEST(RespReader, reads_every_kind) {
    EXPECT_EQ(only("+OK\r\n"), resp_reply::of("OK"));
    EXPECT_EQ(only("+\r\n"), resp_reply::of(""));
    EXPECT_EQ(only(":-42\r\n"), resp_reply::of(-42));
    EXPECT_EQ(only(":9223372036854775807\r\n"), resp_reply::of(INT64_MAX));
    EXPECT_EQ(only(":-9223372036854775808\r\n"), resp_reply::of(INT64_MIN));
    const std::string any_bytes("a\r\nb\0", 5);
    EXPECT_EQ(only("$5\r\n" + any_bytes + "\r\n"), resp_reply::of(any_bytes));
    EXPECT_EQ(only("$0\r\n\r\n"), resp_reply::of(""));
    EXPECT_EQ(only("$-1\r\n"), resp_reply{});
    EXPECT_EQ(only("*-1\r\n"), resp_reply{});
    EXPECT_EQ(only("*0\r\n"), resp_reply::of(std::vector<resp_reply>{}));
    EXPECT_EQ(
        only("*2\r\n*1\r\n:1\r\n-ERR no\r\n"),
        resp_reply::of({resp_reply::of({resp_reply::of(1)}), resp_reply::error_of("ERR no")}));
}

TEST(RespReader, an_errors_first_word_says_its_kind) {
    EXPECT_EQ(only("-WRONGTYPE Operation against a key\r\n").error_word(), "WRONGTYPE");
    EXPECT_EQ(only("-LOADING\r\n").error_word(), "LOADING");
    EXPECT_EQ(only("+WRONGTYPE is a word\r\n").error_word(), "");
}

TEST(RespReader, gives_out_the_replies_of_a_pipeline_in_order) {
    resp_reader reader;
    std::string bytes;
    for (int i = 0; i < 1'000; ++i) bytes += ":" + std::to_string(i) + "\r\n";
    reader.feed(bytes);
    for (int i = 0; i < 1'000; ++i) ASSERT_EQ(reader.next(), resp_reply::of(i));
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.idle());
}

TEST(RespReader, is_not_idle_in_the_middle_of_a_reply) {
    resp_reader reader;
    EXPECT_TRUE(reader.idle());
    reader.feed("$3\r\na");
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.idle());
    reader.feed("bc\r\n");
    EXPECT_EQ(reader.next(), resp_reply::of("abc"));
    EXPECT_TRUE(reader.idle());
}

TEST(RespReader, what_is_no_reply_is_malformed) {
    for (const std::string bytes :
         {"HTTP/1.1 400 Bad Request\r\n", "hello\r\n", "\r\n", "$-2\r\n", "*-2\r\n", "$x\r\n",
          "*x\r\n", ":\r\n", ":1x\r\n", ":9223372036854775808\r\n", "$3\r\nabcde\r\n",
          "$3\r\na\r\n+OK\r\n", "*2\r\n:1\r\n?\r\n", "$99999999999999999999\r\n", "$3\r\nabcXX",
          "$1\r\nabc:1\r\n"}) {
        const auto fault = fault_of(bytes);
        EXPECT_EQ(fault.kind, fault_kind::malformed) << bytes << ": " << fault.sentence;
        EXPECT_TRUE(fault.sentence.starts_with("the server sent ")) << fault.sentence;
    }
}

TEST(RespReader, types_of_resp3_are_malformed) {
    for (const std::string bytes :
         {"%1\r\n+a\r\n:1\r\n", "~1\r\n:1\r\n", ",1.5\r\n", "#t\r\n", "(123\r\n", "=5\r\ntxt:a\r\n",
          ">1\r\n+a\r\n", "*2\r\n:1\r\n#t\r\n", "*1\r\n,1.5\r\n"}) {
        EXPECT_EQ(fault_of(bytes).kind, fault_kind::malformed) << bytes;
    }
}

TEST(RespReader, what_came_before_a_fault_is_given_out_and_nothing_after_it) {
    resp_reader reader;
    reader.feed(":1\r\n?\r\n");
    EXPECT_EQ(reader.next(), resp_reply::of(1));
    EXPECT_FALSE(reader.next());
    ASSERT_NE(reader.fault(), nullptr);
    reader.feed(":2\r\n");
    EXPECT_FALSE(reader.next());
}

TEST(RespReader, a_text_may_be_as_long_as_the_limit_and_no_longer) {
    const resp_limits limits = {.text = 10};
    resp_reader reader(limits);
    reader.feed("$10\r\n0123456789\r\n");
    EXPECT_EQ(reader.next(), resp_reply::of("0123456789"));
    const auto fault = fault_of("$11\r\n01234567890\r\n", limits);
    EXPECT_EQ(fault.kind, fault_kind::too_big);
    EXPECT_EQ(fault.sentence, "the server sent a text of 11 bytes; at most 10 are taken");
}

TEST(RespReader, a_reply_that_never_ends_is_a_fault_at_its_limit) {
    const resp_limits limits = {.bytes = 1'000};
    for (const std::string start : {"$900000000\r\n", "+", "*100000\r\n"}) {
        resp_reader reader(limits);
        reader.feed(start);
        std::size_t fed = 0;
        const std::string more = start == "*100000\r\n" ? ":1\r\n:1\r\n:1\r\n" : "aaaaaaaaaaaa";
        while (reader.fault() == nullptr && fed < 10'000) {
            ASSERT_FALSE(reader.next());
            reader.feed(more);
            fed += more.size();
        }
        ASSERT_NE(reader.fault(), nullptr) << start;
        EXPECT_EQ(reader.fault()->kind, fault_kind::too_big);
        EXPECT_LT(fed, 1'200U);
    }
}

TEST(RespReader, elements_are_counted_over_all_arrays_of_a_reply) {
    const resp_limits limits = {.elements = 6};
    resp_reader reader(limits);
    const std::string fits = "*2\r\n*2\r\n:1\r\n:2\r\n*2\r\n:3\r\n:4\r\n";
    reader.feed(fits + fits);
    EXPECT_TRUE(reader.next());
    EXPECT_TRUE(reader.next());  // each reply begins to count anew
    EXPECT_EQ(fault_of("*2\r\n*2\r\n:1\r\n:2\r\n*3\r\n", limits).kind, fault_kind::too_big);
    EXPECT_EQ(fault_of("*7\r\n", limits).kind, fault_kind::too_big);
    EXPECT_EQ(fault_of("*2147483647\r\n", limits).kind, fault_kind::too_big);
}

TEST(RespReader, arrays_may_be_nested_as_deep_as_the_limit_and_no_deeper) {
    const auto nested = [](int levels) {
        std::string bytes;
        for (int i = 0; i < levels; ++i) bytes += "*1\r\n";
        return bytes + ":1\r\n";
    };
    resp_reader reader;
    reader.feed(nested(7));
    auto reply = reader.next();
    ASSERT_TRUE(reply);
    int depth = 0;
    for (const auto* at = &*reply; at->is(kind::array); at = &at->elements.at(0)) ++depth;
    EXPECT_EQ(depth, 7);
    const auto fault = fault_of(nested(8));
    EXPECT_EQ(fault.kind, fault_kind::too_big);
    EXPECT_EQ(fault.sentence, "the server sent arrays nested deeper than 7");
}

}  // namespace
}  // namespace trinco::detail
