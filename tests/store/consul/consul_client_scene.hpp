// The rpc on virtual time, over addresses that say what a test lets them say.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scripted_http.hpp"
#include "sim/world.hpp"
#include "store/consul/consul_client.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {

using namespace consul;
using namespace std::chrono_literals;

inline const std::string a_txn = R"({"Results":[],"Errors":null})";

class ConsulClient : public testing::Test {
protected:
    using asked = scripted_http::asked;
    using door = scripted_http::door;

    // Addresses "h0", "h1" ...
    void make(std::size_t addresses, consul_settings settings = {}) {
        for (std::size_t i = 0; i < addresses; ++i) {
            settings.addresses.push_back(stream_address::tcp("h" + std::to_string(i), 8500));
        }
        auto by = std::make_unique<scripted_http>(at_);
        by_ = by.get();
        rpc_ = make_consul_client(at_, std::move(by), std::move(settings));
    }
    void run(boot_clock::duration d = 5ms) { world_.run_for(d); }
    // The oldest question of this target that waits; there must be one.
    asked one(std::string_view target) {
        const auto all = by_->waiting(target);
        EXPECT_FALSE(all.empty()) << target;
        if (!all.empty()) return all.front();
        return std::make_shared<scripted_http::question>(
            scripted_http::question{{}, {}, {}, std::make_shared<scripted_wire>(at_)});
    }
    void answer(std::string_view target, unsigned status, std::string body,
                std::vector<http_field> fields = {}) {
        by_->answer(one(target), status, std::move(body), std::move(fields));
        run();
    }

    template <class T>
    struct outcome {
        std::optional<std::error_code> error;
        T value{};
        op interest;
        boot_clock::time_point at{};
    };
    template <class T>
    completion<T> into(const std::shared_ptr<outcome<T>>& to) {
        return [to, this](std::error_code error, T value) {
            EXPECT_FALSE(to->error) << "answered twice";
            to->error = error;
            to->value = std::move(value);
            to->at = at_.now();
        };
    }
    // call(deadline, completion<T>)
    template <class T, class F>
    std::shared_ptr<outcome<T>> ask(boot_clock::duration within, F call) {
        const auto out = std::make_shared<outcome<T>>();
        out->interest = call(at_.now() + within, into(out));
        EXPECT_FALSE(out->error) << "inside the call";
        return out;
    }
    std::shared_ptr<outcome<txn_reply>> set(boot_clock::duration within = 4s) {
        operation one;
        one.verb = operation::verb_t::set;
        one.key = "k";
        return ask<txn_reply>(
            within, [&](auto by, auto done) { return rpc_->txn({{one}}, by, std::move(done)); });
    }
    std::shared_ptr<outcome<read_reply>> read(const read_request& what = {"k", false, false},
                                              boot_clock::duration within = 4s) {
        return ask<read_reply>(
            within, [&](auto by, auto done) { return rpc_->read(what, by, std::move(done)); });
    }
    std::shared_ptr<outcome<std::chrono::seconds>> renew(boot_clock::duration within = 4s) {
        return ask<std::chrono::seconds>(
            within, [&](auto by, auto done) { return rpc_->renew("s1", by, std::move(done)); });
    }
    std::shared_ptr<outcome<std::string>> create(boot_clock::duration within = 4s) {
        return ask<std::string>(within, [&](auto by, auto done) {
            return rpc_->create({"me", 15s, 5s, true}, by, std::move(done));
        });
    }

    struct told {
        std::vector<read_reply> news;
        std::error_code over;
        op interest;
    };
    std::shared_ptr<told> watch(const read_request& what = {"k", false, false}) {
        const auto out = std::make_shared<told>();
        out->interest = rpc_->watch(
            what, [out](const read_reply& n) { out->news.push_back(n); },
            [out](std::error_code why) {
                EXPECT_FALSE(out->over) << "ended twice";
                out->over = why;
            });
        return out;
    }
    static std::vector<http_field> index(std::uint64_t n) {
        return {{"X-Consul-Index", std::to_string(n)}};
    }
    static std::string row(const std::string& session, std::uint64_t modified = 7) {
        return R"([{"LockIndex":1,"Key":"k","Flags":0,"Value":null,"Session":")" + session +
               R"(","CreateIndex":5,"ModifyIndex":)" + std::to_string(modified) + "}]";
    }

    sim::world world_{1};
    sim::node& at_{world_.add_node("client")};
    scripted_http* by_ = nullptr;
    std::unique_ptr<rpc> rpc_;
};

}  // namespace trinco::detail::test
