// The transport over members that answer as a test lets them, on virtual time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http2_members.hpp"
#include "sim/world.hpp"
#include "store/etcd/http2_transport.hpp"

namespace trinco::detail::test {

using namespace std::chrono_literals;

class Http2Transport : public testing::Test {
protected:
    static constexpr const char* txn_method = "/etcdserverpb.KV/Txn";

    struct answer {
        std::optional<etcd::wire_status> status;
        std::string reply;
        op interest;
    };
    struct stream {
        std::vector<std::string> heard;
        std::optional<etcd::wire_status> status;
        std::unique_ptr<etcd::wire_stream> handle;
    };

    void SetUp() override { make({}); }
    void make(const std::optional<tls_settings>& tls) {
        by_.reset();
        members_ = std::make_unique<http2_members>(at_);
        by_ = etcd::make_http2_transport(
            at_, std::move(members_->streams),
            {stream_address::tcp("10.0.0.1", 2379), stream_address::tcp("10.0.0.2", 2379)}, tls);
    }
    void run(boot_clock::duration d = 10ms) { world_.run_for(d); }
    // What the servers were told to say arrives.
    void say() {
        members_->say();
        run();
    }
    std::shared_ptr<answer> call(std::string request = "?", etcd::wire_metadata with = {},
                                 boot_clock::duration within = 5s, etcd::destination to = {}) {
        auto a = std::make_shared<answer>();
        a->interest =
            by_->call(to, txn_method, std::move(request), std::move(with), at_.now() + within,
                      [a = a.get()](etcd::wire_status s, std::string r) {
                          EXPECT_FALSE(a->status) << "answered twice";
                          a->status = std::move(s);
                          a->reply = std::move(r);
                      });
        EXPECT_FALSE(a->status) << "inside the call";
        return a;
    }
    std::shared_ptr<stream> open(etcd::destination to = {0, etcd::lane::watches}) {
        auto s = std::make_shared<stream>();
        s->handle = by_->open(
            to, "/etcdserverpb.Watch/Watch", {},
            [s = s.get()](std::string m) {
                EXPECT_FALSE(s->status) << "told after the end";
                s->heard.push_back(std::move(m));
            },
            [s = s.get()](etcd::wire_status how) {
                EXPECT_FALSE(s->status) << "ended twice";
                s->status = std::move(how);
            });
        return s;
    }
    // With a connection that has served one call.
    void come_up() {
        const auto a = call();
        run();
        members_->last().answer(members_->last().last().id, "!");
        say();
        ASSERT_TRUE(a->status && a->status->good());
    }
    http2_peer& peer(std::size_t n = 0) { return members_->peer(n); }

    sim::world world_{1};
    sim::node& at_{world_.add_node("client")};
    std::unique_ptr<http2_members> members_;
    std::unique_ptr<etcd::transport> by_;
};

#define EXPECT_STATUS(of, a_code, a_cause)                       \
    ASSERT_TRUE((of)->status);                                   \
    EXPECT_EQ((of)->status->code, a_code) << (of)->status->text; \
    EXPECT_EQ((of)->status->by, a_cause) << (of)->status->text

}  // namespace trinco::detail::test
