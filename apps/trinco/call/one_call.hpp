// One call behind its breaker, from the question to the end of the command: who decides, what runs,
// who counts it and what is said. See call_command.hpp for the rules.
//
//   server answers                    it decides; its mirror, where there is one, counts as well
//   ... and takes no writes           the mirror's breaker decides beside it, in series, and counts
//   server does not answer            the mirror's breaker decides and counts by itself;
//                                     --on-no-store refuse: nothing runs
//   nobody answers                    the command runs unprotected, or with refuse not at all
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <variant>

#include "apps/trinco/call/call_breaker.hpp"
#include "apps/trinco/call/call_mirror.hpp"
#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// The command that ran in the end, its own one or the fallback, and how it ended. What is left to
// do is finish(), which may not return: store and guardian are closed before.
struct ran {
    command_spec what;
    command_end end;
    std::chrono::milliseconds took{0};
    std::error_code uncounted;  // why its time-out was not counted when it came
};
using call_result = std::variant<int, ran>;  // int: the exit code, nothing ran

class one_call {
public:
    one_call(std::string name, call_rules rules, bool is_verbose, guardian& over,
             signal_desk& desk);

    // Once.
    call_result make(const settings& with, std::span<const std::string> words);

private:
    using milliseconds = std::chrono::milliseconds;

    [[nodiscard]] std::optional<milliseconds> longest() const;
    void tell(const std::string& sentence) const;
    [[nodiscard]] problem failed(const store& at, const std::string& action,
                                 const std::error_code& error) const;
    [[nodiscard]] std::string here_words() const;

    call_result unanswered(const problem& why, std::span<const std::string> words);
    call_result unprotected(const problem& why, std::span<const std::string> words);
    call_result decided(call_breaker& breaker, const admission& answer, const store& at,
                        std::span<const std::string> words);
    [[nodiscard]] admission beside(call_breaker& breaker, const admission& answer);
    call_result refuse(call_breaker& breaker, const refusal& why, const store& at);
    call_result call(call_breaker& breaker, bool is_probe, const store& at,
                     std::span<const std::string> words);
    [[nodiscard]] std::error_code settle(call_breaker& breaker, outcome what, milliseconds took);
    void say_timeout(const command_end& end) const;
    ran run(std::vector<std::string> words, call_breaker* breaker);

    std::string name_;
    call_rules rules_;
    bool is_verbose_;
    guardian& over_;
    signal_desk& desk_;
    std::string store_words_;
    std::optional<call_mirror> mirror_;
    std::string why_no_mirror_;
    std::unique_ptr<call_breaker> beside_;  // the mirror's, where it decides beside the server
    const store* server_ = nullptr;         // that has answered, where there is a mirror of it
};

}  // namespace trinco::program
