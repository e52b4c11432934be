#include "apps/trinco/call/one_call.hpp"

#include <signal.h>

#include <utility>

#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/breaker_trouble.hpp"
#include "apps/trinco/stores/hurried_ask.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "trinco/breaker_events.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using std::chrono::milliseconds;
using trinco::detail::boot_clock;
using trinco::detail::store_standing;
using kind_t = admission::kind_t;

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

call_mirror::hindrance hindrance_of(const store& at, const std::error_code& error) {
    using trouble_t = server_mirror::trouble_t;
    const bool was_reached =
        standing_of(at) == store_standing::refuses || error == errc::busy || error == errc::denied;
    return {was_reached ? trouble_t::no_writes : trouble_t::away,
            reason_text(error, trouble_of(at))};
}

}  // namespace

one_call::one_call(std::string name, call_rules rules, bool is_verbose, guardian& over,
                   signal_desk& desk)
    : name_(std::move(name)),
      rules_(std::move(rules)),
      is_verbose_(is_verbose),
      over_(over),
      desk_(desk) {}

// ---- who decides -------------------------------------------------------------------------------

call_result one_call::make(const settings& with, std::span<const std::string> words) {
    store_words_ = store_words(with);
    auto opened = open_store(with, needs::breakers, call_instance_name());
    const auto* const unusable = std::get_if<problem>(&opened);
    if (unusable != nullptr && unusable->code == exit_usage) return complain(*unusable);
    mirror_ = call_mirror::open(with, name_, rules_, why_no_mirror_);
    if (!why_no_mirror_.empty()) {
        tell("this machine's mirror cannot be used: " + why_no_mirror_ +
             "; while the server is away calls are made without their breaker");
    }
    if (unusable != nullptr) return unanswered(*unusable, words);
    const store& at = std::get<store>(opened);
    call_breaker breaker(at, name_, rules_.options, rules_.configured);
    if (mirror_) mirror_->prepare(breaker);
    admission answer = breaker.ask(longest());
    const bool is_answered = answer.kind != kind_t::unanswered;
    if (mirror_ && is_answered) mirror_->was_asked(breaker, std::nullopt);
    if (!is_answered) {
        if (mirror_) mirror_->was_asked(breaker, reason_text(answer.error, trouble_of(at)));
        return unanswered(failed(at, "say whether " + name_ + " is closed", answer.error), words);
    }
    if (mirror_) server_ = &at;
    answer = beside(breaker, answer);
    return decided(breaker, answer, at, words);
}

// The server cannot be asked.
call_result one_call::unanswered(const problem& why, std::span<const std::string> words) {
    if (!mirror_ || rules_.no_store == without_store::refuse) return unprotected(why, words);
    const store& at = mirror_->stand_in_store();
    call_breaker here(at, name_, mirror_->options(), rules_.configured);
    const admission own = here.ask(longest());
    if (own.kind == kind_t::unanswered) return unprotected(why, words);
    say(why.sentence + "; meanwhile this machine decides and counts by itself" + here_words());
    return decided(here, own, at, words);
}

// Nobody decides.
call_result one_call::unprotected(const problem& why, std::span<const std::string> words) {
    if (rules_.no_store == without_store::refuse) return complain(why);
    if (const auto signal = interruption(desk_)) return exit_signal + *signal;
    say(why.sentence + "; the call is made without its breaker" +
        (why_no_mirror_.empty() ? ""
                                : ", as this machine's mirror cannot be used: " + why_no_mirror_));
    ran r = run({words.begin(), words.end()}, nullptr);
    say_timeout(r.end);
    return r;
}

// What holds when the server's answer is one of two.
admission one_call::beside(call_breaker& breaker, const admission& answer) {
    const auto over = breaker.fleet().over;
    const bool is_asked = mirror_ && mirror_->decides_beside() && answer.kind == kind_t::counted &&
                          over != override_kind::disabled;
    if (!is_asked) return answer;
    mirror_->catch_up(breaker);
    beside_ = std::make_unique<call_breaker>(mirror_->stand_in_store(), name_, mirror_->options(),
                                             rules_.configured);
    admission own = beside_->ask(longest());
    if (own.kind != kind_t::refused) return answer;
    own.why.by = refused_by::local_breaker;
    return own;
}

call_result one_call::decided(call_breaker& breaker, const admission& answer, const store& at,
                              std::span<const std::string> words) {
    if (const auto signal = interruption(desk_)) return exit_signal + *signal;
    call_result result = answer.kind == kind_t::refused
                             ? refuse(breaker, answer.why, at)
                             : call(breaker, answer.kind == kind_t::probe, at, words);
    if (const std::string before = breaker.replaced_options(); !before.empty()) {
        say("this call's options of " + name_ + " replace those of another process: " +
            differences(rules_.options, options_of_text(before)) +
            "; whoever comes last governs for all, so give all of them the same");
    }
    return result;
}

// ---- what happens ------------------------------------------------------------------------------

call_result one_call::refuse(call_breaker& breaker, const refusal& why, const store& at) {
    const bool is_own = why.by == refused_by::local_breaker && beside_ != nullptr;
    const bool stands_in = is_own || (mirror_ && server_ == nullptr);
    const std::string sentence =
        refusal_sentence(name_, is_own ? beside_->fleet() : breaker.fleet(), why, stands_in);
    if (rules_.fallback.empty()) {
        say(sentence);
    } else {
        tell(sentence);
    }
    if (const auto error = settle(breaker, outcome::ignored, milliseconds(0))) {
        const std::string text = failed(at, "count the refusal of " + name_, error).sentence;
        // Where the server says "closed", it explains the refusal.
        if (is_own && rules_.fallback.empty()) {
            say(text + "; meanwhile this machine decides, too" + here_words());
        } else {
            tell(text);
        }
    }
    if (rules_.fallback.empty()) return rules_.code_open;
    rules_.timeout.reset();  // of the call, which does not take place
    return run(rules_.fallback, nullptr);
}

call_result one_call::call(call_breaker& breaker, bool is_probe, const store& at,
                           std::span<const std::string> words) {
    tell(sentence_of(name_, breaker.fleet()) + (is_probe ? "; this call is a probe" : ""));
    ran r = run({words.begin(), words.end()}, &breaker);
    say_timeout(r.end);
    const outcome what = outcome_of(r.end, r.end.passed_on, rules_.exits);
    const auto uncounted = breaker.is_settled() ? r.uncounted : settle(breaker, what, r.took);
    if (uncounted) {
        say(failed(at, "count the call of " + name_, uncounted).sentence +
            (server_ != nullptr
                 ? "; this machine has counted it, and decides, too, meanwhile" + here_words()
                 : ""));
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

// In both, where two have decided; the error is the server's. The mirror hears of it at once, as a
// command that ran into its time-out, or a fallback, may go on for long.
std::error_code one_call::settle(call_breaker& breaker, outcome what, milliseconds took) {
    if (beside_) static_cast<void>(beside_->settle(what, took));
    const std::error_code error = breaker.settle(what, took);
    if (server_ == nullptr) return error;
    std::optional<call_mirror::hindrance> why_not;
    if (error) why_not = hindrance_of(*server_, error);
    mirror_->keep(breaker, what, why_not, beside_ != nullptr);
    return error;
}

ran one_call::run(std::vector<std::string> words, call_breaker* breaker) {
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
            r.uncounted = settle(*breaker, outcome::failure, since(began));
        }
    };
    r.end = supervise(over_, r.what, desk_, how);
    return r;
}

// ---- what is said ------------------------------------------------------------------------------

// The longest that a call can take, where that is known; the second is for starting it.
std::optional<milliseconds> one_call::longest() const {
    if (!rules_.timeout) return std::nullopt;
    return *rules_.timeout + rules_.grace + std::chrono::seconds(1);
}

void one_call::tell(const std::string& sentence) const {
    if (is_verbose_) say(sentence);
}

void one_call::say_timeout(const command_end& end) const {
    if (!end.acted || !rules_.timeout) return;
    say("the command was ended after " + duration_words(*rules_.timeout) +
        " (--timeout); that is a failure of " + name_);
}

problem one_call::failed(const store& at, const std::string& action,
                         const std::error_code& error) const {
    return breaker_problem(at, action, asked::to_read, error, store_words_);
}

// Where the breaker is that stands in.
std::string one_call::here_words() const {
    const store& at = mirror_->stand_in_store();
    return " (" + std::string(at.url()) + ", namespace " + std::string(at.name_space()) + ")";
}

}  // namespace trinco::program
