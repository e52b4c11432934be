#include "wire/http2/http2_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "http2_peer.hpp"

namespace trinco::detail::test {
namespace {

// Keeps what it is told.
class told_stream final : public http2_stream {
public:
    void on_field(std::string_view name, std::string_view value) override {
        EXPECT_FALSE(end) << "told after the end";
        fields.append(name).append("=").append(value).append(";");
    }
    void on_fields_end() override { fields += "|"; }
    void on_data(std::string_view bytes) override {
        EXPECT_FALSE(end) << "told after the end";
        data += bytes;
    }
    void on_end(http2_end how) override {
        EXPECT_FALSE(end) << "ended twice";
        end = how;
    }
    [[nodiscard]] bool ended(http2_end::kind_t as) const { return end && end->kind == as; }

    std::string fields;
    std::string data;
    std::optional<http2_end> end;
};

using kind = http2_end::kind_t;
constexpr http2_field head[] = {
    {":method", "POST"}, {":scheme", "http"}, {":path", "/a"}, {":authority", "b"}};

class Http2Client : public testing::Test {
protected:
    void make(peer_settings with) { peer_ = std::make_unique<http2_peer>(with); }
    // Carries bytes both ways, in pieces of this size, until nobody has any.
    void carry(std::size_t piece = 1'000'000) {
        for (;;) {
            const auto there = client_.take();
            for (std::size_t at = 0; at < there.size(); at += piece) {
                peer_->feed(std::string_view(there).substr(at, piece));
            }
            const auto back = peer_->take();
            for (std::size_t at = 0; at < back.size(); at += piece) {
                client_.feed(std::string_view(back).substr(at, piece));
            }
            if (there.empty() && back.empty()) return;
        }
    }
    void ask(told_stream& by, std::string body = "?") {
        ASSERT_TRUE(client_.begin(by, head));
        client_.send(by, std::move(body), true);
    }

    http2_client client_;
    std::unique_ptr<http2_peer> peer_ = std::make_unique<http2_peer>();
};

TEST_F(Http2Client, a_request_and_its_answer_however_they_are_cut) {
    for (const std::size_t piece : {1, 2, 9, 10, 100, 1'000'000}) {
        told_stream one;
        ask(one, "question");
        carry(piece);
        auto& asked = peer_->last();
        EXPECT_EQ(asked.fields[":path"], "/a");
        EXPECT_EQ(asked.body, "question");
        EXPECT_TRUE(asked.whole);
        EXPECT_TRUE(one.was_sent());
        peer_->head(asked.id, {{":status", "200"}, {"a", "b"}});
        peer_->data(asked.id, "answer");
        peer_->trailers(asked.id, {{"c", "d"}});
        carry(piece);
        EXPECT_EQ(one.fields, ":status=200;a=b;|c=d;|");
        EXPECT_EQ(one.data, "answer");
        EXPECT_TRUE(one.ended(kind::complete));
    }
    EXPECT_TRUE(client_.is_ready());
    EXPECT_FALSE(client_.is_over());
    EXPECT_FALSE(peer_->is_broken());
}

TEST_F(Http2Client, a_request_goes_out_with_the_first_bytes) {
    told_stream one;
    ask(one);
    peer_->feed(client_.take());
    EXPECT_TRUE(peer_->last().whole);
    EXPECT_FALSE(client_.is_ready());
}

TEST_F(Http2Client, four_mebibytes_go_either_way) {
    std::string large(4 * 1024 * 1024, '\0');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 / 5);
    told_stream one;
    ask(one, large);
    carry();
    EXPECT_TRUE(peer_->last().body == large);
    peer_->head(peer_->last().id, {{":status", "200"}});
    peer_->data(peer_->last().id, large, true);
    carry(5'000);
    EXPECT_TRUE(one.data == large);
    EXPECT_TRUE(one.ended(kind::complete));
}

TEST_F(Http2Client, no_more_is_sent_than_the_peer_has_room_for) {
    make({.streams_most = 10, .window = 1'000, .reads = false});
    carry();
    told_stream one;
    ask(one, std::string(5'000, 'x'));
    carry();
    EXPECT_EQ(peer_->last().body.size(), 1'000U);
    EXPECT_FALSE(one.was_sent());
    client_.cancel(one);
    carry();
    EXPECT_TRUE(peer_->last().given_up);
    EXPECT_FALSE(peer_->is_broken());
}

TEST_F(Http2Client, a_stream_says_something_again_and_again) {
    told_stream one;
    ASSERT_TRUE(client_.begin(one, head));
    carry();
    EXPECT_EQ(peer_->requests().size(), 1U) << "its head goes at once";
    peer_->head(peer_->last().id, {{":status", "200"}});
    for (int i = 0; i < 3; ++i) {
        client_.send(one, "a", false);
        client_.send(one, "b", false);
        carry();
        peer_->data(peer_->last().id, "c");
        carry();
    }
    EXPECT_EQ(peer_->last().body, "ababab");
    EXPECT_EQ(one.data, "ccc");
    EXPECT_FALSE(one.end);
    // The server ends it; what we could still say is of no use.
    peer_->trailers(peer_->last().id, {{"e", "f"}});
    carry();
    EXPECT_TRUE(one.ended(kind::complete));
    EXPECT_TRUE(peer_->last().given_up);
    client_.send(one, "d", false);
    carry();
    EXPECT_EQ(peer_->last().body, "ababab");
}

TEST_F(Http2Client, who_is_above_the_last_of_a_goodbye_was_not_looked_at) {
    told_stream first, second, later;
    ask(first);
    ask(second);
    carry();
    peer_->goaway(peer_->requests()[0].id, 0, "I go");
    carry();
    EXPECT_TRUE(second.ended(kind::refused));
    ASSERT_TRUE(client_.goodbye());
    EXPECT_EQ(client_.goodbye()->text, "I go");
    EXPECT_FALSE(first.end);
    EXPECT_FALSE(client_.is_over());
    if (client_.begin(later, head)) {
        client_.send(later, "?", true);
        carry();
        EXPECT_TRUE(later.ended(kind::refused));
    }
    peer_->head(peer_->requests()[0].id, {{":status", "200"}}, true);
    carry();
    EXPECT_TRUE(first.ended(kind::complete));
    EXPECT_TRUE(client_.is_over());
    EXPECT_FALSE(client_.fault());
}

TEST_F(Http2Client, a_stream_that_the_peer_gives_up_is_told_why) {
    told_stream refused, broken;
    ask(refused);
    ask(broken);
    carry();
    peer_->reset(peer_->requests()[0].id, 7);
    peer_->reset(peer_->requests()[1].id, 2);
    carry();
    EXPECT_TRUE(refused.ended(kind::refused));
    ASSERT_TRUE(broken.ended(kind::reset));
    EXPECT_EQ(broken.end->code, http2_code::internal);
    EXPECT_EQ(http2_code_name(broken.end->code), "INTERNAL_ERROR");
}

TEST_F(Http2Client, what_was_cancelled_is_told_nothing_more) {
    told_stream one;
    ask(one);
    carry();
    peer_->head(peer_->last().id, {{":status", "200"}});
    peer_->data(peer_->last().id, "late", true);
    const auto late = peer_->take();
    client_.cancel(one);
    client_.feed(late);
    carry();
    EXPECT_EQ(one.fields, "");
    EXPECT_FALSE(one.end);
    EXPECT_TRUE(peer_->last().given_up || peer_->last().whole);
    told_stream next;
    ask(next);
    client_.cancel(next);  // before its head went out
    carry();
    EXPECT_FALSE(next.end);
    EXPECT_FALSE(peer_->is_broken());
}

TEST_F(Http2Client, streams_over_the_peers_number_wait) {
    make({.streams_most = 1});
    carry();
    told_stream first, second;
    ask(first);
    ask(second);
    carry();
    ASSERT_EQ(peer_->requests().size(), 1U);
    peer_->head(peer_->last().id, {{":status", "200"}}, true);
    carry();
    EXPECT_EQ(peer_->requests().size(), 2U);
    EXPECT_FALSE(second.end);
}

TEST_F(Http2Client, fields_without_end_end_their_stream_alone) {
    told_stream one, other;
    ask(one);
    ask(other);
    carry();
    peer_fields many{{":status", "200"}};
    for (int i = 0; i < 20; ++i)
        many.emplace_back("x" + std::to_string(i), std::string(1'000, 'y'));
    peer_->head(peer_->requests()[0].id, many);
    carry();
    EXPECT_TRUE(one.ended(kind::too_large));
    EXPECT_TRUE(peer_->requests()[0].given_up);
    peer_->head(peer_->requests()[1].id, {{":status", "200"}}, true);
    carry();
    EXPECT_TRUE(other.ended(kind::complete));
}

TEST_F(Http2Client, a_ping_is_answered_either_way) {
    carry();
    client_.ping();
    carry();
    EXPECT_EQ(peer_->pings(), 1);
    const std::string ping("\0\0\x8\x6\0\0\0\0\0abcdefgh", 17);
    client_.feed(ping);
    const auto said = client_.take();
    EXPECT_EQ(said, std::string("\0\0\x8\x6\x1\0\0\0\0abcdefgh", 17));
    std::string flood;
    for (int i = 0; i < 2'000; ++i) flood += ping;
    client_.feed(flood);
    EXPECT_TRUE(client_.is_over()) << "answers would pile up";
}

TEST_F(Http2Client, who_speaks_something_else_is_known_by_its_first_bytes) {
    const auto fault_of = [](std::string_view bytes, std::size_t piece) {
        http2_client one;
        for (std::size_t at = 0; at < bytes.size(); at += piece) one.feed(bytes.substr(at, piece));
        (void)one.take();
        EXPECT_EQ(one.fault().has_value(), one.is_over());
        return one.fault() ? std::optional(one.fault()->kind) : std::nullopt;
    };
    for (const std::size_t piece : {1, 3, 100}) {
        EXPECT_EQ(fault_of("HTTP/1.1 400 Bad Request\r\n\r\n", piece), http2_fault::kind_t::http1);
        EXPECT_EQ(fault_of("SSH-2.0-OpenSSH\r\n", piece), http2_fault::kind_t::not_http2);
        EXPECT_EQ(fault_of("-ERR unknown", piece), http2_fault::kind_t::not_http2);
        EXPECT_EQ(fault_of(std::string_view("\x15\3\1\0\2\2\x46\0\0\0", 10), piece),
                  http2_fault::kind_t::not_http2);
        EXPECT_EQ(fault_of(std::string_view("\0\0\0\4\0\0\0\0\0", 9), piece), std::nullopt);
        EXPECT_EQ(fault_of("HTTP", piece), std::nullopt) << "more may come";
        // Settings, and then data of a stream that nobody began.
        EXPECT_EQ(fault_of(std::string_view("\0\0\0\4\0\0\0\0\0"
                                            "\0\0\1\0\0\0\0\0\1x",
                                            19),
                           piece),
                  http2_fault::kind_t::broken);
    }
}

}  // namespace
}  // namespace trinco::detail::test
