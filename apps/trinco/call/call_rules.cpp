#include "apps/trinco/call/call_rules.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/call/words.hpp"
#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using trinco::detail::option_row;
using trinco::detail::option_unit;
using sentence = std::optional<std::string>;  // nothing: all is well

constexpr milliseconds longest = 24h * 365;
constexpr milliseconds longest_probe = 1h;

// Beside what the fleet agrees on, these have a meaning for a process of one call.
constexpr std::array<std::string_view, 2> own_options = {"slow_call_after", "store_timeout"};

struct described {
    std::string_view key;
    std::string_view help;
};
constexpr std::array<described, 9> descriptions{{
    {"failure_rate", "opens at this failed share of the calls of the window; default 0.5"},
    {"failure_count", "opens at this many failures in the window, whatever the rate"},
    {"minimum_calls", "no rate is judged below this many calls; default 5"},
    {"window", "how long a call counts; default 5min"},
    {"open_for", "how long calls are refused at first; default 10s"},
    {"half_open_probes", "calls that are let through to try, and must succeed; default 5"},
    {"probe_timeout", "a try that takes longer has failed; default 5min"},
    {"slow_call_after", "a call that takes as long is slow; see --slow-call-rate"},
    {"slow_call_rate", "opens at this slow share of the calls of the window"},
}};

std::string_view description_of(std::string_view key) {
    for (const described& d : descriptions) {
        if (d.key == key) return d.help;
    }
    return "see 'trinco help options'";
}

bool is_for_calls(const option_row& option) {
    return is_shared_option(option) ||
           std::find(own_options.begin(), own_options.end(), option.key) != own_options.end();
}

std::string flag_name(std::string_view key) {
    std::string name = "--" + std::string(key);
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

sentence set_time(std::string_view what, std::string_view text, milliseconds lowest,
                  milliseconds& to) {
    const auto read = parse_duration(text);
    if (const auto* why = std::get_if<std::string>(&read)) return std::string(what) + ": " + *why;
    to = std::get<milliseconds>(read);
    if (to >= lowest && to <= longest) return std::nullopt;
    return std::string(what) + " is " + detail::quoted(text) + "; allowed is " +
           duration_words(lowest) + " to " + duration_words(longest);
}

sentence set_codes(std::string_view what, std::string_view text, exit_code_set& to) {
    auto read = parse_exit_codes(what, text);
    if (auto* why = std::get_if<std::string>(&read)) return std::move(*why);
    to = std::get<exit_code_set>(read);
    return std::nullopt;
}

sentence set_fallback(std::string_view text, call_rules& to) {
    auto read = split_words(text);
    if (auto* why = std::get_if<std::string>(&read)) return "the fallback: " + *why;
    to.fallback = std::move(std::get<std::vector<std::string>>(read));
    return std::nullopt;
}

sentence set_no_store(std::string_view text, call_rules& to) {
    if (text != "run" && text != "refuse") {
        return "on_no_store is " + detail::quoted(text) + "; it is run or refuse";
    }
    to.no_store = text == "run" ? without_store::run : without_store::refuse;
    return std::nullopt;
}

sentence set_code_open(std::string_view text, call_rules& to) {
    auto read = parse_exit_codes("code_open", text);
    const auto* codes = std::get_if<exit_code_set>(&read);
    if (codes == nullptr || codes->count() != 1) {
        return "code_open is " + detail::quoted(text) + "; it is one exit code, 0 to 255";
    }
    for (std::size_t n = 0; n < codes->size(); ++n) {
        if (codes->test(n)) to.code_open = static_cast<int>(n);
    }
    return std::nullopt;
}

// One key of the file.
sentence set_key(std::string_view key, std::string_view value, call_rules& to) {
    if (key == "timeout" || key == "call_timeout") {
        return set_time(key, value, 1ms, to.timeout.emplace());
    }
    if (key == "grace") return set_time(key, value, 0ms, to.grace);
    if (key == "failure_exit") return set_codes(key, value, to.exits.failures.emplace());
    if (key == "ignore_exit") return set_codes(key, value, to.exits.ignored);
    if (key == "fallback") return set_fallback(value, to);
    if (key == "code_open") return set_code_open(value, to);
    if (key == "on_no_store") return set_no_store(value, to);
    if (auto why = assign_option(key, value, to.options)) return why;
    const option_row* const option = detail::find_option(key);
    if (!is_for_calls(*option)) {
        return "the option " + std::string(key) +
               " has no meaning for 'trinco call': a process of one call has no window of its own";
    }
    to.configured = to.configured || is_shared_option(*option);
    return std::nullopt;
}

// Defaults that follow other options, where they were not given themselves.
template <class Given>
void follow(call_rules& r, Given is_given) {
    breaker_options& o = r.options;
    if (r.timeout && !is_given("probe_timeout")) {
        o.probe_timeout = std::clamp(*r.timeout + r.grace + 1s, o.probe_timeout, longest_probe);
    }
    if (!is_given("open_max")) o.open_max = std::max(o.open_max, o.open_for);
    // Nothing of a process of one call depends on it, but the check looks at both.
    o.degraded_after = std::max(o.degraded_after, o.store_timeout);
}

// "/etc/trinco.toml:3: ", when the file says it.
std::string source_of(std::string_view key, std::span<const policy_entry> file) {
    for (const policy_entry& e : file) {
        if (e.key == key) return e.source + ": ";
    }
    return {};
}

problem wrong(std::string what) {
    return {exit_usage, std::move(what)};
}

}  // namespace

breaker_options call_defaults() {
    breaker_options o;
    o.minimum_calls = 5;
    o.window = 5min;
    o.live_for = 5min;
    o.probe_timeout = 5min;
    o.store_timeout = 1s;
    o.consistency = consistency::strict;
    return o;
}

call_flags::call_flags() {
    for (const option_row& option : detail::breaker_option_table()) {
        if (is_for_calls(option)) options_.push_back({&option, {}, {}, {}});
    }
}

void call_flags::declare(arguments& to) {
    to.optional_duration("--timeout", timeout_, {1ms, longest},
                         "the command gets TERM after this long, and has failed");
    to.optional_duration("--grace", grace_, {0ms, longest},
                         "how much later it is killed; default 3s");
    to.optional_text("--failure-exit", failure_exit_, "CODES",
                     "only these exit codes are failures, as in 1,2,10-20");
    to.optional_text("--ignore-exit", ignore_exit_, "CODES",
                     "these exit codes say nothing about the dependency");
    to.optional_text("--fallback", fallback_, "COMMAND",
                     "runs when the call is refused; its exit code counts then. Words as in a "
                     "shell, with quotes, but without a shell");
    to.optional_number("--code-open", code_open_, {0, 255}, "exit code of a refusal; default 75");
    to.optional_text("--on-no-store", no_store_, "WHAT",
                     "while the store cannot be asked: run by what this machine remembers, and "
                     "where that is nothing, too (default); or refuse whatever is remembered, with "
                     "69, or 77 for rights");
    to.complete_with("--on-no-store", [] { return std::vector<std::string>{"run", "refuse"}; });
    for (option_flag& flag : options_) declare_option(to, flag);
}

void call_flags::declare_option(arguments& to, option_flag& flag) {
    const option_row& option = *flag.option;
    const std::string name = flag_name(option.key);
    const double lowest = option.zero_is_off ? 0 : option.lowest;
    const auto help = description_of(option.key);
    switch (option.unit) {
        case option_unit::share:
        case option_unit::factor:
            return to.optional_real(name, flag.real, {lowest, option.highest}, help);
        case option_unit::number:
            return to.optional_number(
                name, flag.number,
                {static_cast<std::uint32_t>(lowest), static_cast<std::uint32_t>(option.highest)},
                help);
        case option_unit::duration:
            return to.optional_duration(name, flag.duration,
                                        {milliseconds(static_cast<std::int64_t>(lowest)),
                                         milliseconds(static_cast<std::int64_t>(option.highest))},
                                        help);
        case option_unit::choice: break;  // consistency: a process of one call is always strict
    }
}

void call_flags::assign(const option_flag& flag, call_rules& to) {
    if (!flag.real && !flag.number && !flag.duration) return;
    to.configured = to.configured || is_shared_option(*flag.option);
    std::visit(
        [&](auto member) {
            auto& field = to.options.*member;
            using type = std::remove_reference_t<decltype(field)>;
            if constexpr (std::is_same_v<type, double>) {
                field = flag.real.value_or(field);
            } else if constexpr (std::is_same_v<type, std::uint32_t>) {
                field = flag.number.value_or(field);
            } else if constexpr (std::is_same_v<type, milliseconds>) {
                field = flag.duration.value_or(field);
            }
        },
        flag.option->field);
}

std::variant<call_rules, problem> call_flags::rules(std::span<const policy_entry> file) const {
    call_rules r;
    r.options = call_defaults();
    r.code_open = exit_not_acquired;
    for (const policy_entry& e : file) {
        if (auto why = set_key(e.key, e.value, r)) return wrong(e.source + ": " + *why);
    }
    if (timeout_) r.timeout = timeout_;
    if (grace_) r.grace = *grace_;
    if (code_open_) r.code_open = static_cast<int>(*code_open_);
    sentence why;
    if (failure_exit_) {
        why = set_codes("--failure-exit", *failure_exit_, r.exits.failures.emplace());
    }
    if (!why && ignore_exit_) why = set_codes("--ignore-exit", *ignore_exit_, r.exits.ignored);
    if (!why && fallback_) why = set_fallback(*fallback_, r);
    if (!why && no_store_) why = set_no_store(*no_store_, r);
    if (!why) why = check_exit_rules(r.exits);
    if (why) return wrong(std::move(*why));

    for (const option_flag& flag : options_) assign(flag, r);
    const auto is_flag = [&](std::string_view key) {
        return std::any_of(options_.begin(), options_.end(), [&](const option_flag& f) {
            return f.option->key == key && (f.real || f.number || f.duration);
        });
    };
    follow(r, [&](std::string_view key) { return is_flag(key) || !source_of(key, file).empty(); });
    if (const auto bad = validate(r.options)) {
        return wrong((is_flag(bad->key) ? "" : source_of(bad->key, file)) + bad->message());
    }
    return r;
}

}  // namespace trinco::program
