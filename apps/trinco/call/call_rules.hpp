// What governs one `trinco call`: flag > [breakers.policies.NAME] of trinco.toml > the command
// line's own defaults.
//
// The defaults are those of something that is called now and then, not a thousand times a second:
//
//   failure_rate   0.5      of at least
//   minimum_calls  5        calls in a
//   window         5 min
//   live_for       5 min    a machine that calls once a minute is alive between two calls
//   probe_timeout  5 min    or --timeout and --grace and a second, when that is longer
//   open_max       5 min    or open_for, when that is longer
//   store_timeout  1 s      a process that has just been started need not save milliseconds
//
// and for all others those of breaker_options.hpp. A call without any option of its own takes what
// governs the breaker already, say the options of a service that shares it; see call_breaker.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/trinco/call/verdicts.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"
#include "core/breaker_options_table.hpp"
#include "trinco/breaker_options.hpp"

namespace trinco::program {

class arguments;

enum class without_store : std::uint8_t {
    run,    // by the mirror of this machine; without one unprotected: what protects must not be
            // the outage
    refuse  // exit_unavailable, or exit_denied: whatever the mirror would say
};

struct call_rules {
    breaker_options options;
    bool configured = false;  // options were given, by flags or file: they govern from now on
    exit_rules exits;
    std::optional<std::chrono::milliseconds> timeout;
    std::chrono::milliseconds grace{3'000};
    std::vector<std::string> fallback;  // empty: none
    int code_open = 0;
    without_store no_store = without_store::run;
};

[[nodiscard]] breaker_options call_defaults();

// As given on the command line.
class call_flags {
public:
    call_flags();
    // Declares all of them; keep this object until the arguments are parsed.
    void declare(arguments& to);

    // The problem: one sentence; of a value from the file with file and line.
    [[nodiscard]] std::variant<call_rules, problem> rules(
        std::span<const policy_entry> from_file) const;

private:
    struct option_flag {
        const detail::option_row* option;
        std::optional<double> real;
        std::optional<std::uint32_t> number;
        std::optional<std::chrono::milliseconds> duration;
    };
    void declare_option(arguments& to, option_flag& flag);
    static void assign(const option_flag& flag, call_rules& to);

    std::vector<option_flag> options_;
    std::optional<std::chrono::milliseconds> timeout_;
    std::optional<std::chrono::milliseconds> grace_;
    std::optional<std::string> failure_exit_;
    std::optional<std::string> ignore_exit_;
    std::optional<std::string> fallback_;
    std::optional<std::uint32_t> code_open_;
    std::optional<std::string> no_store_;
};

}  // namespace trinco::program
