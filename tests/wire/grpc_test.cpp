#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "http2_peer.hpp"
#include "wire/grpc/grpc_answer.hpp"
#include "wire/grpc/grpc_head.hpp"
#include "wire/grpc/grpc_status.hpp"

namespace trinco::detail::test {
namespace {

using by = grpc_verdict::by_t;
using namespace std::chrono_literals;

std::string list(const grpc_head& of) {
    std::string all;
    for (const auto& [name, value] : of.fields()) {
        all.append(name).append("=").append(value).append(" ");
    }
    return all;
}

TEST(GrpcHead, has_what_the_protocol_demands_and_what_is_asked_for) {
    EXPECT_EQ(list(grpc_head({false, "h:1", "/s/m", "me/1", 0s, {}})),
              ":method=POST :scheme=http :path=/s/m :authority=h:1 te=trailers "
              "content-type=application/grpc user-agent=me/1 ");
    const http2_field more[] = {{"token", "t"}, {"hasleader", "true"}};
    EXPECT_EQ(list(grpc_head({true, "h:1", "/s/m", "me/1", 1'500ms, more})),
              ":method=POST :scheme=https :path=/s/m :authority=h:1 te=trailers "
              "content-type=application/grpc user-agent=me/1 grpc-timeout=2S token=t "
              "hasleader=true ");
}

TEST(GrpcHead, time_is_in_whole_seconds_rounded_up) {
    EXPECT_EQ(grpc_timeout(1ns), "1S");
    EXPECT_EQ(grpc_timeout(5s), "5S");
    EXPECT_EQ(grpc_timeout(5s + 1ns), "6S");
    EXPECT_EQ(grpc_timeout(std::chrono::hours(50'000)), "99999999S");
}

TEST(GrpcHead, the_prefix_has_the_size_in_four_bytes) {
    EXPECT_EQ(grpc_prefix(0), std::string("\0\0\0\0\0", 5));
    EXPECT_EQ(grpc_prefix(0x01020304), std::string("\0\1\2\3\4", 5));
    EXPECT_EQ(grpc_prefix(4 * 1024 * 1024), std::string("\0\0\x40\0\0", 5));
}

TEST(GrpcStatus, numbers_that_are_none_are_unknown) {
    EXPECT_EQ(grpc_code_of("0"), grpc_code::ok);
    EXPECT_EQ(grpc_code_of("14"), grpc_code::unavailable);
    for (const auto* text : {"", "17", "-1", "1x", " 1", "99999999999999"}) {
        EXPECT_EQ(grpc_code_of(text), grpc_code::unknown) << text;
    }
    EXPECT_EQ(grpc_code_of_http(404), grpc_code::unimplemented);
    EXPECT_EQ(grpc_code_of_http(503), grpc_code::unavailable);
    EXPECT_EQ(grpc_code_of_http(200), grpc_code::unknown);
}

TEST(GrpcStatus, percent_signs_are_taken_out_where_they_are_any) {
    EXPECT_EQ(grpc_text_of("no leader"), "no leader");
    EXPECT_EQ(grpc_text_of("50%25 of %C3%a4"), "50% of \xC3\xA4");
    EXPECT_EQ(grpc_text_of("%"), "%");
    EXPECT_EQ(grpc_text_of("%4"), "%4");
    EXPECT_EQ(grpc_text_of("%4x%zz%41"), "%4x%zzA");
    EXPECT_EQ(grpc_text_of("%-1"), "%-1");
}

class GrpcAnswer : public testing::Test {
protected:
    void head(const std::string& http = "200", const std::string& type = "application/grpc") {
        answer_.field(":status", http);
        answer_.field("content-type", type);
        answer_.fields_end();
    }
    void status(const std::string& code, const std::string& text = {}) {
        answer_.field("grpc-status", code);
        answer_.field("grpc-message", text);
        answer_.fields_end();
    }
    void data(const std::string& bytes, std::size_t piece) {
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            answer_.data(std::string_view(bytes).substr(at, piece));
        }
    }
    grpc_answer answer_{1'000};
};

TEST_F(GrpcAnswer, messages_come_out_whole_however_they_are_cut) {
    const std::vector<std::string> sent{"", "a", std::string(1'000, 'b'), "", "cc"};
    for (const std::size_t piece : {1, 4, 5, 6, 7, 3'000}) {
        answer_ = grpc_answer(1'000);
        head();
        std::string bytes;
        for (const auto& one : sent) bytes += framed(one);
        data(bytes, piece);
        status("0");
        EXPECT_EQ(answer_.take(), sent) << piece;
        EXPECT_EQ(answer_.take(), std::vector<std::string>()) << "once";
        EXPECT_EQ(answer_.verdict().by, by::server);
        EXPECT_EQ(answer_.verdict().status.code, grpc_code::ok);
    }
}

TEST_F(GrpcAnswer, a_refusal_may_come_with_the_head) {
    answer_.field(":status", "200");
    answer_.field("content-type", "application/grpc");
    answer_.field("grpc-status", "14");
    answer_.field("grpc-message", "etcdserver: no%20leader");
    answer_.fields_end();
    EXPECT_FALSE(answer_.is_lost());
    const grpc_status expected{grpc_code::unavailable, "etcdserver: no leader"};
    EXPECT_EQ(answer_.verdict().by, by::server);
    EXPECT_EQ(answer_.verdict().status, expected);
}

TEST_F(GrpcAnswer, a_status_counts_whatever_http_says_of_it) {
    answer_.field(":status", "503");
    answer_.field("grpc-status", "8");
    answer_.fields_end();
    EXPECT_EQ(answer_.verdict().by, by::server);
    EXPECT_EQ(answer_.verdict().status.code, grpc_code::resource_exhausted);
}

TEST_F(GrpcAnswer, an_interim_head_is_not_the_head) {
    answer_.field(":status", "103");
    answer_.fields_end();
    head();
    data(framed("a"), 100);
    status("0");
    EXPECT_EQ(answer_.verdict().by, by::server);
    EXPECT_EQ(answer_.take().size(), 1U);
}

TEST_F(GrpcAnswer, who_is_no_grpc_is_known_by_the_head) {
    const auto verdict_of = [](const std::string& http, const std::string& type) {
        grpc_answer one(10);
        one.field(":status", http);
        one.field("content-type", type);
        one.fields_end();
        const auto verdict = one.verdict();
        EXPECT_EQ(one.is_lost(), verdict.by == by::not_grpc);
        one.data("<html>");
        EXPECT_TRUE(one.take().empty());
        return verdict;
    };
    EXPECT_EQ(verdict_of("200", "text/html").by, by::not_grpc);
    EXPECT_EQ(verdict_of("200", "application/grpc-web").by, by::not_grpc);
    EXPECT_EQ(verdict_of("404", "application/grpc").by, by::not_grpc);
    EXPECT_EQ(verdict_of("503", "text/plain").status.code, grpc_code::unavailable);
    EXPECT_NE(verdict_of("404", "text/plain").status.text.find("404"), std::string::npos);
    EXPECT_NE(verdict_of("200", "application/grpc+proto").by, by::not_grpc);
    EXPECT_NE(verdict_of("200", "application/grpc;a=b").by, by::not_grpc);
}

TEST_F(GrpcAnswer, what_is_too_large_is_known_by_its_length) {
    head();
    data(std::string("\0\0\0\x3\xe9", 5), 5);
    EXPECT_TRUE(answer_.is_lost());
    EXPECT_EQ(answer_.verdict().by, by::too_large);
    EXPECT_EQ(answer_.verdict().status.code, grpc_code::resource_exhausted);
}

TEST_F(GrpcAnswer, what_nobody_can_read_is_broken) {
    head();
    data(std::string("\1\0\0\0\1x", 6), 6);
    EXPECT_TRUE(answer_.is_lost());
    EXPECT_EQ(answer_.verdict().by, by::broken);
    EXPECT_TRUE(answer_.take().empty());
}

TEST_F(GrpcAnswer, what_ends_too_early_is_broken_unless_it_says_why) {
    head();
    data(framed("abc").substr(0, 7), 100);
    EXPECT_EQ(answer_.verdict().by, by::broken);
    status("0");
    EXPECT_EQ(answer_.verdict().by, by::broken);
    status("13", "why");
    EXPECT_EQ(answer_.verdict().by, by::server);
    answer_ = grpc_answer(10);
    head();
    data(framed("abc"), 100);
    EXPECT_EQ(answer_.verdict().by, by::broken) << "without a status";
}

}  // namespace
}  // namespace trinco::detail::test
