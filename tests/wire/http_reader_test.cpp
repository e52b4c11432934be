// Messages found in bytes: wherever they are cut, within their limits, and never in bytes that two
// readers could understand differently.
#include "wire/http1/http_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trinco::detail {
namespace {

template <class Reader>
auto all_of(Reader& reader) {
    std::vector<typename decltype(reader.next())::value_type> all;
    while (auto message = reader.next()) all.push_back(std::move(*message));
    return all;
}

std::vector<http_request> requests_in(std::string_view bytes, const http_limits& limits = {}) {
    http_request_reader reader(limits);
    reader.feed(bytes);
    return all_of(reader);
}

http_fault request_fault(std::string_view bytes, const http_limits& limits = {}) {
    http_request_reader reader(limits);
    reader.feed(bytes);
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_NE(reader.fault(), nullptr) << bytes;
    return reader.fault() == nullptr ? http_fault{} : *reader.fault();
}

const std::string charge =
    "POST /v1/charges?dry=1 HTTP/1.1\r\nHost: pay.example.com\r\nContent-Type: text/plain\r\n"
    "Content-Length: 11\r\nX-Empty:\r\n\r\n100 of EUR.";

TEST(HttpRequestReader, reads_method_target_fields_and_body) {
    const auto got = requests_in(charge);
    ASSERT_EQ(got.size(), 1U);
    const http_request expected = {
        .method = "POST",
        .target = "/v1/charges?dry=1",
        .fields = {{"Host", "pay.example.com"}, {"Content-Type", "text/plain"}, {"X-Empty", ""}},
        .body = "100 of EUR.",
        .keep_alive = true,
        .minor_version = 1};
    EXPECT_EQ(got[0], expected);
    EXPECT_EQ(field_of(got[0].fields, "content-TYPE"), "text/plain");
    EXPECT_EQ(field_of(got[0].fields, "absent"), "");
}

TEST(HttpRequestReader, knows_whether_the_connection_goes_on) {
    const auto keeps = [](const std::string& version, const std::string& connection) {
        const auto line = connection.empty() ? "" : "Connection: " + connection + "\r\n";
        const auto got = requests_in("GET / HTTP/" + version + "\r\nHost: a\r\n" + line + "\r\n");
        return got.size() == 1 && got[0].keep_alive;
    };
    EXPECT_TRUE(keeps("1.1", ""));
    EXPECT_FALSE(keeps("1.1", "close"));
    EXPECT_FALSE(keeps("1.1", "Upgrade, Close"));
    EXPECT_FALSE(keeps("1.0", ""));
    EXPECT_TRUE(keeps("1.0", "keep-alive"));
}

TEST(HttpRequestReader, puts_chunks_together) {
    const auto got = requests_in(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "4\r\nlong\r\n1;of=this\r\ne\r\nA\r\nr and more\r\n0\r\nTrailer: x\r\n\r\n");
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(got[0].body, "longer and more");
    EXPECT_EQ(got[0].fields, (std::vector<http_field>{{"Host", "a"}}));  // no trailers among them
}

TEST(HttpRequestReader, finds_the_same_messages_wherever_the_bytes_are_cut) {
    const std::string bytes = charge +
                              "GET /second HTTP/1.1\r\nHost: b\r\n\r\n"
                              "\r\nPOST /third HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked"
                              "\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    const auto whole = requests_in(bytes);
    ASSERT_EQ(whole.size(), 3U);
    EXPECT_EQ(whole[2].body, "abc");
    for (std::size_t a = 0; a <= bytes.size(); ++a) {
        for (std::size_t b = a; b <= bytes.size(); b += 7) {
            http_request_reader reader;
            std::vector<http_request> got;
            for (const auto part :
                 {std::string_view(bytes).substr(0, a), std::string_view(bytes).substr(a, b - a),
                  std::string_view(bytes).substr(b)}) {
                reader.feed(part);
                for (auto& one : all_of(reader)) got.push_back(std::move(one));
            }
            ASSERT_EQ(got, whole) << a << " " << b;
            ASSERT_TRUE(reader.idle());
        }
    }
    http_request_reader single;
    std::vector<http_request> got;
    for (const char& c : bytes) {
        single.feed({&c, 1});
        for (auto& one : all_of(single)) got.push_back(std::move(one));
    }
    EXPECT_EQ(got, whole);
}

TEST(HttpRequestReader, refuses_a_header_over_the_limit_wherever_it_is_too_long) {
    const http_limits limits = {.header = 200, .body = 10};
    const std::string fits =
        "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(100, 'x') + "\r\n\r\n";
    EXPECT_EQ(requests_in(fits, limits).size(), 1U);
    const auto kind = [&](const std::string& bytes) { return request_fault(bytes, limits).kind; };
    using enum http_fault::kind_t;
    EXPECT_EQ(kind("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(200, 'x') + "\r\n\r\n"),
              header_too_big);
    EXPECT_EQ(kind("GET /" + std::string(300, 'x')), header_too_big);
    EXPECT_EQ(kind("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(300, 'x')), header_too_big);
    std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (int i = 0; i < 100; ++i) many += "A: b\r\n";
    EXPECT_EQ(kind(many), header_too_big);
    EXPECT_EQ(status_for(request_fault(many, limits)), 431U);
    EXPECT_NE(request_fault(many, limits).sentence.find("over 200 bytes"), std::string::npos);
}

TEST(HttpRequestReader, refuses_a_body_over_the_limit_as_soon_as_it_shows) {
    const http_limits limits = {.header = 1'000, .body = 10};
    const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
    EXPECT_EQ(requests_in(head + "Content-Length: 10\r\n\r\n0123456789", limits).size(), 1U);
    const auto announced = request_fault(head + "Content-Length: 11\r\n\r\n", limits);
    EXPECT_EQ(announced.kind, http_fault::kind_t::body_too_big);
    EXPECT_EQ(status_for(announced), 413U);
    EXPECT_NE(announced.sentence.find("over 10 bytes"), std::string::npos);
    const auto chunked = request_fault(
        head + "Transfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n8\r\n01234567\r\n", limits);
    EXPECT_EQ(chunked.kind, http_fault::kind_t::body_too_big);
    const auto endless = request_fault(
        head + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(20'000, 'x'), limits);
    EXPECT_EQ(endless.kind, http_fault::kind_t::malformed);
}

TEST(HttpRequestReader, refuses_what_is_malformed_or_ambiguous) {
    const std::string host = "Host: a\r\n";
    for (const std::string& bytes :
         {std::string("GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
          std::string("no http at all\r\n\r\n"),
          std::string("\x16\x03\x01\x02", 4) + "\r\n\r\n",
          std::string("GET /\r\n\r\n"),
          std::string("GET / HTTP/1.1\nHost: a\n\n"),
          "GET / HTTP/1.1\r\n" + host + "No colon\r\n\r\n",
          "GET / HTTP/1.1\r\n" + host + "Space : x\r\n\r\n",
          "GET /a b HTTP/1.1\r\n" + host + "\r\n",
          std::string("GET / HTTP/1.1\r\n\r\n"),
          "GET / HTTP/1.1\r\n" + host + host + "\r\n",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999999\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host +
              "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host +
              "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host +
              "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\n" + host +
              "Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n",
          std::string("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
          "POST / HTTP/1.1\r\n" + host + "Content-Length: +1\r\n\r\na",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: 1, 2\r\n\r\na",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: 0x1\r\n\r\na",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: 1 1\r\n\r\na",
          "POST / HTTP/1.1\r\n" + host + "Content-Length:\r\n\r\na",
          "POST / HTTP/1.1\r\n" + host + "Content-Length : 1\r\n\r\na",
          "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\n 1\r\n\r\na",
          "GET / HTTP/1.1\r\n" + host + "X: a\rY: b\r\n\r\n",
          "GET / HTTP/1.1\r\n" + host + "X: a\nY: b\r\n\r\n",
          "GET / HTTP/1.1\r\n" + host + "X: a" + std::string(1, '\0') + "b\r\n\r\n",
          "GET / HTTP/1.1\r\n " + host + "\r\n",
          "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"}) {
        const auto fault = request_fault(bytes);
        EXPECT_EQ(fault.kind, http_fault::kind_t::malformed) << bytes;
        EXPECT_EQ(status_for(fault), 400U);
        EXPECT_FALSE(fault.sentence.empty());
    }
}

TEST(HttpRequestReader, takes_a_folded_line_for_no_field_of_its_own) {
    const auto all = requests_in("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n Content-Length: 1\r\n\r\n");
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(field_of(all[0].fields, "X"), "a Content-Length: 1");
    EXPECT_EQ(all[0].body, "");
}

TEST(HttpRequestReader, reads_nothing_after_a_fault) {
    http_request_reader reader;
    reader.feed("nonsense\r\n\r\n");
    ASSERT_NE(reader.fault(), nullptr);
    reader.feed(charge);
    EXPECT_FALSE(reader.next().has_value());
}

TEST(HttpRequestReader, what_was_whole_before_a_fault_is_given) {
    http_request_reader reader;
    reader.feed(charge + "nonsense\r\n\r\n");
    EXPECT_EQ(reader.fault(), nullptr);  // not yet looked at
    ASSERT_TRUE(reader.next().has_value());
    EXPECT_NE(reader.fault(), nullptr);
}

TEST(HttpRequestReader, tells_an_end_between_messages_from_one_within) {
    for (std::size_t cut = 0; cut <= charge.size(); ++cut) {
        http_request_reader reader;
        reader.feed(std::string_view(charge).substr(0, cut));
        reader.end();
        if (cut == 0) {
            EXPECT_TRUE(reader.idle());
            EXPECT_EQ(reader.fault(), nullptr);
        } else if (cut < charge.size()) {
            ASSERT_NE(reader.fault(), nullptr) << cut;
            EXPECT_EQ(reader.fault()->kind, http_fault::kind_t::cut_off);
        } else {
            EXPECT_EQ(reader.fault(), nullptr);
            EXPECT_TRUE(reader.next().has_value());
        }
    }
}

TEST(HttpResponseReader, reads_status_reason_fields_and_body) {
    http_response_reader reader;
    reader.feed("HTTP/1.1 503 Not today\r\nContent-Length: 4\r\nRetry-After: 5\r\n\r\nlate");
    const auto got = reader.next();
    ASSERT_TRUE(got.has_value());
    const http_response expected = {.status = 503,
                                    .reason = "Not today",
                                    .fields = {{"Retry-After", "5"}},
                                    .body = "late",
                                    .keep_alive = true,
                                    .minor_version = 1};
    EXPECT_EQ(*got, expected);
    EXPECT_TRUE(reader.idle());
}

TEST(HttpResponseReader, lasts_until_the_end_when_nothing_else_says_so) {
    http_response_reader reader;
    reader.feed("HTTP/1.0 200 OK\r\n\r\nall that ");
    reader.feed("comes");
    EXPECT_FALSE(reader.next().has_value());
    reader.end();
    const auto got = reader.next();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->body, "all that comes");
    EXPECT_FALSE(got->keep_alive);
}

TEST(HttpResponseReader, knows_the_answers_that_have_no_body) {
    http_response_reader reader;
    reader.expect_no_body();
    reader.feed("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n");
    ASSERT_TRUE(reader.next().has_value());
    reader.feed("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    ASSERT_TRUE(reader.next().has_value());
    const auto last = reader.next();
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(last->body, "ok");
}

TEST(HttpResponseReader, skips_interim_answers) {
    http_response_reader reader;
    reader.feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
    EXPECT_FALSE(reader.next().has_value());
    reader.feed("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
    const auto got = reader.next();
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->status, 201U);
}

TEST(HttpResponseReader, refuses_what_is_cut_off_or_no_response) {
    http_response_reader cut;
    cut.feed("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    cut.end();
    ASSERT_NE(cut.fault(), nullptr);
    EXPECT_EQ(cut.fault()->kind, http_fault::kind_t::cut_off);
    for (const char* bytes :
         {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "SSH-2.0-x\r\n\r\n"}) {
        http_response_reader reader;
        reader.feed(bytes);
        EXPECT_NE(reader.fault(), nullptr) << bytes;
    }
}

}  // namespace
}  // namespace trinco::detail
