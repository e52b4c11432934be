#include "apps/trinco/elect/elect_options.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/visible.hpp"
#include "apps/trinco/stores/live_names.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t longest_value = 4'096;  // as trinco/election.hpp allows
constexpr std::uint32_t highest_code = 255;
// Not "ignore", which locks have: a command that goes on would lead beside the next leader.
constexpr std::array<std::string_view, 2> ways_of_loss = {"term", "kill"};

problem usage(std::string sentence) {
    return {exit_usage, std::move(sentence)};
}

std::optional<problem> check_value(const std::string& value) {
    const bool is_shown = !value.empty() && detail::is_one_line(value) && is_utf8(value);
    if (is_shown && value.size() <= longest_value) return std::nullopt;
    return usage("--value is " + detail::quoted(value) + "; it is one line of 1 to " +
                 std::to_string(longest_value) + " bytes of UTF-8");
}

}  // namespace

void declare_elect_options(arguments& to, elect_options& options) {
    auto& o = options.as_lock;
    to.positional("NAME", o.name, "the election: 1-200 of A-Z a-z 0-9 . _ - in segments with /");
    to.optional_text("--value", options.value, "TEXT",
                     "what everybody sees of the leader, such as its address; default host, "
                     "process and command");
    declare_waiting(to, o);
    declare_loss(to, o, ways_of_loss,
                 "what the command gets when the lead is about to be lost: TERM and after --grace "
                 "KILL, or KILL at once");
    to.number("--code-not-acquired", o.code_not_acquired, {0, highest_code},
              "exit code when it does not lead by then");
    to.flag("-v,--verbose", o.verbose,
            "tell place in the queue, times, token and renewals overdue");
    to.flag("-q,--quiet", o.quiet,
            "say nothing when it does not lead and, at a terminal, when it waits; the exit code "
            "tells. Errors are said");
    to.flag("--observe", options.observe,
            "run nothing and do not stand: print who leads, and each change, until interrupted");
    to.output_option(options.format);
    to.store_options(o.where, arguments::stores::locks);
    to.complete_with("NAME", [&o] { return live_locks(o.where); });
}

std::variant<lock_plan, problem> plan_of(const elect_options& options, const settings& with,
                                         const std::string& command) {
    if (options.format != "table") {
        return usage("-o is for what --observe prints; leave it out, or add --observe");
    }
    if (options.value) {
        if (auto bad = check_value(*options.value)) return *std::move(bad);
    }
    auto planned = plan_of(options.as_lock, with, command);
    if (auto* const plan = std::get_if<lock_plan>(&planned)) {
        plan->value = options.value.value_or(plan->label);
    }
    return planned;
}

std::variant<std::string, problem> observed_name(const elect_options& options,
                                                 const std::string& prefix) {
    const auto& o = options.as_lock;
    const std::string_view surplus = options.value ? "--value"
                                     : o.wait      ? "--wait"
                                     : o.no_wait   ? "--no-wait"
                                                   : "";
    if (!surplus.empty()) {
        return usage("--observe only looks, and " + std::string(surplus) +
                     " is for who stands; leave out one of them");
    }
    std::string name = prefix + o.name;
    if (const auto bad = detail::check_lock_name(name)) return usage(*bad);
    return name;
}

}  // namespace trinco::program
