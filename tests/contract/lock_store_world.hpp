// What a store of locks brings to the contract suite: two clients of one server, and the run of
// time.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "store/lock_store.hpp"
#include "trinco/error.hpp"

namespace trinco::test {

using detail::boot_clock;
using detail::claim_id;
using detail::claim_kind;
using detail::completion;
using detail::deadline;
using detail::lock_store;
using detail::op;

class lock_store_world {
public:
    virtual ~lock_store_world() = default;
    [[nodiscard]] virtual detail::loop& on() = 0;
    // Two clients of the same server, on the loop `on`.
    [[nodiscard]] virtual lock_store& store() = 0;
    [[nodiscard]] virtual lock_store& other() = 0;
    // Time passes and what is due happens.
    virtual void run_for(boot_clock::duration d) = 0;
    // How long a change usually takes to be seen by the other client.
    [[nodiscard]] virtual boot_clock::duration settle_time() const = 0;
    // Whether a request is applied once; else an unknown outcome is repeated, and a compare that
    // was applied the first time is a conflict the second.
    [[nodiscard]] virtual bool applies_once() const { return true; }
    // Of leases that a test lets run out, and how much later than its time such an end may be seen.
    [[nodiscard]] virtual std::chrono::seconds short_ttl() const {
        return std::chrono::seconds(10);
    }
    [[nodiscard]] virtual boot_clock::duration expiry_slack() const { return {}; }
    // Whether entering a name that is free tells the grant, too, unless it had to be repeated.
    [[nodiscard]] virtual bool grants_with_the_place() const { return applies_once(); }
    // Whether a listing tells at once since when a lock is held, and the token.
    [[nodiscard]] virtual bool tells_held_at_once() const { return true; }
    // Whether a listing shows claims that wait.
    [[nodiscard]] virtual bool lists_who_waits() const { return true; }
    // For how long names are kept from everybody when somebody else ended their holder's lease.
    [[nodiscard]] virtual boot_clock::duration hold_back() const { return {}; }
    // Whether it tells how many claims ended with a lease.
    [[nodiscard]] virtual bool tells_ended_claims() const { return false; }
};

struct lock_store_case {
    std::string name;
    // Null: what it needs is not on this machine.
    std::function<std::unique_ptr<lock_store_world>()> make;
};

inline void PrintTo(const lock_store_case& c, std::ostream* out) {
    *out << c.name;
}

template <class T>
struct outcome {
    std::error_code error;
    T value{};
};

class LockStore : public ::testing::TestWithParam<lock_store_case> {
protected:
    static constexpr auto request_timeout = std::chrono::seconds(2);
    static constexpr std::chrono::seconds ttl{120};  // longer than any test that does not wait

    // Asks until the outcome is known: that is what repeatable requests are for.
    template <class T>
    outcome<T> ask(const std::function<op(deadline, completion<T>)>& call) {
        outcome<T> out;
        for (int attempt = 0; attempt < 20; ++attempt) {
            std::optional<outcome<T>> answer;
            bool inside = true;
            const auto by = world_->on().now() + request_timeout;
            const auto interest = call(by, [&](std::error_code error, T value) {
                EXPECT_FALSE(inside) << "a completion ran inside its call";
                EXPECT_FALSE(answer.has_value()) << "a completion ran twice";
                answer = outcome<T>{error, std::move(value)};
            });
            inside = false;
            while (!answer && world_->on().now() < by + std::chrono::milliseconds(50)) {
                world_->run_for(std::chrono::milliseconds(5));
            }
            if (!answer) {
                ADD_FAILURE() << "a call did not complete by its deadline";
                return out;
            }
            out = std::move(*answer);
            if (out.error != errc::unknown_outcome) return out;
        }
        ADD_FAILURE() << "the outcome stayed unknown";
        return out;
    }
    outcome<int> ask_int(const std::function<op(deadline, completion<int>)>& call) {
        return ask<int>(call);
    }

    detail::lease open(lock_store& s, std::chrono::seconds for_ttl = ttl) {
        auto r = ask<detail::lease>([&](deadline by, completion<detail::lease> f) {
            return s.open(for_ttl, "suite", by, std::move(f));
        });
        EXPECT_FALSE(r.error) << r.error.message();
        return r.value;
    }
    static detail::part exclusive(std::string name) {
        return {std::move(name), claim_kind::exclusive, 0};
    }
    static detail::part shared(std::string name) {
        return {std::move(name), claim_kind::shared, 0};
    }
    static detail::part permit(std::string name, std::uint32_t n) {
        return {std::move(name), claim_kind::permit, n};
    }
    static detail::claim claim(const detail::lease& on, std::uint64_t id,
                               std::vector<detail::part> parts, bool only_if_free = false) {
        return {{id}, on.id, std::move(parts), "info " + std::to_string(id), only_if_free};
    }
    outcome<detail::place> enter(lock_store& s, const detail::claim& c) {
        return ask<detail::place>(
            [&](deadline by, completion<detail::place> f) { return s.enter(c, by, std::move(f)); });
    }
    outcome<detail::grant> verify(lock_store& s, const detail::lease& on, std::uint64_t id) {
        return ask<detail::grant>([&](deadline by, completion<detail::grant> f) {
            return s.verify(on.id, {id}, by, std::move(f));
        });
    }
    void leave(lock_store& s, const detail::lease& on, std::uint64_t id) {
        const auto r = ask_int(
            [&](deadline by, completion<int> f) { return s.leave(on.id, {id}, by, std::move(f)); });
        EXPECT_FALSE(r.error) << r.error.message();
    }
    detail::ended_claims revoke(lock_store& s, const detail::lease& on) {
        const auto r =
            ask<detail::ended_claims>([&](deadline by, completion<detail::ended_claims> f) {
                return s.revoke(on.id, by, std::move(f));
            });
        EXPECT_FALSE(r.error) << r.error.message();
        return r.value;
    }
    outcome<std::chrono::seconds> renew(lock_store& s, const detail::lease& on) {
        return ask<std::chrono::seconds>([&](deadline by, completion<std::chrono::seconds> f) {
            return s.renew(on.id, by, std::move(f));
        });
    }
    outcome<std::vector<claim_id>> owned(lock_store& s, const detail::lease& on) {
        return ask<std::vector<claim_id>>([&](deadline by, completion<std::vector<claim_id>> f) {
            return s.owned(on.id, by, std::move(f));
        });
    }
    outcome<detail::entries> list(lock_store& s, std::string prefix, std::string from = {},
                                  std::size_t rows = 100) {
        return ask<detail::entries>([&](deadline by, completion<detail::entries> f) {
            return s.list(prefix, from, rows, by, std::move(f));
        });
    }
    outcome<std::vector<bool>> turns(lock_store& s, const detail::lease& on, std::uint64_t id) {
        return ask<std::vector<bool>>([&](deadline by, completion<std::vector<bool>> f) {
            return s.turns(on.id, {id}, by, std::move(f));
        });
    }
    outcome<detail::records> scan(lock_store& s, std::string prefix, std::string from = {},
                                  std::size_t rows = 100) {
        return ask<detail::records>([&](deadline by, completion<detail::records> f) {
            return s.scan(prefix, from, rows, by, std::move(f));
        });
    }
    outcome<std::uint64_t> write(lock_store& s, std::vector<detail::change> changes,
                                 std::chrono::seconds keep = {}, std::string lease = {},
                                 std::optional<claim_id> guard = {}) {
        return ask<std::uint64_t>([&](deadline by, completion<std::uint64_t> f) {
            return s.write(lease, guard, changes, keep, by, std::move(f));
        });
    }
    outcome<std::optional<detail::record>> read(lock_store& s, std::string key) {
        return ask<std::optional<detail::record>>(
            [&](deadline by, completion<std::optional<detail::record>> f) {
                return s.read(key, by, std::move(f));
            });
    }

    // A wait that remembers its answer and how often it came.
    struct waiting {
        std::optional<outcome<detail::grant>> answer;
        std::vector<std::optional<std::uint32_t>> places;
        int times = 0;
        op interest;
        [[nodiscard]] bool granted() const { return answer && !answer->error; }
        [[nodiscard]] std::uint64_t token() const { return answer->value.tokens.at(0); }
    };
    std::unique_ptr<waiting> await(lock_store& s, const detail::lease& on, std::uint64_t id) {
        auto w = std::make_unique<waiting>();
        w->interest = s.await(
            on.id, {id}, [p = w.get()](detail::place at) { p->places.push_back(at.ahead); },
            [p = w.get()](std::error_code error, detail::grant g) {
                ++p->times;
                p->answer = outcome<detail::grant>{error, std::move(g)};
            });
        return w;
    }
    // Before something is not seen.
    void settle() { world_->run_for(world_->settle_time()); }
    // Before something is: as long as it takes, up to ten times of that.
    void settle_until(const std::function<bool()>& is_so) {
        for (int i = 0; i < 40 && !is_so(); ++i) world_->run_for(world_->settle_time() / 4);
    }

    void SetUp() override {
        world_ = GetParam().make();
        if (!world_) GTEST_SKIP() << "there is no server for it; try `make servers`";
    }
    lock_store& a() { return world_->store(); }
    lock_store& b() { return world_->other(); }

    std::unique_ptr<lock_store_world> world_;
};

}  // namespace trinco::test
