#include "apps/trinco/once/once_runner.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/lock/ending_signals.hpp"
#include "apps/trinco/lock/renewal_notice.hpp"
#include "apps/trinco/lock/session_words.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "apps/trinco/once/once_contender.hpp"
#include "apps/trinco/once/recorded_end.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/records/record_list.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/quoted.hpp"
#include "store/open.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::boot_clock;
using detail::once_record;
using detail::once_step;
using std::chrono::milliseconds;

constexpr auto first_report = 100ms;  // of a wait that is none before
constexpr auto report_every = 1s;
constexpr milliseconds listing_limit = 300ms;
constexpr milliseconds look_patience = 2'000ms;  // for who has it, when that is all there is to say
constexpr auto record_patience = 30s;
constexpr auto answer_patience = 2'500ms;     // for giving back
constexpr auto interrupted_patience = 300ms;  // the same, with somebody at Ctrl-C

// How it ended. What has to be said has been said.
struct once_end {
    int code = 0;
    std::optional<command_end> command;  // the code is the command's own: see finish
    int interrupted = 0;                 // by this signal, while it waited
    bool by_key = false;                 // of the terminal
};

class once_runner {
public:
    once_runner(const once_options& options, const once_plan& plan, const store& at, guardian& over,
                output_tap* tap, signal_desk& desk)
        : options_(options),
          plan_(plan),
          at_(at),
          over_(over),
          tap_(tap),
          desk_(desk),
          own_(at, plan),
          keeps_(plan.grace, false) {}

    // Ends the guardian, and so the command's output.
    once_end run(command_spec what, const std::function<void()>& end_guardian);

private:
    // Nothing: it is to be run.
    std::optional<once_end> begin();
    std::optional<once_end> enter();
    // Who it waits for.
    void report();
    // `may_run`: the record says that it runs already.
    std::optional<once_end> interrupted_while_waiting(bool may_run);
    once_end settled(const detail::once_turn& turn);
    once_end not_begun(const std::error_code& error);
    // Its time for waiting is over: by what is known now.
    once_end not_acquired();
    [[nodiscard]] std::string taken_words(const record_row& row) const;
    [[nodiscard]] std::string free_words(const record_row& row) const;
    supervision manners();
    deadlines until();
    void tell_of(const guardian_event& e);
    [[nodiscard]] std::string loss_words();
    once_end record(const command_end& end);
    once_end left_interrupted(const command_end& end);
    [[nodiscard]] int not_recorded(const std::error_code& error, bool ran) const;
    [[nodiscard]] bool store_is_gone() const {
        return detail::store_access::state(at_)->locks()->is_gone();
    }
    [[nodiscard]] std::string key_name() const {
        return "the key " + detail::quoted(options_.key, 256);
    }
    void tell(const std::string& sentence) const {
        if (options_.verbose) say(key_name() + ": " + sentence);
    }
    [[nodiscard]] once_end ended_with(int code) {
        own_.leave(answer_patience);
        once_end end;
        end.code = code;
        return end;
    }

    const once_options& options_;
    const once_plan& plan_;
    const store& at_;
    guardian& over_;
    output_tap* tap_;
    signal_desk& desk_;
    once_contender own_;
    tenure keeps_;
    renewal_notice notice_;
    std::string reported_;  // of the wait
    once_record running_;
    std::optional<std::error_code> loss_;
};

// ---- before it runs -----------------------------------------------------------------------------

std::optional<once_end> once_runner::enter() {
    // A store that does not answer is waited for inside the library.
    const ending_signals_allowed meanwhile;
    const auto bad = own_.enter();
    if (!bad) return std::nullopt;
    once_end end;
    end.code = complain(*bad);
    return end;
}

void once_runner::report() {
    const auto looked = look_at_record(at_, plan_.key, listing_limit);
    std::string words = "it waits for its turn";
    if (const auto* const bad = std::get_if<problem>(&looked)) {
        words = bad->sentence + "; it waits on";
    } else if (const auto& row = std::get<record_row>(looked); is_run_by_its_owner(row)) {
        words = "it waits: " + begun_words(*row.is);
    } else if (is_interrupted(row)) {
        words = "it waits: " + interrupted_words(*row.is);
    }
    if (std::exchange(reported_, words) != words) tell(words);
}

std::optional<once_end> once_runner::begin() {
    if (auto end = enter()) return end;
    auto next_report = boot_clock::now() + first_report;
    for (;;) {
        std::array<::pollfd, 2> fds{::pollfd{desk_.descriptor(), POLLIN, 0},
                                    ::pollfd{own_.descriptor(), POLLIN, 0}};
        const auto until_report = std::chrono::ceil<milliseconds>(next_report - boot_clock::now());
        ::poll(fds.data(), fds.size(),
               options_.verbose ? static_cast<int>(std::max(until_report, 0ms).count()) : -1);
        const auto news = own_.take();
        const bool may_run = news.answer && !*news.answer && news.turn.step == once_step::begin;
        if (may_run) running_ = news.turn.record;
        if (auto end = interrupted_while_waiting(may_run)) return end;
        if (!news.answer) {
            if (!options_.verbose || boot_clock::now() < next_report) continue;
            report();
            next_report = boot_clock::now() + report_every;
            continue;
        }
        if (*news.answer == errc::lost && !store_is_gone()) {
            say(key_name() +
                ": the session of this one was lost while it waited, because this process was "
                "stopped or the store away for longer than the TTL, or somebody ended it" +
                (own_.is_late() ? "" : "; it begins anew"));
            if (own_.is_late()) return not_acquired();
            if (auto end = enter()) return end;
            continue;
        }
        if (*news.answer) return not_begun(*news.answer);
        if (!may_run) return settled(news.turn);
        tell("run " + running_.run_id + ", attempt " + std::to_string(running_.attempt));
        return std::nullopt;
    }
}

std::optional<once_end> once_runner::interrupted_while_waiting(bool may_run) {
    while (const auto number = desk_.next()) {
        if (*number == SIGTSTP) ::raise(SIGSTOP);
        if (!is_ending_signal(*number)) continue;  // for a command, and there is none yet
        const ending_signals_allowed meanwhile;
        once_end end;
        end.code = exit_signal + *number;
        end.interrupted = *number;
        end.by_key = desk_.came_from_terminal();
        if (may_run) {
            static_cast<void>(own_.finish(once_record::state_t::undone, "", answer_patience));
            own_.leave(answer_patience);
        } else {
            own_.withdraw(interrupted_patience);
        }
        say(key_name() + ": interrupted before the command began");
        return end;
    }
    return std::nullopt;
}

once_end once_runner::settled(const detail::once_turn& turn) {
    const auto& found = turn.record;
    if (turn.step == once_step::reused) {
        return ended_with(complain(
            {exit_usage, key_name() + " was used before with another input (--fingerprint " +
                             detail::quoted(found.fingerprint) +
                             "); another input needs another key"}));
    }
    if (turn.step == once_step::tell) {
        return ended_with(complain(
            {static_cast<int>(options_.code_interrupted),
             key_name() + " was interrupted: " + interrupted_words(found) +
                 "; find out whether it was done, or is still being done, and say so with 'trinco "
                 "records resolve " +
                 options_.key + "'"}));
    }
    const auto end = end_of(found);
    tell("recorded before, run " + found.run_id);
    if (end.code != 0)
        say(key_name() + " failed before, with exit code " + std::to_string(end.code));
    const int printed = print(end.output);
    return ended_with(end.code != 0 ? end.code : printed);
}

once_end once_runner::not_begun(const std::error_code& error) {
    if (error == errc::not_acquired) return not_acquired();
    if (error == errc::invalid && locks_trouble(at_, error).empty()) {
        return ended_with(
            complain({exit_usage, "what the store " + std::string(at_.url()) + " keeps under " +
                                      key_name() + " is no record of once"}));
    }
    return ended_with(complain(
        {exit_code_of(error), key_name() + " could not be begun in the store " +
                                  std::string(at_.url()) + ": " + locks_reason(at_, error)}));
}

// Who runs it may be gone while its lock cannot be had yet, as in the lock-delay of Consul.
once_end once_runner::not_acquired() {
    const int code = static_cast<int>(options_.code_not_acquired);
    const ending_signals_allowed meanwhile;
    const auto looked = look_at_record(at_, plan_.key, look_patience);
    if (const auto* const bad = std::get_if<problem>(&looked)) {
        return ended_with(
            complain({code, key_name() + " could not be had within " + duration_words(*plan_.wait) +
                                ", and who has it is not known: " + bad->sentence}));
    }
    const auto& row = std::get<record_row>(looked);
    if (row.revision != 0 && !row.is) return not_begun(errc::invalid);
    const auto* const known = row.is ? &*row.is : nullptr;
    const auto step = detail::decide(known, plan_.wishes, !row.owner_lives);
    switch (step) {
        case once_step::answer:
        case once_step::tell:
        case once_step::reused: return settled({step, *known});
        case once_step::wait: return ended_with(complain({code, taken_words(row)}));
        case once_step::begin:
        case once_step::begin_again:
        case once_step::ask: break;
    }
    return ended_with(complain({code, free_words(row)}));
}

std::string once_runner::taken_words(const record_row& row) const {
    const std::string after = " after " + duration_words(*plan_.wait);
    if (is_run_by_its_owner(row)) {
        return key_name() + " is still run by somebody else" + after + ": " + begun_words(*row.is) +
               life_words(row, at_.url()) + "; 'trinco records show " + options_.key +
               "' tells what became of it";
    }
    return key_name() + " is still taken by " + owner_words(*row.holder, 256) + after +
           ", which may be about to run it" + life_words(row, at_.url());
}

std::string once_runner::free_words(const record_row& row) const {
    const auto why = locks_trouble(at_, errc::conflict);
    return key_name() + " could not be begun within " + duration_words(*plan_.wait) +
           ", though nobody holds its lock" +
           (is_interrupted(row) ? " (" + interrupted_words(*row.is) + ")" : "") +
           (why.empty() ? "; try again" : ": its lock " + why);
}

// ---- running ------------------------------------------------------------------------------------

deadlines once_runner::until() {
    loss_ = own_.take().loss;
    const auto look = own_.look();
    if (options_.verbose) {
        const auto news = notice_.look(look, [this] { return renewal_trouble(at_); });
        if (!news.empty()) tell("its lock: " + news);
    }
    return keeps_.until(look);
}

supervision once_runner::manners() {
    supervision how;
    how.until = [this] { return until(); };
    how.every = std::chrono::duration_cast<milliseconds>(plan_.ttl) / 15;
    how.wake = own_.descriptor();
    how.still_good = [this] {
        static_cast<void>(until());
        return keeps_.allows(boot_clock::now());
    };
    how.on_event = [this](const guardian_event& e) { tell_of(e); };
    return how;
}

void once_runner::tell_of(const guardian_event& e) {
    using kind = guardian_event::kind_t;
    if (e.kind == kind::started) tell("the command runs as process " + std::to_string(e.pid));
    if (e.kind == kind::acted) {
        say(key_name() + ": its lock " + loss_words() + ", so the command gets TERM, and KILL in " +
            duration_words(plan_.grace));
    }
    if (e.kind == kind::killed) say(key_name() + ": the command was killed");
}

std::string once_runner::loss_words() {
    if (loss_ == errc::evicted) return "is asked back by an operator";
    if (own_.session_is_lost()) return "was lost, with its session";
    if (loss_) return "was lost";
    const auto trouble = renewal_trouble(at_);
    return "is about to be lost, because its renewal was not acknowledged in time" +
           (trouble.empty() ? std::string() : " (" + trouble + ")");
}

int once_runner::not_recorded(const std::error_code& error, bool ran) const {
    const std::string what =
        key_name() + (ran ? ": the command has run, but that could not be recorded: "
                          : ": the command was not run, but that could not be recorded: ");
    if (error == errc::conflict) {
        return complain({static_cast<int>(options_.code_interrupted),
                         what + "somebody else has run it or resolved it meanwhile"});
    }
    return complain({static_cast<int>(options_.code_interrupted),
                     what + locks_reason(at_, error) +
                         "; others find it interrupted, see 'trinco records show " + options_.key +
                         "'"});
}

// It may have done what it was to do, or not.
once_end once_runner::left_interrupted(const command_end& end) {
    // Before the session ends with this one.
    const std::string sentence =
        key_name() + " is interrupted: the command " +
        (end.acted ? "was ended because its lock " + loss_words() : "ended") +
        ", and nobody knows whether it had done it; find out ('trinco records show " +
        options_.key + "' tells what is recorded), and say so with 'trinco records resolve " +
        options_.key + "'";
    own_.leave(answer_patience);
    once_end out;
    if (end.acted) {
        out.code = complain({exit_lost, sentence});
    } else {
        say(sentence);
        out.command = end;
    }
    return out;
}

once_end once_runner::record(const command_end& end) {
    using how_t = command_end::how_t;
    const bool began = end.how != how_t::not_started;
    if (began && (end.acted || end.how != how_t::exited)) return left_interrupted(end);
    std::error_code error;
    if (!began) {
        error = own_.finish(once_record::state_t::undone, "", record_patience);
    } else {
        recorded_end kept{end.number, tap_ != nullptr ? tap_->taken() : std::string()};
        if (tap_ != nullptr && tap_->came() > kept.output.size()) {
            say(key_name() + ": only the first " + std::to_string(kept.output.size()) + " of " +
                std::to_string(tap_->came()) + " bytes of its output are kept");
        }
        const auto how =
            end.number == 0 ? once_record::state_t::done : once_record::state_t::failed;
        error = own_.finish(how, payload_of(kept), record_patience);
    }
    own_.leave(answer_patience);
    once_end out;
    if (error) {
        out.code = not_recorded(error, began);
    } else if (!began && end.number == ETIME) {
        out.code =
            complain({exit_lost, key_name() + ": its lock was lost before the command began"});
    } else {
        tell("recorded");
        out.command = end;
    }
    return out;
}

once_end once_runner::run(command_spec what, const std::function<void()>& end_guardian) {
    if (auto end = begin()) return *end;
    what.environment.emplace_back("TRINCO_ONCE", options_.key);
    what.environment.emplace_back("TRINCO_RUN_ID", running_.run_id);
    what.environment.emplace_back("TRINCO_ATTEMPT", std::to_string(running_.attempt));
    what.environment.emplace_back("TRINCO_LEASE", own_.lease());
    what.keep_open = own_.live_descriptor();
    what.until = until();
    const auto end = supervise(over_, what, desk_, manners());
    end_guardian();
    if (tap_ != nullptr) tap_->take_rest();
    return record(end);
}

}  // namespace

void run_once(const once_options& options, const once_plan& plan, const store& at, guardian over,
              output_tap* tap, signal_desk& desk, command_spec what) {
    // Room for the exit code before the output of a failure.
    constexpr std::size_t most_output = detail::max_once_result - 16;
    if (tap != nullptr) tap->begin(most_output);
    std::optional<guardian> guards(std::move(over));
    once_runner all(options, plan, at, *guards, tap, desk);
    const once_end end = all.run(what, [&] { guards.reset(); });
    guards.reset();
    if (tap != nullptr) {
        // It is recorded; who takes the output slowly may be interrupted.
        const ending_signals_allowed meanwhile;
        tap->take_rest();
        tap->end();
    }
    // Threads, memory and descriptors go with the process, faster than one by one.
    detail::store_access::state(at)->locks()->before_exit();
    if (end.command) std::_Exit(finish(*end.command, what));
    if (end.by_key) die_of(end.interrupted);
    std::_Exit(end.code);
}

}  // namespace trinco::program
