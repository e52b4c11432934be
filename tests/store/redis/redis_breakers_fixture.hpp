// The store on a way that a test plays.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/breaker/policy.hpp"
#include "sim/world.hpp"
#include "store/redis/redis_breakers.hpp"
#include "tests/store/redis/fake_route.hpp"
#include "tests/store/redis/script_answers.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {

using namespace std::chrono_literals;
using event_kind = route_event::kind_t;

inline news news_of(const std::string& breaker, std::uint64_t seq = 1) {
    news n;
    n.breaker = breaker;
    n.seq = seq;
    n.options = to_text(policy{});
    return n;
}

template <class T>
struct got {
    int times = 0;
    std::error_code error;
    T value{};
    op interest;

    completion<T> keep() {
        return [this](std::error_code e, T v) {
            ++times;
            error = e;
            value = std::move(v);
        };
    }
};

class RedisBreakers : public testing::Test {
protected:
    RedisBreakers() {
        store_.emplace(
            node_,
            [this](redis_route::on_event changed) {
                auto made = std::make_unique<fake_route>(std::move(changed));
                route_ = made.get();
                return made;
            },
            "shop", breaker_identity{"i-1", "v-1"});
    }
    std::shared_ptr<got<std::vector<verdict>>> exchange(const std::vector<news>& batch,
                                                        boot_clock::duration within = 1s) {
        auto g = std::make_shared<got<std::vector<verdict>>>();
        g->interest = store_->exchange(batch, node_.now() + within, g->keep());
        return g;
    }
    std::shared_ptr<got<page>> inspect(const std::string& prefix, const std::string& from,
                                       std::size_t rows) {
        auto g = std::make_shared<got<page>>();
        g->interest = store_->inspect(prefix, from, rows, node_.now() + 1s, g->keep());
        return g;
    }
    void exchange_well(const std::string& breaker) {
        const auto g = exchange({news_of(breaker)});
        route_->answer(answer_of(view_of(1)));
        EXPECT_FALSE(g->error);
    }
    void subscribe() {
        subscription_ = store_->subscribe([this](const notice& n) { heard_.push_back(n); });
    }
    void connect() {
        route_->change(event_kind::up);
        route_->change(event_kind::hearing);
    }
    void pass(boot_clock::duration d) { world_.run_for(d); }
    // "gap changed:payments new_server"
    [[nodiscard]] std::string told() const {
        std::string all;
        for (const notice& n : heard_) {
            if (!all.empty()) all += ' ';
            switch (n.kind) {
                case notice::kind_t::changed: all += "changed"; break;
                case notice::kind_t::flush: all += "flush"; break;
                case notice::kind_t::gap: all += "gap"; break;
                case notice::kind_t::new_server: all += "new_server"; break;
            }
            if (!n.breaker.empty()) all += ":" + n.breaker + "@" + std::to_string(n.fleet.era);
        }
        return all;
    }

    sim::world world_{11};
    sim::node& node_ = world_.add_node("client");
    fake_route* route_ = nullptr;
    std::optional<redis_breakers> store_;
    std::vector<notice> heard_;
    op subscription_;
};

}  // namespace trinco::detail::test
