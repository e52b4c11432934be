// Asking a store at its contract, where an acknowledgement can be seen: the store's own thread
// carries the question, the caller waits.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "store/breaker_store.hpp"
#include "store/open.hpp"
#include "trinco/store.hpp"

namespace trinco::fleet_test {

// By an instance and voter of these names. Throws open_error.
[[nodiscard]] store open_store(const std::string& url, const std::string& instance,
                               const std::string& voter);

template <class T>
struct answer {
    std::error_code error;
    T value{};
};

// request(breaker_store&, deadline, completion<T>) -> op, on the store's thread.
template <class T, class Request>
answer<T> ask(const store& s, std::chrono::milliseconds limit, Request request) {
    struct question {
        std::promise<answer<T>> promise;
        detail::op interest;
    };
    const auto state = detail::store_access::state(s);
    const auto q = std::make_shared<question>();
    auto answered = q->promise.get_future();
    state->on().post([q, limit, on = &state->on(), to = state->breakers(),
                      f = std::move(request)]() mutable {
        q->interest =
            f(*to, on->now() + limit, detail::completion<T>([q](std::error_code error, T value) {
                const detail::op over = std::move(q->interest);
                q->promise.set_value({error, std::move(value)});
            }));
    });
    return answered.get();
}

}  // namespace trinco::fleet_test
