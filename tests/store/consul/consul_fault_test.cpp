// What each answer of a server means.
#include "store/consul/consul_fault.hpp"

#include <gtest/gtest.h>

#include <string>

#include "net/stream_factory.hpp"
#include "net/tls_factory.hpp"

namespace trinco::detail::consul {
namespace {

http_answer status(unsigned number, std::string body = {}) {
    http_answer said;
    said.sent = true;
    said.response.status = number;
    said.response.body = std::move(body);
    return said;
}

http_answer error(std::error_code code, bool sent = false, std::string why = "so it is") {
    http_answer said;
    said.error = code;
    said.sent = sent;
    said.why = std::move(why);
    return said;
}
http_answer error(std::errc code, bool sent = false) {
    return error(std::make_error_code(code), sent);
}

fault of(const http_answer& said, const std::optional<tls_settings>& tls = {}) {
    EXPECT_FALSE(is_answer(said));
    auto what = judge(said, "h:8500", tls);
    EXPECT_TRUE(what.sentence.starts_with("h:8500: ")) << what.sentence;
    EXPECT_GT(what.sentence.size(), 10U);
    EXPECT_EQ(what.sentence.find('\n'), std::string::npos);
    return what;
}

TEST(ConsulFault, answers) {
    EXPECT_TRUE(is_answer(status(200)));
    EXPECT_TRUE(is_answer(status(409)));
    auto none = status(404);
    EXPECT_FALSE(is_answer(none)) << "perhaps nobody knows this path";
    none.response.fields = {{"x-consul-index", "7"}};
    EXPECT_TRUE(is_answer(none));
    EXPECT_FALSE(is_answer(status(500)));
    EXPECT_FALSE(is_answer(error(std::errc::timed_out)));
}

TEST(ConsulFault, what_was_not_applied_may_be_sent_elsewhere) {
    for (const auto* text :
         {"No cluster leader", "No known Consul servers", "No path to datacenter",
          "rpc error getting client: failed to get conn: dial tcp 10.0.0.1:8300: refused",
          "rpc error making call: No cluster leader",
          "rpc error: lead thread didn't get connection", "node is not the leader",
          "Not ready to serve consistent reads", "leadership transfer in progress",
          "RPC rate limit exceeded", "Missing node registration"}) {
        const auto what = of(status(500, text));
        EXPECT_EQ(what.code, errc::unavailable) << text;
        EXPECT_TRUE(what.leave) << text;
        EXPECT_FALSE(what.hopeless) << text;
    }
    EXPECT_NE(of(status(500, "No path to datacenter")).sentence.find("dc="), std::string::npos);
    for (const unsigned number : {501U, 502U, 503U, 504U, 599U}) {
        EXPECT_EQ(of(status(number, "rate limit exceeded")).code, errc::unavailable) << number;
    }
}

TEST(ConsulFault, what_may_have_been_applied_is_unknown) {
    for (const auto& said :
         {status(500, "rpc error making call: EOF"),
          status(500, "rpc error making call: stream closed"),
          status(500, "raft apply failed: leadership lost while committing log"), status(500),
          status(501), status(502), status(503), status(503, "upstream request timeout"),
          status(504), status(599), error(std::errc::timed_out, true),
          error(std::errc::connection_reset, true), error(std::errc::protocol_error, true)}) {
        EXPECT_EQ(of(said).code, errc::unknown_outcome) << of(said).sentence;
        EXPECT_EQ(of(said).leave, said.error != std::errc::timed_out) << of(said).sentence;
    }
    EXPECT_EQ(of(error(std::errc::protocol_error, true)).read_code, errc::invalid);
}

TEST(ConsulFault, refusals) {
    auto what = of(status(403, "Permission denied: token with AccessorID 'x' lacks permission"));
    EXPECT_EQ(what.code, errc::denied);
    EXPECT_TRUE(what.token);
    EXPECT_FALSE(what.leave) << "the others will say the same";
    what = of(status(403, "ACL not found"));
    EXPECT_EQ(what.code, errc::denied);
    EXPECT_NE(what.sentence.find("does not know the token"), std::string::npos);
    what = of(status(403, "Permission denied: anonymous token lacks permission 'key:write'"));
    EXPECT_NE(what.sentence.find("wants a token"), std::string::npos);
    EXPECT_EQ(of(status(401, "ACL support disabled")).code, errc::denied);
    EXPECT_EQ(of(status(400, "Bad request: Namespaces are an Enterprise feature")).code,
              errc::invalid);
    EXPECT_EQ(of(status(500, "Invalid Session TTL '5', must be between [10s=24h0m0s]")).code,
              errc::invalid);
    EXPECT_EQ(of(status(404, "Session id 'x' not found")).code, errc::lost);
    EXPECT_EQ(of(status(404, "404 page not found")).code, errc::invalid);
    EXPECT_EQ(of(status(405)).code, errc::invalid);
    EXPECT_EQ(of(status(301)).code, errc::invalid);
    for (const unsigned number : {201U, 301U, 405U, 418U}) {
        EXPECT_FALSE(of(status(number)).leave) << number << ": the others will say the same";
    }
    EXPECT_EQ(of(status(413, "Request body too large, max size: 524288 bytes")).code, errc::busy);
}

TEST(ConsulFault, a_limit_of_connections_is_named_and_the_address_kept) {
    const auto what = of(status(429,
                                "Your IP is issuing too many concurrent connections, please rate "
                                "limit your calls\n"));
    EXPECT_EQ(what.code, errc::unavailable);
    EXPECT_FALSE(what.leave) << "what is connected works";
    EXPECT_NE(what.sentence.find("http_max_conns_per_client"), std::string::npos);
}

TEST(ConsulFault, too_much_is_busy_where_nothing_was_changed) {
    const auto what = of(error(std::errc::message_size, true));
    EXPECT_EQ(what.code, errc::unknown_outcome);
    EXPECT_EQ(what.read_code, errc::busy);
    EXPECT_FALSE(what.leave);
}

TEST(ConsulFault, what_was_not_sent_says_what_to_do) {
    auto what = of(error(std::errc::connection_refused));
    EXPECT_EQ(what.code, errc::unavailable);
    EXPECT_EQ(what.sentence, "h:8500: connection refused; is Consul running there?");
    EXPECT_TRUE(what.leave);
    what = of(error(std::errc::timed_out));
    EXPECT_EQ(what.code, errc::unavailable);
    EXPECT_FALSE(what.leave) << "the deadline may have been short";
    what = of(error(tls_errc::unknown_authority), tls_settings{});
    EXPECT_EQ(what.code, errc::denied);
    EXPECT_TRUE(what.hopeless);
    EXPECT_NE(what.sentence.find("ca="), std::string::npos);
    what = of(error(tls_errc::wrong_name), tls_settings{});
    EXPECT_EQ(what.code, errc::invalid);
    EXPECT_TRUE(what.hopeless);
    what = of(error(tls_errc::not_tls), tls_settings{});
    EXPECT_NE(what.sentence.find("consul://"), std::string::npos);
    // With TLS 1.3 this shows when the request was written.
    what = of(error(tls_errc::certificate_wanted, true), tls_settings{});
    EXPECT_EQ(what.code, errc::denied);
    EXPECT_NE(what.sentence.find("cert="), std::string::npos);
    what = of(status(400, "Client sent an HTTP request to an HTTPS server.\n"));
    EXPECT_EQ(what.code, errc::invalid);
    EXPECT_TRUE(what.hopeless);
    EXPECT_NE(what.sentence.find("consuls://"), std::string::npos);
}

TEST(ConsulFault, what_the_server_wrote_stays_on_its_line) {
    EXPECT_EQ(of(status(400, "a\nb")).sentence, "h:8500: \"a\\x0ab\"");
    EXPECT_LT(of(status(400, std::string(5'000, 'x'))).sentence.size(), 400U);
    std::string letters = "x";
    while (letters.size() < 1'000) letters += "\xc3\xa4";
    const auto cut = of(status(400, letters)).sentence;
    EXPECT_EQ(cut, "h:8500: " + letters.substr(0, 299)) << "no half of a letter";
    EXPECT_EQ(of(status(405)).sentence,
              "h:8500: answers with the status 405; it answers, but not "
              "as Consul does: is this its HTTP port (8500)?");
}

}  // namespace
}  // namespace trinco::detail::consul
