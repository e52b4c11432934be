#include "apps/trinco/output/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trinco::program {
namespace {

TEST(Json, ObjectsKeepTheirOrder) {
    EXPECT_EQ("{}", json_object().text());
    EXPECT_EQ(R"({"schema":1,"name":"a","ok":true,"share":0.5,"none":null,"rows":[1,"x"]})",
              json_object()
                  .add("schema", 1)
                  .add("name", "a")
                  .add("ok", true)
                  .add("share", 0.5)
                  .add_null("none")
                  .add_raw("rows", json_array().add_raw("1").add("x").text())
                  .text());
}

TEST(Json, NumbersAreExact) {
    EXPECT_EQ(R"({"a":18446744073709551615,"b":-9223372036854775808})",
              json_object()
                  .add("a", std::numeric_limits<std::uint64_t>::max())
                  .add("b", std::numeric_limits<std::int64_t>::min())
                  .text());
    EXPECT_EQ(R"({"a":null,"b":null,"c":0.1})",
              json_object().add("a", std::nan("")).add("b", HUGE_VAL).add("c", 0.1).text());
    EXPECT_EQ(R"({"a":300000,"b":0,"c":-0.25,"d":1e+18,"e":1e-09})", json_object()
                                                                         .add("a", 3e5)
                                                                         .add("b", 0.0)
                                                                         .add("c", -0.25)
                                                                         .add("d", 1e18)
                                                                         .add("e", 1e-9)
                                                                         .text());
}

TEST(Json, StringsAreEscaped) {
    EXPECT_EQ(R"("a\"b\\c\n\t\r\u0000\u001b\u007f")",
              json_string(std::string_view("a\"b\\c\n\t\r\0\x1b\x7f", 11)));
    EXPECT_EQ("\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\x92\"",
              json_string("gr\xc3\xbc\xc3\x9f \xf0\x9f\x94\x92"));
    EXPECT_EQ(R"("\u009b\u2028")", json_string("\xc2\x9b\xe2\x80\xa8"));
}

TEST(Json, WhatIsNotUtf8IsReplaced) {
    const std::string mark = "\xef\xbf\xbd";
    EXPECT_EQ("\"" + mark + "\"", json_string("\xff"));
    EXPECT_EQ("\"" + mark + "a\"", json_string("\xc3"
                                               "a"));               // cut short
    EXPECT_EQ("\"" + mark + mark + "\"", json_string("\xc0\xaf"));  // overlong
    EXPECT_EQ("\"" + mark + mark + mark + "\"", json_string("\xe0\x80\xaf"));
    EXPECT_EQ("\"" + mark + mark + mark + "\"", json_string("\xed\xa0\x80"));  // half a pair
    EXPECT_EQ("\"" + mark + mark + mark + mark + "\"", json_string("\xf4\x90\x80\x80"));
    EXPECT_EQ("\"" + mark + "\"", json_string("\xe2"));
}

}  // namespace
}  // namespace trinco::program
