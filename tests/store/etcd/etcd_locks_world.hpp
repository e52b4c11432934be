// Two stores of locks on a simulated etcd, and hands on its keys: what Go, etcdctl, an operator do.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hooked_etcd_client.hpp"
#include "sim/simulated_etcd_client.hpp"
#include "store/etcd/etcd_layout.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "trinco/error.hpp"

namespace trinco::test {

using namespace std::chrono_literals;
using namespace detail;

class EtcdLocks : public ::testing::Test {
protected:
    template <class T>
    struct outcome {
        std::error_code error;
        T value{};
    };
    // Of a call that has five seconds.
    template <class T>
    outcome<T> ask(const std::function<op(deadline, completion<T>)>& call,
                   boot_clock::duration limit = 5s) {
        std::optional<outcome<T>> answer;
        const auto by = world_.now() + limit;
        const auto interest = call(by, [&](std::error_code error, T value) {
            answer = outcome<T>{error, std::move(value)};
        });
        while (!answer && world_.now() < by + 10ms) world_.run_for(1ms);
        if (answer) return *answer;
        ADD_FAILURE() << "a call did not complete by its deadline";
        return {};
    }

    detail::lease open(etcd_locks& s, std::chrono::seconds ttl = 60s) {
        auto r = ask<detail::lease>([&](deadline by, completion<detail::lease> f) {
            return s.open(ttl, "test", by, std::move(f));
        });
        EXPECT_FALSE(r.error) << r.error.message();
        return r.value;
    }
    static claim make(const detail::lease& on, std::uint64_t id, std::vector<std::string> names,
                      claim_kind kind = claim_kind::exclusive, std::uint32_t n = 0,
                      bool only_if_free = false) {
        claim out{{id}, on.id, {}, "info", only_if_free};
        for (auto& name : names) out.parts.push_back({std::move(name), kind, n});
        return out;
    }
    std::error_code enter(etcd_locks& s, const claim& c, boot_clock::duration limit = 5s) {
        return ask<place>(
                   [&](deadline by, completion<place> f) { return s.enter(c, by, std::move(f)); },
                   limit)
            .error;
    }
    std::optional<std::uint32_t> ahead(etcd_locks& s, const claim& c) {
        const auto r = ask<place>(
            [&](deadline by, completion<place> f) { return s.enter(c, by, std::move(f)); });
        EXPECT_FALSE(r.error) << r.error.message();
        return r.value.ahead;
    }
    std::error_code publish(etcd_locks& s, const detail::lease& on, std::uint64_t id,
                            const std::string& info) {
        return ask<int>([&](deadline by, completion<int> f) {
                   return s.publish(on.id, {id}, info, by, std::move(f));
               })
            .error;
    }
    std::error_code leave(etcd_locks& s, const detail::lease& on, std::uint64_t id) {
        return ask<int>([&](deadline by, completion<int> f) {
                   return s.leave(on.id, {id}, by, std::move(f));
               })
            .error;
    }
    outcome<grant> verify(etcd_locks& s, const detail::lease& on, std::uint64_t id) {
        return ask<grant>([&](deadline by, completion<grant> f) {
            return s.verify(on.id, {id}, by, std::move(f));
        });
    }
    std::vector<claim_id> owned(etcd_locks& s, const detail::lease& on) {
        return ask<std::vector<claim_id>>([&](deadline by, completion<std::vector<claim_id>> f) {
                   return s.owned(on.id, by, std::move(f));
               })
            .value;
    }
    outcome<entries> list(etcd_locks& s, std::string prefix, std::string from = {},
                          std::size_t rows = 100) {
        return ask<entries>([&](deadline by, completion<entries> f) {
            return s.list(prefix, from, rows, by, std::move(f));
        });
    }
    outcome<std::uint64_t> write(etcd_locks& s, std::vector<change> changes,
                                 std::chrono::seconds keep = {}) {
        return ask<std::uint64_t>([&](deadline by, completion<std::uint64_t> f) {
            return s.write({}, {}, changes, keep, by, std::move(f));
        });
    }

    struct waiting {
        std::optional<outcome<grant>> answer;
        op interest;
        [[nodiscard]] bool granted() const { return answer && !answer->error; }
        [[nodiscard]] bool lost() const { return answer && answer->error == errc::lost; }
        [[nodiscard]] std::uint64_t token() const { return answer->value.tokens.at(0); }
    };
    std::unique_ptr<waiting> await(etcd_locks& s, const detail::lease& on, std::uint64_t id) {
        auto w = std::make_unique<waiting>();
        w->interest = s.await(on.id, {id}, nullptr, [p = w.get()](std::error_code error, grant g) {
            p->answer = outcome<grant>{error, std::move(g)};
        });
        return w;
    }

    // What others do with the keys, at once.
    std::int64_t strange_lease() { return etcd_.grant(600s).value.id; }
    void put(const std::string& key, const std::string& value, std::int64_t on) {
        etcd::txn_request ask;
        ask.success.emplace_back(etcd::put_request{key, value, on});
        ASSERT_FALSE(etcd_.txn(ask).error);
    }
    void erase(const std::string& key) {
        etcd::txn_request ask;
        ask.success.emplace_back(etcd::erase_request{{key, {}}});
        ASSERT_FALSE(etcd_.txn(ask).error);
    }
    static std::string key_of(const std::string& name, const detail::lease& on,
                              std::uint64_t id = 1) {
        return etcd::entry_key(name, *etcd::lease_number(on.id), {id});
    }
    static std::int64_t number(const detail::lease& on) { return *etcd::lease_number(on.id); }

    etcd_locks_settings settings(std::string prefix = {}, std::uint8_t token_epoch = 0) {
        etcd_locks_settings out;
        out.prefix = std::move(prefix);
        out.token_epoch = token_epoch;
        out.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        return out;
    }
    std::unique_ptr<etcd_locks> store(std::string prefix = {}, std::uint8_t token_epoch = 0) {
        return std::make_unique<etcd_locks>(
            node_, std::make_unique<sim::simulated_etcd_client>(node_, etcd_),
            settings(std::move(prefix), token_epoch));
    }
    // One at whose requests the test stands.
    std::unique_ptr<etcd_locks> hooked_store() {
        auto link = std::make_unique<hooked_etcd_client>(node_, etcd_);
        hook_ = link.get();
        return std::make_unique<etcd_locks>(node_, std::move(link), settings());
    }

    const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed 1"};
    sim::world world_{1};
    sim::network net_{world_};
    sim::simulated_etcd etcd_{world_, net_, 3};
    sim::node& node_ = world_.add_node("client");
    hooked_etcd_client* hook_ = nullptr;  // of the latest hooked store
    std::unique_ptr<etcd_locks> a_ = store();
    std::unique_ptr<etcd_locks> b_ = store();
};

}  // namespace trinco::test
