// What the end of a guarded call means: success, failure or ignored.
//
// Without a classifier every returned value is a success and every exception a failure. A value
// that carries an error (std::error_code, bool, an empty optional) is a success too, because only
// the caller knows what its type means; say it with a classifier:
//
//     const auto rules = trinco::classify_results([](const response& r) {
//         return r.status >= 500 ? trinco::outcome::failure : trinco::outcome::success;
//     });
//     auto r = breaker.call(fetch, rules);
//
//     const auto blame = trinco::classify_exceptions(
//         [](const bad_request&) { return trinco::outcome::ignored; },       // our own fault
//         [](const cancelled&) { return trinco::outcome::ignored; });        // nobody's fault
//     breaker.call(work, blame);
//
//     breaker.call(fetch, trinco::classify(rules, blame));                   // both
//
// An exception handler takes one exception type by const reference; the first one that fits
// decides, and what fits none is a failure. A handler that takes std::exception_ptr fits
// everything. Cancelled calls should be ignored, timeouts should not: a timeout is what a failing
// dependency looks like.
//
// Handlers run on the caller's thread outside every lock. When one throws, its exception goes to
// the caller and the call settles as ignored. Classifiers are values; the same one may serve many
// breakers and threads when its handlers may.
#pragma once

#include <concepts>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "trinco/breaker_types.hpp"

namespace trinco {

namespace detail {

struct classifier_base {};

// The parameter of a handler that takes exactly one.
template <class T>
struct parameter_of : parameter_of<decltype(&T::operator())> {};
template <class R, class A>
struct parameter_of<R (*)(A)> {
    using type = A;
};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A)> {
    using type = A;
};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) const> {
    using type = A;
};
template <class R, class A>
struct parameter_of<R (*)(A) noexcept> {
    using type = A;
};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) noexcept> {
    using type = A;
};
template <class R, class C, class A>
struct parameter_of<R (C::*)(A) const noexcept> {
    using type = A;
};

template <class H>
std::optional<outcome> ask_handler(const H& handler, const std::exception_ptr& thrown) {
    using parameter = std::remove_cvref_t<typename parameter_of<H>::type>;
    if constexpr (std::is_same_v<parameter, std::exception_ptr>) {
        return handler(thrown);
    } else {
        const parameter* match = nullptr;
        try {
            std::rethrow_exception(thrown);
        } catch (const parameter& e) {
            match = &e;  // kept alive by `thrown`
        } catch (...) {
            return std::nullopt;
        }
        return handler(*match);
    }
}

}  // namespace detail

template <class Results, class Exceptions>
struct classifier : detail::classifier_base {
    Results results;
    Exceptions exceptions;

    classifier(Results r, Exceptions e) : results(std::move(r)), exceptions(std::move(e)) {}

    template <class T>
    [[nodiscard]] outcome of_result(const T& value) const {
        if constexpr (std::is_same_v<Results, std::nullptr_t>) {
            return outcome::success;
        } else {
            return results(value);
        }
    }
    [[nodiscard]] outcome of_exception(const std::exception_ptr& thrown) const {
        if constexpr (std::is_same_v<Exceptions, std::nullptr_t>) {
            return outcome::failure;
        } else {
            return exceptions(thrown);
        }
    }
};

template <class T>
concept call_classifier = std::derived_from<std::remove_cvref_t<T>, detail::classifier_base>;

// Everything returned is a success, everything thrown a failure.
[[nodiscard]] inline auto default_classifier() {
    return classifier<std::nullptr_t, std::nullptr_t>(nullptr, nullptr);
}

// handler: outcome(const R&), for the results of the guarded function.
template <class Handler>
[[nodiscard]] auto classify_results(Handler handler) {
    return classifier<Handler, std::nullptr_t>(std::move(handler), nullptr);
}

// handlers: outcome(const E&) for some exception type E each, or outcome(std::exception_ptr).
template <class... Handlers>
[[nodiscard]] auto classify_exceptions(Handlers... handlers) {
    auto ask = [all = std::make_tuple(std::move(handlers)...)](const std::exception_ptr& thrown) {
        std::optional<outcome> found;
        std::apply(
            [&](const auto&... h) {
                ((found = found ? found : detail::ask_handler(h, thrown)), ...);
            },
            all);
        return found.value_or(outcome::failure);
    };
    return classifier<std::nullptr_t, decltype(ask)>(nullptr, std::move(ask));
}

// The results of one classifier and the exceptions of another.
template <class R, class E1, class R2, class E>
[[nodiscard]] auto classify(const classifier<R, E1>& results, const classifier<R2, E>& exceptions) {
    return classifier<R, E>(results.results, exceptions.exceptions);
}

}  // namespace trinco
