// Why a breaker is not closed, in a sentence: an operator who looks just after it opened sees a
// window that began anew, and must not take its zeros for "no failures".
#pragma once

#include <string>

#include "core/breaker/messages.hpp"

namespace trinco::program {

// "at least 50 % of at least 20 calls within 10 s had failed, as 2 voters or more saw": the rule of
// the governing options that was broken. Counts themselves are not kept beyond the change. Empty
// while the breaker is closed, and when the reason is not one of Trinco's own.
[[nodiscard]] std::string why_text(const detail::report& r);

}  // namespace trinco::program
