// A message that came alone and whole.
#include "wire/resp/resp_alone.hpp"

#include <gtest/gtest.h>

#include <string>

#include "wire/resp/resp_reader.hpp"

namespace trinco::detail {
namespace {

const std::string whole = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$9\r\nof\r\ntexts\r\n";

TEST(RespAlone, the_payload_of_a_message) {
    EXPECT_EQ(resp_message_alone(whole), "of\r\ntexts");
    EXPECT_EQ(resp_message_alone("*3\r\n$7\r\nmessage\r\n$0\r\n\r\n$0\r\n\r\n"), "");
}

TEST(RespAlone, nothing_else) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(resp_message_alone(whole.substr(0, size))) << size;
    }
    EXPECT_FALSE(resp_message_alone(whole + whole));
    EXPECT_FALSE(resp_message_alone(whole + "*"));
    EXPECT_FALSE(resp_message_alone("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"));
    EXPECT_FALSE(resp_message_alone("*3\r\n$7\r\nmessage\r\n$99999999999999999999\r\nc\r\n"));
    EXPECT_FALSE(resp_message_alone("*3\r\n$7\r\nmessage\r\n$-1\r\n$-1\r\n"));
}

// Whatever one byte becomes: what is taken for a message is one to the reader, too.
TEST(RespAlone, agrees_with_the_reader) {
    int taken = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (int byte = 0; byte < 256; ++byte) {
            auto bytes = whole;
            bytes[at] = static_cast<char>(byte);
            const auto payload = resp_message_alone(bytes);
            if (!payload) continue;
            ++taken;
            resp_reader reader;
            reader.feed(bytes);
            const auto reply = reader.next();
            ASSERT_TRUE(reply && reader.idle()) << at << ' ' << byte;
            ASSERT_EQ(reply->elements.size(), 3U);
            EXPECT_EQ(reply->elements[0].text, "message");
            EXPECT_EQ(reply->elements[2].text, *payload);
        }
    }
    EXPECT_GT(taken, 256);
}

}  // namespace
}  // namespace trinco::detail
