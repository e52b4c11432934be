#include "apps/trinco/call/call_command.hpp"

#include <signal.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/call/call_breaker.hpp"
#include "apps/trinco/call/call_mirror.hpp"
#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/names.hpp"
#include "trinco/breaker_events.hpp"

namespace trinco::program {
namespace {

using std::chrono::milliseconds;
using trinco::detail::boot_clock;

// The command that ran in the end, its own one or the fallback, and how it ended. What is left to
// do is finish(), which may not return: store and guardian are closed before.
struct ran {
    command_spec what;
    command_end end;
    milliseconds took{0};
    std::error_code uncounted;  // why its time-out was not counted when it came
};
using call_result = std::variant<int, ran>;  // int: the exit code, nothing ran

milliseconds since(boot_clock::time_point began) {
    return std::chrono::floor<milliseconds>(boot_clock::now() - began);
}

// A signal that came before the command ran, if it ends programs.
std::optional<int> interruption(signal_desk& desk) {
    while (const auto signal = desk.next()) {
        const bool ends =
            *signal == SIGINT || *signal == SIGTERM || *signal == SIGHUP || *signal == SIGQUIT;
        if (ends) return signal;
    }
    return std::nullopt;
}

std::string ended_how(const command_end& end) {
    switch (end.how) {
        case command_end::how_t::exited: return "exit code " + std::to_string(end.number);
        case command_end::how_t::signaled: return "signal " + std::to_string(end.number);
        case command_end::how_t::not_started: return "it did not start";
        case command_end::how_t::guardian_lost: break;
    }
    return "it was killed together with its guardian";
}

// What is in the window; nothing when that is empty, as after every transition.
std::string window_words(const call_breaker& breaker) {
    const counts& n = breaker.window();
    if (n.judged() == 0) return "";
    return std::to_string(n.failure) + " of " + std::to_string(n.judged()) +
           " calls failed in the last " + duration_words(breaker.rules().window) + "; ";
}

class one_call {
public:
    one_call(std::string name, call_rules rules, bool is_verbose, guardian& over, signal_desk& desk)
        : name_(std::move(name)),
          rules_(std::move(rules)),
          is_verbose_(is_verbose),
          over_(over),
          desk_(desk) {}

    call_result make(const settings& with, std::span<const std::string> words) {
        auto opened = open_store(with, needs::breakers, call_instance_name());
        if (auto* const why = std::get_if<problem>(&opened)) return without(*why, words);
        const store& at = std::get<store>(opened);
        auto mirror = call_mirror::open(with, name_, rules_);
        call_breaker breaker(at, name_, rules_.options, rules_.configured);
        if (mirror) {
            breaker.be_brief();
            if (auto told = mirror->last_heard()) {
                breaker.remember(told->fleet, std::move(told->options));
            }
        }
        const admission answer = breaker.ask(longest());
        if (answer.kind != admission::kind_t::unanswered) {
            return decided(breaker, answer, at, mirror ? &*mirror : nullptr, words);
        }
        const problem why = store_problem(at, "say whether " + name_ + " is closed", answer.error);
        if (!mirror) return without(why, words);
        call_breaker here(mirror->stand_in(), name_, mirror->options(), rules_.configured);
        const admission own = here.ask(longest());
        if (own.kind == admission::kind_t::unanswered) return without(why, words);
        say(why.sentence + "; until it does, this machine decides and counts by itself (" +
            std::string(mirror->stand_in().url()) + ", namespace " +
            std::string(mirror->stand_in().name_space()) + ")");
        return decided(here, own, mirror->stand_in(), nullptr, words);
    }

private:
    // The longest that a call can take, where that is known; the second is for starting it.
    [[nodiscard]] std::optional<milliseconds> longest() const {
        if (!rules_.timeout) return std::nullopt;
        return *rules_.timeout + rules_.grace + std::chrono::seconds(1);
    }

    void tell(const std::string& sentence) const {
        if (is_verbose_) say(sentence);
    }

    // `mirror`: who remembers what this store decides; may be null.
    call_result decided(call_breaker& breaker, const admission& answer, const store& at,
                        call_mirror* mirror, std::span<const std::string> words) {
        if (const auto signal = interruption(desk_)) return exit_signal + *signal;
        call_result result = answer.kind == admission::kind_t::refused
                                 ? refuse(breaker, answer.why)
                                 : call(breaker, answer, at, mirror, words);
        if (mirror != nullptr) mirror->keep(breaker, settled_as_);
        if (const std::string before = breaker.replaced_options(); !before.empty()) {
            say("this call's options of " + name_ + " replace those of another process: " +
                differences(rules_.options, options_of_text(before)) +
                "; whoever comes last governs for all, so give all of them the same");
        }
        return result;
    }

    // The store cannot be used.
    call_result without(const problem& why, std::span<const std::string> words) {
        if (why.code == exit_usage) return complain(why);
        if (rules_.no_store == without_store::refuse) return complain(why);
        if (const auto signal = interruption(desk_)) return exit_signal + *signal;
        say(why.sentence + "; the call is made without its breaker");
        ran r = run({words.begin(), words.end()}, nullptr);
        say_timeout(r.end);
        return r;
    }

    call_result refuse(call_breaker& breaker, const refusal& why) {
        const std::string sentence = refusal_sentence(name_, breaker.fleet(), why);
        if (rules_.fallback.empty()) {
            say(sentence);
        } else {
            tell(sentence);
        }
        if (const auto error = breaker.settle(outcome::ignored, milliseconds(0))) {
            tell("the refusal was not counted: " + error.message());
        }
        if (rules_.fallback.empty()) return rules_.code_open;
        rules_.timeout.reset();  // of the call, which does not take place
        return run(rules_.fallback, nullptr);
    }

    call_result call(call_breaker& breaker, const admission& answer, const store& at,
                     const call_mirror* mirror, std::span<const std::string> words) {
        const bool is_probe = answer.kind == admission::kind_t::probe;
        tell(sentence_of(name_, breaker.fleet()) + (is_probe ? "; this call is a probe" : ""));
        ran r = run({words.begin(), words.end()}, &breaker);
        say_timeout(r.end);
        const outcome what = outcome_of(r.end, r.end.passed_on, rules_.exits);
        settled_as_ = what;
        const auto uncounted = breaker.is_settled() ? r.uncounted : breaker.settle(what, r.took);
        if (uncounted) {
            say(store_problem(at, "count the call of " + name_, uncounted).sentence +
                (mirror != nullptr ? "; this machine has counted it" : ""));
        }
        if (breaker.was_late()) {
            say("the probe of " + name_ + " took longer than probe_timeout (" +
                duration_words(breaker.rules().probe_timeout) +
                ") and counts as failed; if such calls are healthy, give --probe-timeout");
        }
        tell(name_ + ": " + ended_how(r.end) + " after " + duration_words(r.took) + " counts as " +
             std::string(text_of(what)) + "; " + window_words(breaker) +
             sentence_of(name_, breaker.fleet()));
        return r;
    }

    void say_timeout(const command_end& end) const {
        if (!end.acted || !rules_.timeout) return;
        say("the command was ended after " + duration_words(*rules_.timeout) +
            " (--timeout); that is a failure of " + name_);
    }

    ran run(std::vector<std::string> words, call_breaker* breaker) {
        ran r;
        r.what.words = std::move(words);
        const auto began = boot_clock::now();
        if (rules_.timeout) {
            r.what.until.act = began + *rules_.timeout;
            r.what.until.end = r.what.until.act + rules_.grace;
        }
        supervision how;
        how.until = [until = r.what.until] { return until; };
        how.on_event = [&](const guardian_event& e) {
            // Not what it leaves behind.
            if (e.kind == guardian_event::kind_t::ended) r.took = since(began);
            // Others need not find out by themselves while this command takes its time to end.
            if (breaker != nullptr && e.kind == guardian_event::kind_t::acted) {
                r.uncounted = breaker->settle(outcome::failure, since(began));
            }
        };
        r.end = supervise(over_, r.what, desk_, how);
        return r;
    }

    std::string name_;
    call_rules rules_;
    bool is_verbose_;
    guardian& over_;
    signal_desk& desk_;
    outcome settled_as_ = outcome::ignored;
};

class call_command final : public command {
public:
    void declare(arguments& to) override {
        to.positional("BREAKER", name_, "the breaker");
        flags_.declare(to);
        to.flag("-v,--verbose", is_verbose_, "says what the breaker thought before and after");
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "BREAKER", where_);
    }

    int run(std::span<const std::string> words) override {
        signal_desk desk;
        const auto loaded = load_settings(where_);
        if (const auto* why = std::get_if<problem>(&loaded)) return complain(*why);
        if (const auto bad = detail::check_breaker_name(name_)) {
            return complain({exit_usage, *bad});
        }
        const settings& with = std::get<settings>(loaded);
        for (const policy_problem& wrong : with.policy_problems) {
            if (wrong.breaker == name_) return complain({exit_usage, wrong.sentence});
        }
        std::span<const policy_entry> policy;
        if (const auto found = with.policies.find(name_); found != with.policies.end()) {
            policy = found->second;
        }
        auto rules = flags_.rules(policy);
        if (const auto* why = std::get_if<problem>(&rules)) return complain(*why);
        const auto result = guarded(with, std::move(std::get<call_rules>(rules)), desk, words);
        if (const auto* code = std::get_if<int>(&result)) return *code;
        const ran& r = std::get<ran>(result);
        return finish(r.end, r.what);
    }

private:
    // Everything that is to be closed before finish().
    call_result guarded(const settings& with, call_rules rules, signal_desk& desk,
                        std::span<const std::string> words) const {
        // Before the store, which has threads.
        auto started = guardian::start();
        if (const auto* why = std::get_if<problem>(&started)) return complain(*why);
        one_call call(name_, std::move(rules), is_verbose_, std::get<guardian>(started), desk);
        return call.make(with, words);
    }

    std::string name_;
    call_flags flags_;
    bool is_verbose_ = false;
    store_flags where_;
};

}  // namespace

std::unique_ptr<command> make_call_command() {
    return std::make_unique<call_command>();
}

}  // namespace trinco::program
