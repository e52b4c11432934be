// An operator's hand: one request to a store, under the name of who sits at the keyboard.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/problem.hpp"
#include "core/breaker/messages.hpp"

namespace trinco::program {

// user@host, at most 64 bytes: under sudo the user who called it.
[[nodiscard]] std::string who_operates();

// A sentence when the reason has more than 200 bytes or more than one line, or is not UTF-8. Of all
// verbs that take one, of breakers and of locks.
[[nodiscard]] std::optional<problem> check_reason(std::string_view reason);

// Carries it out, once, however often it has to be sent; id and who are filled in. The view
// afterwards.
// `action` names it when it fails: "trip the breaker pay".
[[nodiscard]] std::variant<detail::view, problem> operate(const breakers_place& in,
                                                          detail::control_request what,
                                                          std::string_view action);

}  // namespace trinco::program
