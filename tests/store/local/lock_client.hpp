// A local store of locks for tests: blocking forms of the calls that they need.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "store/local/local_locks.hpp"
#include "tests/contract/driven_loop.hpp"

namespace trinco::detail::test {

class lock_client {
public:
    explicit lock_client(local_settings settings)
        : store_(on_, std::make_shared<local_worker>(std::move(settings), "local:x")) {}

    [[nodiscard]] driven_loop& on() noexcept { return on_; }
    [[nodiscard]] local_locks& store() noexcept { return store_; }

    std::string open(std::chrono::seconds ttl = std::chrono::seconds(60)) {
        return ask<lease>([&](deadline by, completion<lease> f) {
                   return store_.open(ttl, "test", by, std::move(f));
               })
            .second.id;
    }
    std::error_code renew(const std::string& on) {
        return ask<std::chrono::seconds>([&](deadline by, completion<std::chrono::seconds> f) {
                   return store_.renew(on, by, std::move(f));
               })
            .first;
    }
    std::error_code enter(const std::string& on, std::uint64_t id, const std::string& name,
                          claim_kind kind = claim_kind::exclusive) {
        const claim c{{id}, on, {{name, kind, 0}}, "", false};
        return ask<place>([&](deadline by, completion<place> f) {
                   return store_.enter(c, by, std::move(f));
               })
            .first;
    }
    void leave(const std::string& on, std::uint64_t id) {
        ask<int>([&](deadline by, completion<int> f) {
            return store_.leave(on, {id}, by, std::move(f));
        });
    }
    void revoke(const std::string& on) {
        ask<ended_claims>([&](deadline by, completion<ended_claims> f) {
            return store_.revoke(on, by, std::move(f));
        });
    }
    // The token, when it is granted within that long.
    std::optional<std::uint64_t> await(const std::string& on, std::uint64_t id,
                                       std::chrono::milliseconds limit) {
        std::optional<std::uint64_t> token;
        const op waiting = store_.await(on, {id}, nullptr, [&](std::error_code e, const grant& g) {
            token = e ? 0 : g.tokens.at(0);
        });
        on_.run_until([&] { return token.has_value(); }, limit);
        return token;
    }
    // While the claim holds.
    std::error_code write(const std::string& on, std::uint64_t id, const change& what) {
        return ask<std::uint64_t>([&](deadline by, completion<std::uint64_t> f) {
                   return store_.write(on, claim_id{id}, {&what, 1}, std::chrono::seconds(0), by,
                                       std::move(f));
               })
            .first;
    }
    std::optional<record> read(const std::string& key) {
        return ask<std::optional<record>>([&](deadline by, completion<std::optional<record>> f) {
                   return store_.read(key, by, std::move(f));
               })
            .second;
    }
    std::size_t entries_of(const std::string& name) {
        return ask<entries>([&](deadline by, completion<entries> f) {
                   return store_.list(name, "", 1'000, by, std::move(f));
               })
            .second.rows.size();
    }

private:
    template <class T>
    std::pair<std::error_code, T> ask(const std::function<op(deadline, completion<T>)>& call) {
        std::pair<std::error_code, T> got;
        bool over = false;
        const op waiting =
            call(on_.now() + std::chrono::seconds(20), [&](std::error_code e, T value) {
                got = {e, std::move(value)};
                over = true;
            });
        on_.run_until([&] { return over; }, std::chrono::seconds(30));
        return got;
    }

    driven_loop on_;
    local_locks store_;
};

}  // namespace trinco::detail::test
