// What is written is read back as it was, and nothing can be written that would be read as more.
#include "wire/http1/http_writer.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "wire/http1/http_reader.hpp"

namespace trinco::detail {
namespace {

std::string written(const std::variant<std::string, http_fault>& what) {
    if (const auto* fault = std::get_if<http_fault>(&what)) {
        ADD_FAILURE() << fault->sentence;
        return {};
    }
    return std::get<std::string>(what);
}

bool is_refused(const std::variant<std::string, http_fault>& what) {
    const auto* fault = std::get_if<http_fault>(&what);
    return fault != nullptr && fault->kind == http_fault::kind_t::unwritable &&
           !fault->sentence.empty();
}

TEST(HttpWriter, writes_what_one_expects_on_the_wire) {
    EXPECT_EQ(written(bytes_of(http_request{.fields = {{"Host", "a"}}})),
              "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(
        written(bytes_of(http_request{.method = "POST", .target = "/x", .keep_alive = false})),
        "POST /x HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(written(bytes_of(http_response{.body = "hi\n"})),
              "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n");
    EXPECT_EQ(written(bytes_of(http_response{.body = "hi\n"}, true)),
              "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
    EXPECT_EQ(written(bytes_of(http_response{.status = 204, .body = "none"})),
              "HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(written(bytes_of(http_response{.status = 503, .minor_version = 0})),
              "HTTP/1.0 503 Service Unavailable\r\nConnection: keep-alive\r\n"
              "Content-Length: 0\r\n\r\n");
}

TEST(HttpWriter, refuses_what_would_end_a_line_early_or_frame_twice) {
    EXPECT_TRUE(is_refused(bytes_of(http_request{.method = "GET /x"})));
    EXPECT_TRUE(is_refused(bytes_of(http_request{.method = ""})));
    EXPECT_TRUE(is_refused(bytes_of(http_request{.target = "/a b"})));
    EXPECT_TRUE(is_refused(bytes_of(http_request{.target = "/a\r\nX: y"})));
    EXPECT_TRUE(is_refused(bytes_of(http_request{.target = ""})));
    EXPECT_TRUE(is_refused(bytes_of(http_request{.minor_version = 2})));
    for (const http_field& field :
         {http_field{"X", "a\r\nY: b"}, http_field{"X", std::string("a\0b", 3)},
          http_field{"X", " a"}, http_field{"X Y", "a"}, http_field{"X:", "a"}, http_field{"", "a"},
          http_field{"X\r\n", "a"}, http_field{"content-length", "5"},
          http_field{"Transfer-Encoding", "chunked"}, http_field{"Connection", "close"}}) {
        EXPECT_TRUE(is_refused(bytes_of(http_request{.fields = {field}}))) << field.name;
        EXPECT_TRUE(is_refused(bytes_of(http_response{.fields = {field}}))) << field.name;
    }
    EXPECT_TRUE(is_refused(bytes_of(http_response{.status = 99})));
    EXPECT_TRUE(is_refused(bytes_of(http_response{.status = 1'000})));
    EXPECT_TRUE(is_refused(bytes_of(http_response{.reason = "OK\r\nX: y"})));
}

// ---- random messages --------------------------------------------------------------------------

rc::Gen<std::string> text_of_chars(const std::string& chars, std::size_t least) {
    return rc::gen::suchThat(rc::gen::container<std::string>(rc::gen::elementOf(chars)),
                             [least](const std::string& s) { return s.size() >= least; });
}

// Order counts only among fields of one name.
template <class Message>
Message in_order(Message message) {
    std::stable_sort(message.fields.begin(), message.fields.end(),
                     [](const http_field& a, const http_field& b) { return a.name < b.name; });
    return message;
}

rc::Gen<std::vector<http_field>> some_fields() {
    return rc::gen::container<std::vector<http_field>>(rc::gen::build<http_field>(
        rc::gen::set(&http_field::name,
                     rc::gen::map(text_of_chars("abc019-_", 1),
                                  [](const std::string& s) { return "x-" + s; })),
        rc::gen::set(&http_field::value,
                     rc::gen::map(text_of_chars("ab ,;=\"\t:\xc3\xa4", 0),
                                  [](std::string s) { return s.empty() ? s : "v" + s + "v"; }))));
}

RC_GTEST_PROP(HttpRoundTrip, requests, ()) {
    http_request sent;
    sent.method = *rc::gen::element<std::string>("GET", "POST", "PUT", "DELETE", "BREW");
    sent.target = "/" + *text_of_chars("abc/?&=%20", 0);
    sent.fields = *some_fields();
    sent.fields.push_back({"Host", "shop.example.com"});
    sent.body = *rc::gen::arbitrary<std::string>();
    sent.keep_alive = *rc::gen::arbitrary<bool>();
    sent.minor_version = *rc::gen::element(0U, 1U);
    http_request_reader reader;
    reader.feed(written(bytes_of(sent)));
    const auto got = reader.next();
    RC_ASSERT(got.has_value());
    RC_ASSERT(in_order(*got) == in_order(sent));
    RC_ASSERT(reader.idle());
}

RC_GTEST_PROP(HttpRoundTrip, responses, ()) {
    http_response sent;
    sent.status = *rc::gen::element(200U, 201U, 404U, 418U, 500U, 503U, 599U);
    sent.reason = "R" + *text_of_chars("abc XYZ", 0);
    sent.reason += "n";
    sent.fields = *some_fields();
    sent.body = *rc::gen::arbitrary<std::string>();
    sent.keep_alive = *rc::gen::arbitrary<bool>();
    sent.minor_version = *rc::gen::element(0U, 1U);
    http_response_reader reader;
    reader.feed(written(bytes_of(sent)));
    const auto got = reader.next();
    RC_ASSERT(got.has_value());
    RC_ASSERT(in_order(*got) == in_order(sent));
    RC_ASSERT(reader.idle());
}

}  // namespace
}  // namespace trinco::detail
