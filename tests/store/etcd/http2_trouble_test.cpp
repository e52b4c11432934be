#include "store/etcd/http2_trouble.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "net/stream_factory.hpp"
#include "net/tls_factory.hpp"

namespace trinco::detail::test {
namespace {

using namespace etcd;

std::string text_of(const wire_status& status, wire_cause by) {
    EXPECT_EQ(status.by, by) << status.text;
    EXPECT_EQ(status.code, wire_code::unavailable);
    return status.text;
}

TEST(Http2Trouble, what_may_be_better_later_is_not_sent) {
    const auto says = [](std::error_code why) {
        return text_of(no_connection(why, {}), wire_cause::not_sent);
    };
    EXPECT_EQ(says(std::make_error_code(std::errc::connection_refused)),
              "connection refused; is etcd running there?");
    EXPECT_EQ(says(net_errc::no_such_host), "its name has no address");
    EXPECT_EQ(says(net_errc::names_unavailable), "its name cannot be looked up now");
    EXPECT_EQ(says(std::make_error_code(std::errc::host_unreachable)),
              "no way leads there (no route to host)");
    EXPECT_EQ(says(std::make_error_code(std::errc::timed_out)), "no connection within 2 s");
    EXPECT_EQ(says(std::make_error_code(std::errc::too_many_files_open)),
              "no connection: Too many open files");
    EXPECT_NE(says(std::make_error_code(std::errc::connection_aborted)).find("etcds://"),
              std::string::npos);
}

TEST(Http2Trouble, that_nobody_listens_is_no_other_trouble) {
    EXPECT_TRUE(no_connection(std::make_error_code(std::errc::connection_refused), {}).refused);
    EXPECT_FALSE(no_connection(std::make_error_code(std::errc::timed_out), {}).refused);
    EXPECT_FALSE(no_connection(net_errc::no_such_host, {}).refused);
}

TEST(Http2Trouble, what_is_wrong_with_tls_says_what_to_name) {
    const auto says = [](tls_errc why, wire_cause by) {
        return text_of(no_connection(why, tls_settings{}), by);
    };
    EXPECT_NE(says(tls_errc::wrong_name, wire_cause::misdirected).find("server_name="),
              std::string::npos);
    EXPECT_NE(says(tls_errc::unknown_authority, wire_cause::distrusted).find("ca="),
              std::string::npos);
    EXPECT_NE(says(tls_errc::not_tls, wire_cause::misdirected).find("etcd://"), std::string::npos);
    EXPECT_NE(says(tls_errc::other_protocol, wire_cause::misdirected).find("no etcd"),
              std::string::npos);
    EXPECT_NE(says(tls_errc::expired, wire_cause::distrusted).find("expired"), std::string::npos);
    EXPECT_NE(says(tls_errc::refused_by_peer, wire_cause::not_sent).find("cert="),
              std::string::npos);
    EXPECT_FALSE(says(tls_errc::broken, wire_cause::not_sent).empty());
}

TEST(Http2Trouble, a_file_is_named_with_why_it_cannot_be_read) {
    tls_settings tls;
    tls.ca_file = "/no/such.pem";
    EXPECT_EQ(text_of(no_connection(tls_errc::ca_unreadable, tls), wire_cause::misdirected),
              "the file \"/no/such.pem\" cannot be read: No such file or directory");
    const auto place = std::filesystem::temp_directory_path() /
                       ("trinco-http2-trouble-" + std::to_string(::getpid()));
    tls.key_file = place.string();
    std::ofstream{place};
    EXPECT_NE(no_connection(tls_errc::key_unreadable, tls).text.find("it is empty"),
              std::string::npos);
    std::ofstream{place} << "no PEM";
    EXPECT_NE(no_connection(tls_errc::key_unreadable, tls).text.find("it is not PEM"),
              std::string::npos);
    std::filesystem::remove(place);
}

TEST(Http2Trouble, what_was_lost_may_have_been_carried_out_once_it_was_greeted) {
    const auto reset = std::make_error_code(std::errc::connection_reset);
    EXPECT_EQ(text_of(connection_lost(reset, true), wire_cause::broken),
              "the connection broke: Connection reset by peer");
    EXPECT_EQ(text_of(connection_lost({}, true), wire_cause::broken), "it ended the connection");
    EXPECT_NE(text_of(connection_lost({}, false), wire_cause::broken).find("closes them"),
              std::string::npos);
    // A server of TLS 1.3 says only then what it thinks of our certificate.
    EXPECT_NE(text_of(connection_lost(tls_errc::certificate_wanted, false), wire_cause::distrusted)
                  .find("cert="),
              std::string::npos);
    EXPECT_EQ(connection_lost(tls_errc::refused_by_peer, true).by, wire_cause::broken);
    EXPECT_EQ(connection_lost(tls_errc::broken, true).by, wire_cause::broken);
}

}  // namespace
}  // namespace trinco::detail::test
