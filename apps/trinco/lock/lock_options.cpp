#include "apps/trinco/lock/lock_options.hpp"

#include <algorithm>
#include <array>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/config/lock_ttl.hpp"
#include "apps/trinco/lock/holder_label.hpp"
#include "apps/trinco/stores/live_names.hpp"
#include "core/lock/lease.hpp"
#include "core/names.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::lease_timing;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds longest_ttl = lease_timing::longest_ttl;
constexpr milliseconds longest_wait = 365 * 24h;
constexpr std::uint32_t most_permits = 1'000'000;
constexpr std::uint32_t highest_code = 255;
constexpr std::array<std::string_view, 3> ways_of_loss = {"term", "kill", "ignore"};

problem usage(std::string sentence) {
    return {exit_usage, std::move(sentence)};
}

std::optional<problem> contradiction(const lock_options& o) {
    if (o.wait && *o.wait > 0ms && o.no_wait) {
        return usage("--wait and --no-wait contradict each other; give one of them");
    }
    if (o.permits && o.shared) {
        return usage(
            "-n and --shared contradict each other: -n " + std::to_string(*o.permits) +
            " lets so many holders in at a time, --shared any number that all say --shared");
    }
    if (o.verbose && o.quiet) {
        return usage("--verbose and --quiet contradict each other; give one of them");
    }
    return check_label(o.label);
}

}  // namespace

void declare_waiting(arguments& to, lock_options& o) {
    to.optional_duration("--wait", o.wait, {0ms, longest_wait},
                         "how long to wait for it; without this option for ever");
    to.flag("--no-wait", o.no_wait, "take it only when it is free");
    declare_ttl(to, o.ttl,
                "how long it stays taken when this machine dies or, on etcd and Consul, this "
                "program is killed, in whole seconds (on Consul 10s or more, and it stays taken "
                "up to twice as long and 5 s); with the default --grace the command notices "
                "nothing of a store that is away for about a third of it");
}

void declare_loss(arguments& to, lock_options& o, std::span<const std::string_view> ways,
                  std::string_view help) {
    to.optional_duration("--grace", o.grace, {0ms, longest_ttl},
                         "the command's time to end before it may be lost; default "
                         "min(5 s, TTL/5), with a TTL of 1s 83ms");
    to.choice("--on-lost", o.on_lost, ways, help);
}

void declare_lock_options(arguments& to, lock_options& options) {
    auto& o = options;
    to.positional("NAME", o.name, "the lock: 1-200 of A-Z a-z 0-9 . _ - in segments with /");
    declare_waiting(to, o);
    to.optional_number("-n,--permits", o.permits, {1, most_permits},
                       "so many may hold it at a time; on Consul at most 500");
    to.flag("--shared", o.shared, "together with all others that say --shared; not on Consul");
    declare_loss(to, o, ways_of_loss,
                 "what the command gets when the lock is about to be lost: TERM and after --grace "
                 "KILL, KILL at once, or nothing");
    to.number("--code-not-acquired", o.code_not_acquired, {0, highest_code},
              "exit code when it could not be had");
    to.number("--code-lost", o.code_lost, {0, highest_code}, "exit code when it was lost");
    to.text("--label", o.label, "TEXT",
            "tells others who holds it; default host, process and command");
    to.flag("-v,--verbose", o.verbose,
            "tell place in the queue, times, token and renewals overdue");
    to.flag("-q,--quiet", o.quiet,
            "say nothing when it could not be had and, at a terminal, when it is waited for; the "
            "exit code tells. Errors are said");
    to.store_options(o.where, arguments::stores::locks);
    to.complete_with("NAME", [&o] { return live_locks(o.where); });
}

milliseconds longest_grace(seconds ttl) {
    const auto left = lease_timing::believed(ttl) - 2 * lease_timing::renew_after(ttl);
    return std::max(std::chrono::floor<milliseconds>(left), 0ms);
}

milliseconds default_grace(seconds ttl) {
    return std::min({milliseconds(5s), milliseconds(ttl) / 5, longest_grace(ttl)});
}

std::variant<lock_plan, problem> plan_of(const lock_options& options, const settings& with,
                                         const std::string& command) {
    const auto& o = options;
    if (auto bad = contradiction(o)) return *std::move(bad);
    lock_plan plan;
    plan.what.name = with.prefix + o.name;
    if (const auto bad = detail::check_lock_name(plan.what.name)) return usage(*bad);
    if (o.permits) {
        plan.what.kind = detail::claim_kind::permit;
        plan.what.n = *o.permits;
    } else if (o.shared) {
        plan.what.kind = detail::claim_kind::shared;
    }
    plan.wait = o.no_wait ? milliseconds(0) : o.wait;
    const auto ttl = ttl_of(o.ttl, with);
    if (const auto* const bad = std::get_if<problem>(&ttl)) return *bad;
    plan.ttl = std::get<seconds>(ttl);
    plan.grace = o.grace.value_or(default_grace(plan.ttl));
    if (const auto most = longest_grace(plan.ttl); plan.grace > most) {
        return usage("--grace is " + duration_words(plan.grace) + "; with a TTL of " +
                     duration_words(plan.ttl) + " at most " + std::to_string(most.count()) +
                     "ms are allowed: a third of the TTL must remain for repeating a renewal");
    }
    if (o.on_lost == "kill") plan.at_act = on_deadline::kill;
    if (o.on_lost == "ignore") plan.at_act = on_deadline::ignore;
    plan.label = o.label.empty() ? holder_label(command) : o.label;
    return plan;
}

}  // namespace trinco::program
