// Asking a store of breakers when whoever waits has something better to do than to wait: another
// way to decide, or a person who wants to know why.
//
// A store keeps trying until the deadline, because a server that restarts is back in a moment. It
// knows at once, though, that a connection was refused, or that the server is a replica. Once it
// has said so for `bear`, the question ends:
//
//   unavailable       nothing was sent, or a server refused it: not done
//   unknown_outcome   it was sent and has no answer, or the way to the server broke before one
//                     came: it may have been done
//
// All else is as with ask_breakers.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/trinco/stores/open_store.hpp"
#include "core/loop.hpp"
#include "net/event_loop.hpp"
#include "store/breaker_store.hpp"
#include "store/open.hpp"
#include "trinco/error.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

template <class T, class Request>
[[nodiscard]] answer<T> ask_breakers_hurried(const store& s, std::chrono::milliseconds limit,
                                             std::chrono::milliseconds bear, Request request);

// What it is known to do, from any thread but the store's.
[[nodiscard]] inline detail::store_standing standing_of(const store& s) {
    const auto state = detail::store_access::state(s);
    if (!state || state->breakers() == nullptr) return detail::store_standing::serves;
    // Shared, because the loop may come to it when nobody waits any more.
    const auto said = std::make_shared<detail::store_standing>();
    const auto failed =
        detail::run_and_wait(state->on(), std::chrono::seconds(1),
                             [said, of = state->breakers()] { *said = of->standing(); });
    return failed ? detail::store_standing::serves : *said;
}

namespace hurrying {

inline constexpr std::chrono::milliseconds look_every{5};

// The loop's thread only.
template <class T>
struct race {
    detail::loop& on;
    detail::breaker_store& at;
    std::chrono::milliseconds bear;
    detail::completion<T> done;
    std::optional<detail::deadline> troubled_since;
    detail::op asked;
    detail::op timer;
};

[[nodiscard]] inline std::error_code error_of(const detail::breaker_store& at) {
    return at.in_doubt() ? errc::unknown_outcome : errc::unavailable;
}

template <class T>
void end(const std::shared_ptr<race<T>>& r, std::error_code error, T value) {
    r->timer.cancel();
    r->asked.cancel();
    if (auto done = std::exchange(r->done, nullptr)) done(error, std::move(value));
}

template <class T>
void watch(const std::shared_ptr<race<T>>& r) {
    r->timer = r->on.after(look_every, [weak = std::weak_ptr(r)] {
        const auto own = weak.lock();
        if (!own || !own->done) return;
        if (own->at.standing() == detail::store_standing::serves) {
            own->troubled_since.reset();
        } else if (!own->troubled_since) {
            own->troubled_since = own->on.now();
        }
        if (own->troubled_since && own->on.now() >= *own->troubled_since + own->bear) {
            return end(own, error_of(own->at), T{});
        }
        watch(own);
    });
}

}  // namespace hurrying

template <class T, class Request>
answer<T> ask_breakers_hurried(const store& s, std::chrono::milliseconds limit,
                               std::chrono::milliseconds bear, Request request) {
    const auto state = detail::store_access::state(s);
    if (!state) return {make_error_code(errc::invalid), {}};
    return ask_breakers<T>(s, limit, [&](detail::breaker_store& at, auto by, auto done) {
        auto r = std::make_shared<hurrying::race<T>>(
            hurrying::race<T>{state->on(), at, bear, std::move(done), std::nullopt, {}, {}});
        r->asked = request(at, by, detail::completion<T>([r](std::error_code error, T value) {
                               hurrying::end(r, error, std::move(value));
                           }));
        hurrying::watch(r);
        return detail::op([r]() noexcept {
            r->done = nullptr;
            r->timer.cancel();
            r->asked.cancel();
        });
    });
}

}  // namespace trinco::program
