// A breaker's view in words, for tables, sentences and JSON: one vocabulary for all commands.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "apps/trinco/output/json.hpp"
#include "core/breaker/view.hpp"
#include "trinco/breaker_types.hpp"
#include "trinco/permit.hpp"

namespace trinco::program {

// The state in force, as one word: an override's where there is one ("forced_open"), else "closed",
// "open" or "half_open".
[[nodiscard]] std::string_view word_of(const detail::view& v) noexcept;

// "payments is open (failure_rate); probes begin in 8.4 s", "payments is forced open by an
// operator: maintenance (by ann@shop); for another 23 h 59 min; beneath it is closed".
[[nodiscard]] std::string sentence_of(std::string_view breaker, const detail::view& v);

// "payments is open (failure_rate), refused by the shared breaker; retry in 8.4 s".
// `stands_in`: it is this machine's own, while a server is away.
[[nodiscard]] std::string refusal_sentence(std::string_view breaker, const detail::view& v,
                                           const refusal& why, bool stands_in = false);

// "30 %", "33.3 %" of the judged calls, or "-" when there are none.
[[nodiscard]] std::string share_text(std::uint64_t part, std::uint64_t whole);
[[nodiscard]] std::string percent_text(double share);

// Members of a JSON object: state, in_force, reason (of the state; null: none is known, as beneath
// an override), override ({kind, reason, remaining_ms} or null), remaining_ms, backoff_level, era,
// rev.
void add_view(json_object& to, const detail::view& v);
[[nodiscard]] json_object json_of(const counts& n);

}  // namespace trinco::program
