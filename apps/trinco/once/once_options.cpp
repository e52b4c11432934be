#include "apps/trinco/once/once_options.hpp"

#include <array>

#include "apps/trinco/config/lock_ttl.hpp"
#include "apps/trinco/lock/holder_label.hpp"
#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/output/visible.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds longest_wait = 365 * 24h;
constexpr milliseconds longest_keep = 366 * 24h;
constexpr std::uint32_t highest_code = 255;
constexpr std::array<std::string_view, 2> ways_out = {"tell", "rerun"};

problem usage(std::string sentence) {
    return {exit_usage, std::move(sentence)};
}

}  // namespace

void declare_once_options(arguments& to, once_options& options) {
    auto& o = options;
    to.positional("KEY", o.key, "what is done once: 1-180 of A-Z a-z 0-9 . _ - in segments with /");
    to.optional_duration("--wait", o.wait, {0ms, longest_wait},
                         "how long to wait while somebody else runs it; without this option for "
                         "ever");
    declare_ttl(to, o.ttl,
                "how long others take it for running when this machine dies or, on etcd and "
                "Consul, this program is killed, in whole seconds (on Consul 10s or more, and up "
                "to twice as long and 5 s)");
    to.duration("--keep", o.keep, {1'000ms, longest_keep},
                "how long the result is kept once it has ended; whoever asks later runs it again: "
                "say longer than anybody may retry");
    to.text("--fingerprint", o.fingerprint, "TEXT",
            "of the input, such as a hash: the key used again with another one is an error");
    to.choice("--on-interrupted", o.on_interrupted, ways_out,
              "when the one that ran it died in the middle: tell (exit 79), or run it again, under "
              "the same run id");
    to.flag("--retry-on-failure", o.retry_on_failure,
            "run it again when it has failed; otherwise its failure is the answer");
    to.flag("--no-output", o.no_output,
            "keep how it ended, not what it wrote; its standard output stays what it is");
    to.number("--code-not-acquired", o.code_not_acquired, {0, highest_code},
              "exit code when it could not be had in time");
    to.number("--code-interrupted", o.code_interrupted, {0, highest_code},
              "exit code when it was interrupted");
    to.text("--label", o.label, "TEXT",
            "tells others who runs it; default host, process and command");
    to.flag("-v,--verbose", o.verbose, "tell what happens");
    to.store_options(o.where, arguments::stores::locks);
}

std::variant<once_plan, problem> plan_of(const once_options& options, const settings& with,
                                         const std::string& command) {
    const auto& o = options;
    const auto ttl = ttl_of(o.ttl, with);
    if (const auto* const bad = std::get_if<problem>(&ttl)) return *bad;
    if (const auto bad = check_label(o.label)) return *bad;
    if (const auto bad = detail::check_fingerprint(o.fingerprint)) return usage(*bad);
    if (!is_utf8(o.fingerprint)) return usage("--fingerprint is not UTF-8");
    once_plan plan;
    plan.key = with.prefix + o.key;
    if (const auto bad = detail::check_once_key(plan.key)) return usage(*bad);
    plan.wait = o.wait;
    plan.ttl = std::get<seconds>(ttl);
    plan.keep = std::chrono::ceil<seconds>(o.keep);
    plan.grace = default_grace(plan.ttl);
    plan.wishes.fingerprint = o.fingerprint;
    plan.wishes.retry_on_failure = o.retry_on_failure;
    if (o.on_interrupted == "rerun") {
        plan.wishes.on_interrupted = detail::once_wishes::interrupted_t::rerun;
    }
    plan.label = o.label.empty() ? holder_label(command) : o.label;
    return plan;
}

}  // namespace trinco::program
