// Opening the stores that the settings name, and asking them things while a command waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/stores/needs.hpp"
#include "lock/session_shell.hpp"  // awaited
#include "store/breaker_store.hpp"
#include "store/lock_store.hpp"
#include "store/open.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// All drivers of this executable (start/executables.hpp).
[[nodiscard]] std::span<const driver> all_drivers();

// Opens with all drivers. The problem is one sentence, which names the source of the URL, and the
// code that fits: 64 for what is wrong in the URL, 69 or 77 for what depends on the machine. Also
// when the store keeps none of what was asked for ("redis: keeps no locks; ..."), or keeps it for
// one process ("memory:"), which is nothing to a program that runs once. Says the settings'
// warnings.
// `instance`: this process, as far as the store is concerned; empty: a name of its own.
[[nodiscard]] std::variant<store, problem> open_store(const settings& with, needs what,
                                                      std::string_view instance = {});
// One of locks; if it is of this machine, without a thread as yet (detail::open_without_thread).
[[nodiscard]] std::variant<store, problem> open_store_for_a_moment(const settings& with);

template <class T>
struct answer {
    std::error_code error;
    T value{};
};

// Calls request(store, deadline, completion<T>) on the store's thread and waits for the answer, for
// at most `limit` and a moment. For breaker_store and lock_store alike:
//
//     auto page = ask_locks<detail::entries>(s, 5s, [&](auto& at, auto by, auto done) {
//         return at.list(prefix, from, 100, by, std::move(done));
//     });
//
// The request may refer to the caller's variables: it never runs after the answer. Not to be called
// on the store's thread. Errors beyond the store's own: invalid (the store is empty or keeps none
// of these), unknown_outcome when the store's thread was stuck for that long.
//
// `unwanted`: asked again and again while the answer is waited for; true ends that like a limit.
using given_up = std::function<bool()>;
template <class T, class Request>
[[nodiscard]] answer<T> ask_locks(const store& s, std::chrono::milliseconds limit, Request request,
                                  const given_up& unwanted = {});
template <class T, class Request>
[[nodiscard]] answer<T> ask_breakers(const store& s, std::chrono::milliseconds limit,
                                     Request request);

// Why `error` was answered, in the words of the store of locks; empty when it says nothing.
[[nodiscard]] std::string locks_trouble(const store& s, const std::error_code& error);
// That, or else the error's words.
[[nodiscard]] std::string locks_reason(const store& s, const std::error_code& error);

// "the store local:/x/y.db could not list locks: permission denied; ..." with the exit code.
// `what`: "list locks".
[[nodiscard]] problem store_problem(const store& s, std::string_view what,
                                    const std::error_code& error);

// What is said of a request that was sent again, when its last attempt ended with `last`. In doubt,
// when an earlier one may have been carried out, "not applied" holds for the last one alone: the
// outcome is unknown.
[[nodiscard]] std::error_code after_attempts(bool in_doubt, const std::error_code& last);

// How the two above work.
namespace asking {

// One question, shared by the thread that waits and the one that answers.
template <class T>
struct question {
    detail::awaited answered;
    T value{};            // written before `answered` is set
    detail::op interest;  // the loop's thread only

    std::mutex starting;     // held while the request runs, which refers to the asking thread
    bool abandoned = false;  // guarded by `starting`: nobody waits any more, do not begin
};

// Tells the waiting thread when the loop drops the job without running it.
template <class T>
class drop_notice {
public:
    explicit drop_notice(std::shared_ptr<question<T>> of) noexcept : of_(std::move(of)) {}
    drop_notice(drop_notice&&) noexcept = default;
    drop_notice& operator=(drop_notice&&) noexcept = default;
    ~drop_notice() {
        if (of_) of_->answered.set(make_error_code(errc::shut_down));
    }
    [[nodiscard]] std::shared_ptr<question<T>> take() noexcept { return std::move(of_); }

private:
    std::shared_ptr<question<T>> of_;
};

template <class T>
void finish(std::shared_ptr<question<T>> q, std::error_code error, T value) {
    const detail::op over = std::move(q->interest);  // breaks the circle of question and completion
    q->value = std::move(value);
    q->answered.set(error);
}

// Whether the answer came within that time, and before it was unwanted.
inline bool wait_for(detail::awaited& answer, std::chrono::milliseconds within,
                     const given_up& unwanted) {
    constexpr std::chrono::milliseconds look_every{20};
    using steady = std::chrono::steady_clock;
    const auto end = steady::now() + within;
    if (!unwanted) return answer.wait_until(end);
    while (!answer.wait_until(std::min(end, steady::now() + look_every))) {
        if (steady::now() >= end || unwanted()) return false;
    }
    return true;
}

template <class T, class Store, class Request>
answer<T> ask(detail::store_state& state, Store* at, std::chrono::milliseconds limit,
              Request& request, const given_up& unwanted) {
    constexpr std::chrono::milliseconds moment{500};  // for the turn in which the answer comes
    if (at == nullptr) return {make_error_code(errc::invalid), {}};
    if (const auto error = state.check()) return {error, {}};
    const auto q = std::make_shared<question<T>>();
    const auto by = state.on().now() + limit;
    state.on().start();  // if it has no thread yet
    state.on().post([notice = drop_notice<T>(q), at, by, &request]() mutable {
        const auto mine = notice.take();
        const std::lock_guard hold(mine->starting);
        if (mine->abandoned) return;
        mine->interest =
            request(*at, by, detail::completion<T>([mine](std::error_code error, T value) {
                finish(mine, error, std::move(value));
            }));
    });
    if (wait_for(q->answered, limit + moment, unwanted)) {
        return {q->answered.error(), std::move(q->value)};
    }
    {
        const std::lock_guard hold(q->starting);
        q->abandoned = true;
    }
    state.on().post([q] { q->interest.cancel(); });
    return {make_error_code(errc::unknown_outcome), {}};
}

}  // namespace asking

template <class T, class Request>
answer<T> ask_locks(const store& s, std::chrono::milliseconds limit, Request request,
                    const given_up& unwanted) {
    const auto state = detail::store_access::state(s);
    if (!state) return {make_error_code(errc::invalid), {}};
    return asking::ask<T>(*state, state->locks(), limit, request, unwanted);
}

template <class T, class Request>
answer<T> ask_breakers(const store& s, std::chrono::milliseconds limit, Request request) {
    const auto state = detail::store_access::state(s);
    if (!state) return {make_error_code(errc::invalid), {}};
    return asking::ask<T>(*state, state->breakers(), limit, request, {});
}

}  // namespace trinco::program
