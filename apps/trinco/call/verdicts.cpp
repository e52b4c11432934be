#include "apps/trinco/call/verdicts.hpp"

#include <signal.h>

#include <charconv>

#include "core/quoted.hpp"

namespace trinco::program {
namespace {

constexpr int most = 255;

// A number of 0 to 255 and nothing else.
std::optional<int> parse_code(std::string_view text) {
    int n = 0;
    const auto end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, n);
    if (error != std::errc{} || at != end || n < 0 || n > most) return std::nullopt;
    return n;
}

// A code or a range of them.
bool add_part(std::string_view part, exit_code_set& to) {
    const auto dash = part.find('-');
    const auto first = parse_code(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_code(part.substr(dash + 1));
    if (!first || !last || *first > *last) return false;
    for (int n = *first; n <= *last; ++n) to.set(static_cast<std::size_t>(n));
    return true;
}

bool ends_programs(int signal) noexcept {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

outcome outcome_of_code(int code, const exit_rules& rules) {
    const auto at = static_cast<std::size_t>(code & most);
    if (rules.ignored.test(at)) return outcome::ignored;
    if (rules.failures && rules.failures->test(at)) return outcome::failure;
    constexpr int by_signal = 128;
    if (ends_programs(code - by_signal)) return outcome::ignored;
    return code == 0 || rules.failures ? outcome::success : outcome::failure;
}

}  // namespace

std::variant<exit_code_set, std::string> parse_exit_codes(std::string_view what,
                                                          std::string_view text) {
    exit_code_set codes;
    for (std::string_view rest = text;;) {
        const auto comma = rest.find(',');
        if (!add_part(rest.substr(0, comma), codes)) {
            return std::string(what) + " " + detail::quoted(text) +
                   " is no list of exit codes; they are 0 to 255, as in 1,2,10-20";
        }
        if (comma == std::string_view::npos) return codes;
        rest.remove_prefix(comma + 1);
    }
}

std::optional<std::string> check_exit_rules(const exit_rules& rules) {
    if (!rules.failures) return std::nullopt;
    const exit_code_set both = *rules.failures & rules.ignored;
    for (std::size_t n = 0; n < both.size(); ++n) {
        if (!both.test(n)) continue;
        return "exit code " + std::to_string(n) +
               " is in --failure-exit and in --ignore-exit; it can be in one of them only";
    }
    return std::nullopt;
}

outcome outcome_of(const command_end& end, bool passed_on, const exit_rules& rules) {
    if (end.acted) return outcome::failure;
    switch (end.how) {
        case command_end::how_t::exited:
            if (passed_on && end.number != 0) return outcome::ignored;
            return outcome_of_code(end.number, rules);
        case command_end::how_t::signaled:
            return ends_programs(end.number) ? outcome::ignored : outcome::failure;
        case command_end::how_t::not_started:
        case command_end::how_t::guardian_lost: break;
    }
    return outcome::ignored;
}

}  // namespace trinco::program
