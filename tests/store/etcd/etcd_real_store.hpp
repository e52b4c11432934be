// A store of locks on real servers, on a loop that the test turns, for tests with the name of a
// server as their parameter ("etcd": 3.5, "etcd-3.4", "etcd-3.6"). Skips when it is not here.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/etcd/etcd_client.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "store/etcd/http2_transport.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/net/threaded_streams.hpp"
#include "tests/store/etcd/test_etcd.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {

using namespace std::chrono_literals;

class EtcdStore : public ::testing::TestWithParam<const char*> {
protected:
    void start(etcd_settings with = {}) {
        const auto program = find_etcd(GetParam());
        if (!program) GTEST_SKIP() << "there is no " << GetParam() << "; try `make servers`";
        program_ = *program;
        with.program = program_;
        server_.emplace(std::move(with));
        std::vector<stream_address> members;
        for (std::size_t i = 0; i < server_->size(); ++i) {
            members.push_back(stream_address::tcp("127.0.0.1", server_->port(i)));
        }
        connect(members);
    }
    void connect(const std::vector<stream_address>& members, etcd::credentials who = {}) {
        store_ = std::make_unique<etcd_locks>(
            on_,
            etcd::make_etcd_client(on_,
                                   etcd::make_http2_transport(
                                       on_, std::make_unique<threaded_streams>(on_), members, {}),
                                   std::move(who)));
    }
    void TearDown() override { store_.reset(); }

    // Of other processes too, which wake no loop.
    bool comes_true(const std::function<bool()>& is_so) {
        for (const auto end = on_.now() + 20s; on_.now() < end;) {
            if (on_.run_until(is_so, 10ms)) return true;
        }
        return false;
    }

    template <class T>
    T ask(const std::function<op(deadline, completion<T>)>& call) {
        std::optional<T> got;
        const auto interest = call(on_.now() + 5s, [&](std::error_code error, T value) {
            EXPECT_FALSE(error) << error.message();
            got = std::move(value);
        });
        EXPECT_TRUE(comes_true([&] { return got.has_value(); }));
        return got ? std::move(*got) : T{};
    }
    // The error alone.
    template <class T>
    std::error_code try_to(const std::function<op(deadline, completion<T>)>& call) {
        std::optional<std::error_code> got;
        const auto interest = call(on_.now() + 5s, [&](std::error_code error, T) { got = error; });
        EXPECT_TRUE(comes_true([&] { return got.has_value(); }));
        return got.value_or(errc::unavailable);
    }
    lease open() {
        return ask<lease>([&](deadline by, completion<lease> f) {
            return store_->open(60s, "test", by, std::move(f));
        });
    }
    void enter(const lease& on, std::uint64_t id, const std::string& name) {
        const claim what{{id}, on.id, {{name, claim_kind::exclusive, 0}}, "", false};
        ask<place>([&](deadline by, completion<place> f) {
            return store_->enter(what, by, std::move(f));
        });
    }
    void leave(const lease& on, std::uint64_t id) {
        ask<int>([&](deadline by, completion<int> f) {
            return store_->leave(on.id, {id}, by, std::move(f));
        });
    }
    std::vector<entry> rows(const std::string& name) {
        return ask<entries>([&](deadline by, completion<entries> f) {
                   return store_->list(name, {}, 100, by, std::move(f));
               })
            .rows;
    }
    bool queue_grows_to(const std::string& name, std::size_t n) {
        for (int i = 0; i < 400; ++i) {
            if (rows(name).size() >= n) return true;
            on_.run_for(20ms);
        }
        return false;
    }
    struct waiting {
        bool granted = false;
        std::uint64_t token = 0;
        op interest;
    };
    std::unique_ptr<waiting> await(const lease& on, std::uint64_t id) {
        auto w = std::make_unique<waiting>();
        w->interest = store_->await(on.id, {id}, nullptr,
                                    [p = w.get()](std::error_code error, const grant& g) {
                                        p->granted = !error;
                                        if (!error) p->token = g.tokens.at(0);
                                    });
        return w;
    }

    std::string program_;
    std::optional<test_etcd> server_;
    driven_loop on_;
    std::unique_ptr<etcd_locks> store_;
};

}  // namespace trinco::detail::test
