#include "apps/trinco/lock/lock_wait.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/lock/ending_signals.hpp"
#include "apps/trinco/lock/lock_words.hpp"
#include "apps/trinco/process/terminal.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "store/open.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::boot_clock;
using std::chrono::milliseconds;

constexpr auto interrupted_patience = 300ms;     // for giving back, with somebody at Ctrl-C
constexpr milliseconds silent_patience = 500ms;  // the same, of a store that has just not answered
constexpr auto first_report = 100ms;             // of a wait that is none before
constexpr auto report_every = 1s;
constexpr auto store_rest = 1s;  // between attempts to reach a store that does not answer
constexpr auto never = boot_clock::time_point::max();

// Else the store has answered, and not with what was asked for.
bool is_silence(const std::error_code& why) {
    return why == errc::unavailable || why == errc::unknown_outcome;
}

}  // namespace

lock_wait::lock_wait(const lock_options& options, const lock_plan& plan, const store& at,
                     guardian& over, signal_desk& desk, contender& own)
    : options_(options),
      plan_(plan),
      at_(at),
      over_(over),
      desk_(desk),
      own_(own),
      voice_(plan, options.verbose),
      ends_at_hang_up_(!plan.value || terminal().foreground() != -1) {
    const char* const outer = std::getenv("TRINCO_LOCK");
    const char* const lease = std::getenv("TRINCO_LEASE");
    if (outer != nullptr && lease != nullptr && plan_.what.name == outer) outer_lease_ = lease;
}

bool lock_wait::is_store_gone() const {
    return detail::store_access::state(at_)->locks()->is_gone();
}

std::optional<lock_end> lock_wait::acquire() {
    began_ = boot_clock::now();
    reported_.clear();
    deadline by;
    if (plan_.wait && *plan_.wait > 0ms) by = began_ + *plan_.wait;
    for (bool again = false;; again = true) {
        if (has_entered_ && is_store_gone()) {
            return ended_with(complain({exit_unavailable, voice_.name() + ": " + store_is_gone +
                                                              " while this one waited"}));
        }
        if (again && by && boot_clock::now() >= *by) {
            end_.code = not_acquired(errc::not_acquired);
            return end_;
        }
        if (auto end = enter(by, !again)) return end;
        has_entered_ = true;
        if (again) {
            say(voice_.name() +
                ": the place in its queue was lost, because this process was stopped or the store "
                "away for longer than the TTL; it queues anew");
        }
        const step over = wait();
        if (over == step::granted) return std::nullopt;
        if (over == step::ended) return end_;
    }
}

std::optional<lock_end> lock_wait::enter(const deadline& by, bool is_first) {
    for (bool is_said = false;; is_said = true) {
        // What came before, as while a command was being stopped, ends it in order.
        if (look_for_signal() == step::ended) return end_;
        std::optional<problem> bad;
        {
            // A store that does not answer is waited for inside the library.
            const ending_signals_allowed meanwhile(ends_at_hang_up_);
            bad = own_.enter(by, is_first && !is_said);
        }
        if (!bad) return std::nullopt;
        if (!waits_for_store(*bad, by)) return ended_with(complain(*bad));
        if (!is_said) say(bad->sentence + "; it goes on trying");
        if (rest(by) == step::ended) return end_;
        if (!waits_for_store(*bad, by)) return ended_with(complain(*bad));
    }
}

// Who has been in the queue once has a store that is right, and time as long as was said.
bool lock_wait::waits_for_store(const problem& bad, const deadline& by) const {
    const bool has_time = by ? boot_clock::now() < *by : !plan_.wait;
    return has_entered_ && bad.code == exit_unavailable && !is_store_gone() && has_time;
}

lock_wait::step lock_wait::rest(const deadline& by) {
    std::array<::pollfd, 2> fds{::pollfd{desk_.descriptor(), POLLIN, 0},
                                ::pollfd{over_.descriptor(), POLLIN, 0}};
    const auto end = std::min(boot_clock::now() + store_rest, by.value_or(never));
    while (boot_clock::now() < end) {
        ::poll(fds.data(), fds.size(),
               static_cast<int>(whole(end - boot_clock::now()).count()) + 1);
        if (look_for_signal() == step::ended) return step::ended;
        if (look_for_guardian() == step::ended) return step::ended;
    }
    return step::waits;
}

lock_wait::step lock_wait::wait() {
    const bool soon = options_.verbose || !outer_lease_.empty();
    next_report_ = soon ? boot_clock::now() + first_report : next_report();
    for (;;) {
        std::array<::pollfd, 3> fds{::pollfd{desk_.descriptor(), POLLIN, 0},
                                    ::pollfd{own_.descriptor(), POLLIN, 0},
                                    ::pollfd{over_.descriptor(), POLLIN, 0}};
        ::poll(fds.data(), fds.size(), until_report());
        if (look_for_signal() == step::ended) return step::ended;
        if (fds[2].revents != 0 && look_for_guardian() == step::ended) return step::ended;
        if (const auto now = look_for_answer(); now != step::waits) return now;
        if (boot_clock::now() >= next_report_) report();
    }
}

lock_wait::step lock_wait::look_for_answer() {
    const auto answer = own_.news().answer;
    if (!answer) return step::waits;
    if (!*answer) {
        granted_ = boot_clock::now();
        report_granted();
        return step::granted;
    }
    if (*answer == errc::lost) return step::again;
    end_.code = not_acquired(*answer);
    end_.left = own_.leave(is_store_silent_ ? silent_patience : answer_patience);
    return step::ended;
}

lock_wait::step lock_wait::look_for_signal() {
    while (const auto number = desk_.next()) {
        if (*number == SIGHUP && !ends_at_hang_up_) continue;
        if (is_ending_signal(*number)) {
            end_ = interrupted(*number);
            return step::ended;
        }
        if (*number == SIGTSTP) ::raise(SIGSTOP);
        // The others are for a command, and there is none yet.
    }
    return step::waits;
}

// Better now than when it is granted, and others would wait for who cannot begin.
lock_wait::step lock_wait::look_for_guardian() {
    while (const auto event = over_.next()) {
        if (event->kind != guardian_event::kind_t::gone) continue;
        is_guardian_gone_ = true;
        end_.code = complain({exit_signal + SIGKILL,
                              voice_.name() + ": the guardian of the command was killed while this "
                                              "one waited"});
        end_.left = own_.leave(answer_patience);
        return step::ended;
    }
    return step::waits;
}

lock_end lock_wait::interrupted(int number) {
    const ending_signals_allowed meanwhile(ends_at_hang_up_);
    lock_end end;
    end.code = exit_signal + number;
    end.interrupted = number;
    end.by_key = desk_.came_from_terminal();
    end.left = own_.leave(interrupted_patience);
    say(voice_.name() + ": interrupted while waiting" +
        (end.left ? ""
                  : "; the store does not answer, so the place in its queue ends with this "
                    "process"));
    return end;
}

int lock_wait::not_acquired(const std::error_code& error) {
    const auto waited = duration_words(whole(boot_clock::now() - began_));
    if (error == errc::conflict || error == errc::not_acquired) {
        std::error_code why;
        const auto queue = own_.queue(&why);
        is_store_silent_ = is_silence(why);
        if (options_.quiet) return static_cast<int>(options_.code_not_acquired);
        auto holders = queue              ? holders_words(*queue, own_)
                       : is_store_silent_ ? store_silence()
                                          : "who has it cannot be told: " + locks_reason(at_, why);
        // Nobody has it, and yet: a store may keep it back for a while.
        if (holders.empty()) holders = locks_trouble(at_, errc::conflict);
        return complain({static_cast<int>(options_.code_not_acquired),
                         voice_.name() +
                             (error == errc::conflict
                                  ? " is taken"
                                  : " could not be had within " + duration_words(*plan_.wait)) +
                             (holders.empty() ? "" : ": " + holders)});
    }
    // Of one that is no semaphore at all, say.
    const auto mismatch = error == errc::limit_mismatch ? locks_trouble(at_, error) : std::string();
    if (!mismatch.empty()) {
        return complain({exit_usage, voice_.name() + " could not be had: " + mismatch});
    }
    if (error == errc::limit_mismatch) {
        std::string others = "another number";
        for (const auto& e : own_.queue().value_or(std::vector<detail::entry>())) {
            if (e.kind == detail::claim_kind::permit) others = "-n " + std::to_string(e.n);
        }
        return complain({exit_usage, voice_.name() + " is used with " + others +
                                         " and not with -n " + std::to_string(plan_.what.n) +
                                         "; all its users give the same number"});
    }
    return complain({exit_code_of(error), voice_.name() + " could not be had from the store " +
                                              std::string(at_.url()) + ": " +
                                              locks_reason(at_, error) + ", after " + waited});
}

int lock_wait::until_report() const {
    if (next_report_ == never) return -1;
    return static_cast<int>(whole(next_report_ - boot_clock::now()).count()) + 1;
}

// With --verbose again and again; else once, for somebody at a terminal, who wonders what happens.
boot_clock::time_point lock_wait::next_report() const {
    const bool wonders = !options_.quiet && reported_.empty() && ::isatty(STDERR_FILENO) == 1;
    return options_.verbose || wonders ? boot_clock::now() + report_every : never;
}

void lock_wait::report() {
    std::error_code why;
    const auto queue = own_.queue(&why);
    const bool is_first = !outer_lease_.empty();
    if (is_first && queue) warn_of_itself(*queue);
    if (options_.verbose || !is_first) report_place(queue, why);
    next_report_ = next_report();
}

std::string lock_wait::place(const std::vector<detail::entry>& queue) const {
    auto words = place_words(queue, own_);
    if (!words.empty()) return words;
    const auto why = locks_trouble(at_, errc::conflict);
    return why.empty() ? "it waits" : "it waits: " + why;
}

std::string lock_wait::store_silence() const {
    const auto why = locks_trouble(at_, errc::unavailable);
    return "the store does not answer" + (why.empty() ? "" : " (" + why + ")");
}

void lock_wait::report_place(const std::optional<std::vector<detail::entry>>& queue,
                             const std::error_code& why) {
    const auto words = queue ? place(*queue)
                       : is_silence(why)
                           ? "the store does not answer; it waits on"
                           : "it waits; for whom cannot be told: " + locks_reason(at_, why);
    // Once for each place and holder: how long it has been held changes all the time.
    const auto is_own = [this](const detail::entry& e) { return own_.is_own(e); };
    const auto what = queue ? place_of(*queue, is_own) : "away";
    if (std::exchange(reported_, what) != what) say(voice_.name() + ": " + words);
}

// The one who holds it ends when its command does, and that waits for this one.
void lock_wait::warn_of_itself(const std::vector<detail::entry>& queue) {
    const std::string outer = std::exchange(outer_lease_, {}) + "/";
    const bool holds = std::any_of(queue.begin(), queue.end(), [&](const detail::entry& e) {
        return e.holds && std::string_view(e.handle).starts_with(outer);
    });
    if (!holds) return;
    reported_ = "each waits for the other";
    say(voice_.name() + " is held by the command that this one runs in, so that " + reported_ +
        "; interrupt it, and leave out the inner 'trinco lock' or give it --wait");
}

void lock_wait::report_granted() const {
    if (!options_.verbose) return;
    const auto token = own_.token();
    voice_.tell("granted after " + short_time_words(granted_ - began_) +
                (token == 0 ? "" : ", token " + std::to_string(token)) + ", lease " + own_.lease());
}

}  // namespace trinco::program
