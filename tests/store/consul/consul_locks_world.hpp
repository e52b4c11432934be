// Two stores of locks on a simulated Consul, and hands on its keys: what Go, `consul lock` and an
// operator do.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hooked_consul_client.hpp"
#include "sim/simulated_consul_client.hpp"
#include "store/consul/consul_layout.hpp"
#include "store/consul/consul_locks.hpp"
#include "trinco/error.hpp"

namespace trinco::test {

using namespace std::chrono_literals;
using namespace detail;

class ConsulLocks : public ::testing::Test {
protected:
    using verb_t = consul::operation::verb_t;

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

    detail::lease open(consul_locks& s, std::chrono::seconds ttl = 60s) {
        auto r = ask<detail::lease>([&](deadline by, completion<detail::lease> f) {
            return s.open(ttl, "test", by, std::move(f));
        });
        EXPECT_FALSE(r.error) << r.error.message();
        return r.value;
    }
    static claim make(const detail::lease& on, std::uint64_t id, std::vector<std::string> names,
                      bool only_if_free = false) {
        claim out{{id}, on.id, {}, "info", only_if_free};
        for (auto& name : names) out.parts.push_back({std::move(name), claim_kind::exclusive, 0});
        return out;
    }
    std::error_code enter(consul_locks& s, const claim& c, boot_clock::duration limit = 5s) {
        return ask<place>(
                   [&](deadline by, completion<place> f) { return s.enter(c, by, std::move(f)); },
                   limit)
            .error;
    }
    std::error_code publish(consul_locks& s, const detail::lease& on, std::uint64_t id,
                            const std::string& info) {
        return ask<int>([&](deadline by, completion<int> f) {
                   return s.publish(on.id, {id}, info, by, std::move(f));
               })
            .error;
    }
    std::error_code leave(consul_locks& s, const detail::lease& on, std::uint64_t id,
                          boot_clock::duration limit = 5s) {
        return ask<int>([&](deadline by,
                            completion<int> f) { return s.leave(on.id, {id}, by, std::move(f)); },
                        limit)
            .error;
    }
    void revoke(consul_locks& s, const detail::lease& on) {
        const auto r = ask<ended_claims>([&](deadline by, completion<ended_claims> f) {
            return s.revoke(on.id, by, std::move(f));
        });
        EXPECT_FALSE(r.error) << r.error.message();
    }
    outcome<std::chrono::seconds> renew(consul_locks& s, const detail::lease& on) {
        return ask<std::chrono::seconds>([&](deadline by, completion<std::chrono::seconds> f) {
            return s.renew(on.id, by, std::move(f));
        });
    }
    outcome<grant> verify(consul_locks& s, const detail::lease& on, std::uint64_t id) {
        return ask<grant>([&](deadline by, completion<grant> f) {
            return s.verify(on.id, {id}, by, std::move(f));
        });
    }
    outcome<std::vector<claim_id>> owned(consul_locks& s, const detail::lease& on) {
        return ask<std::vector<claim_id>>([&](deadline by, completion<std::vector<claim_id>> f) {
            return s.owned(on.id, by, std::move(f));
        });
    }
    std::vector<entry> list(consul_locks& s, std::string prefix) {
        return ask<entries>([&](deadline by, completion<entries> f) {
                   return s.list(prefix, "", 100, by, std::move(f));
               })
            .value.rows;
    }
    std::error_code evict(consul_locks& s, const entry& seen, bool now) {
        return ask<int>([&](deadline by, completion<int> f) {
                   return s.evict(seen, now, "operator", "why", by, std::move(f));
               })
            .error;
    }
    outcome<std::uint64_t> write(consul_locks& s, std::vector<change> changes,
                                 std::chrono::seconds keep = {}, std::string lease = {},
                                 std::optional<claim_id> guard = {}) {
        return ask<std::uint64_t>([&](deadline by, completion<std::uint64_t> f) {
            return s.write(lease, guard, changes, keep, by, std::move(f));
        });
    }
    std::optional<record> read(consul_locks& s, const std::string& key) {
        return ask<std::optional<record>>([&](deadline by, completion<std::optional<record>> f) {
                   return s.read(key, by, std::move(f));
               })
            .value;
    }
    std::vector<keyed_record> scan(consul_locks& s, const std::string& prefix) {
        return ask<records>([&](deadline by, completion<records> f) {
                   return s.scan(prefix, "", 10, by, std::move(f));
               })
            .value.rows;
    }

    struct waiting {
        std::optional<outcome<grant>> answer;
        op interest;
        [[nodiscard]] bool granted() const { return answer && !answer->error; }
        [[nodiscard]] bool lost() const { return answer && answer->error == errc::lost; }
        [[nodiscard]] std::uint64_t token() const { return answer->value.tokens.at(0); }
    };
    std::unique_ptr<waiting> await(consul_locks& s, const detail::lease& on, std::uint64_t id) {
        auto w = std::make_unique<waiting>();
        w->interest = s.await(on.id, {id}, nullptr, [p = w.get()](std::error_code error, grant g) {
            p->answer = outcome<grant>{error, std::move(g)};
        });
        return w;
    }
    std::uint64_t grant_of(consul_locks& s, const detail::lease& on, std::uint64_t id) {
        const auto r = verify(s, on, id);
        EXPECT_FALSE(r.error) << r.error.message();
        return r.error ? 0 : r.value.tokens.at(0);
    }

    // What others do with the keys, at once.
    std::string strange_session(std::chrono::seconds delay = 15s) {
        consul::session_request ask;
        ask.name = "Go";
        ask.ttl = 600s;
        ask.lock_delay = delay;
        return consul_.create(ask).value;
    }
    consul::txn_reply hand(verb_t verb, const std::string& key, const std::string& session = {},
                           std::uint64_t flags = consul::lock_flags,
                           const std::string& value = {}) {
        consul::operation one;
        one.verb = verb;
        one.key = key;
        one.value = value;
        one.flags = flags;
        one.session = session;
        return consul_.txn({{one}}).value;
    }
    [[nodiscard]] const consul::key_value* at(const std::string& key) const {
        const auto found = consul_.all().find(key);
        return found == consul_.all().end() ? nullptr : &found->second;
    }

    consul_locks_settings settings() {
        consul_locks_settings out;
        out.wall_clock = [this] {
            return std::chrono::duration_cast<std::chrono::milliseconds>(
                world_.now().time_since_epoch());
        };
        return out;
    }
    std::unique_ptr<consul_locks> store(consul_locks_settings with) {
        return std::make_unique<consul_locks>(
            node_, std::make_unique<sim::simulated_consul_client>(node_, consul_), std::move(with));
    }
    // One at whose requests the test stands.
    std::unique_ptr<consul_locks> hooked_store() {
        auto link = std::make_unique<hooked_consul_client>(node_, consul_);
        hook_ = link.get();
        return std::make_unique<consul_locks>(node_, std::move(link), settings());
    }

    const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed 1"};
    sim::world world_{1};
    sim::network net_{world_};
    sim::simulated_consul consul_{world_, net_, 3};
    sim::node& node_ = world_.add_node("client");
    hooked_consul_client* hook_ = nullptr;  // of the latest hooked store
    std::unique_ptr<consul_locks> a_ = store(settings());
    std::unique_ptr<consul_locks> b_ = store(settings());
};

}  // namespace trinco::test
