// What the end of a command says about the dependency that it called. Pure.
//
//   ended by              counts as
//   exit code 0           success
//   another exit code     failure; success when --failure-exit names others only; nothing when
//                         --ignore-exit names it
//   its --timeout         failure, however it ended then
//   INT, TERM, HUP, QUIT  nothing: somebody did not want to wait, or the machine goes down; also
//                         an exit code other than 0 after one of these was passed on to it, and
//                         128+n, as a shell says it, unless --failure-exit names that
//   another signal        failure (a crash)
//   it did not start      nothing (126, 127): a command that is not there says nothing about the
//                         dependency, and a breaker that opened for it would hide the reason
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/process/supervise.hpp"
#include "trinco/breaker_types.hpp"

namespace trinco::program {

// Exit codes, 0 to 255.
using exit_code_set = std::bitset<256>;

// "1,2,10-20". Otherwise one sentence; `what` begins it: "--failure-exit".
[[nodiscard]] std::variant<exit_code_set, std::string> parse_exit_codes(std::string_view what,
                                                                        std::string_view text);

struct exit_rules {
    std::optional<exit_code_set> failures;  // nothing: all but 0
    exit_code_set ignored;
};

// One sentence when a code is in both.
[[nodiscard]] std::optional<std::string> check_exit_rules(const exit_rules& rules);

// `passed_on`: a signal that ends programs was passed on to the command while it ran.
[[nodiscard]] outcome outcome_of(const command_end& end, bool passed_on, const exit_rules& rules);

}  // namespace trinco::program
