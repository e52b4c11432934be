#include "apps/trinco/lock/lock_run.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/lock/contender.hpp"
#include "apps/trinco/lock/ending_signals.hpp"
#include "apps/trinco/lock/lock_words.hpp"
#include "apps/trinco/lock/tenure.hpp"
#include "core/quoted.hpp"
#include "store/open.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::boot_clock;
using std::chrono::milliseconds;

constexpr auto answer_patience = 2'500ms;     // for giving back
constexpr auto lost_patience = 300ms;         // the same, when nothing is left to give
constexpr auto interrupted_patience = 300ms;  // the same, with somebody at Ctrl-C
constexpr auto first_report = 100ms;          // of a wait that is none before
constexpr auto report_every = 1s;
constexpr const char* store_is_gone = "the file of its store was removed or replaced";
constexpr auto never = boot_clock::time_point::max();

milliseconds whole(boot_clock::duration d) {
    return std::max(std::chrono::duration_cast<milliseconds>(d), 0ms);
}

// How it ended. What has to be said has been said.
struct lock_end {
    int code = 0;
    std::optional<command_end> command;  // the code is the command's own: see finish
    int interrupted = 0;                 // by this signal, while it waited
    bool by_key = false;                 // of the terminal
    bool left = true;                    // the store has taken everything back
};

lock_end ended_with(int code) {
    lock_end end;
    end.code = code;
    return end;
}

class lock_run {
public:
    lock_run(const lock_options& options, const lock_plan& plan, const store& at, guardian& over,
             signal_desk& desk)
        : options_(options),
          plan_(plan),
          at_(at),
          over_(over),
          desk_(desk),
          own_(at, plan),
          keeps_(plan.grace, plan.at_act == on_deadline::ignore) {}

    lock_end run(command_spec what);

private:
    enum class step : std::uint8_t { waits, granted, again, ended };
    // Nothing: it has the lock.
    std::optional<lock_end> acquire();
    step wait();
    step look_for_answer();
    step look_for_signal();
    lock_end interrupted(int number);
    int not_acquired(const std::error_code& error);
    [[nodiscard]] int until_report() const;
    [[nodiscard]] boot_clock::time_point next_report() const;
    void report();
    void report_place(const std::vector<detail::entry>& queue);
    void warn_of_itself(const std::vector<detail::entry>& queue);
    void report_granted() const;

    void complete(command_spec& what);
    supervision manners();
    deadlines until();
    void tell_of(const guardian_event& e);
    lock_end result(const command_end& end, const std::string& evicted) const;
    // Why it was lost, where that is known; begins with "; ".
    [[nodiscard]] std::string loss_words() const;

    [[nodiscard]] bool is_store_gone() const {
        return detail::store_access::state(at_)->locks()->is_gone();
    }
    [[nodiscard]] std::string lock_name() const {
        return "the lock " + detail::quoted(plan_.what.name, 256);
    }
    void tell(const std::string& sentence) const {
        if (options_.verbose) say(lock_name() + ": " + sentence);
    }

    const lock_options& options_;
    const lock_plan& plan_;
    const store& at_;
    guardian& over_;
    signal_desk& desk_;
    contender own_;
    tenure keeps_;
    boot_clock::time_point began_{};
    boot_clock::time_point granted_{};
    boot_clock::time_point next_report_ = never;
    std::string outer_lease_;  // of a lock of the same name that this program runs under
    std::string reported_;
    lock_end end_;  // of a wait without the lock
    std::error_code loss_;
};

// ---- waiting ------------------------------------------------------------------------------------

std::optional<lock_end> lock_run::acquire() {
    began_ = boot_clock::now();
    const char* const outer = std::getenv("TRINCO_LOCK");
    const char* const lease = std::getenv("TRINCO_LEASE");
    if (outer != nullptr && lease != nullptr && plan_.what.name == outer) outer_lease_ = lease;
    std::optional<detail::deadline> by;
    if (plan_.wait && *plan_.wait > 0ms) by = began_ + *plan_.wait;
    for (bool again = false;; again = true) {
        if (again && is_store_gone()) {
            return ended_with(complain(
                {exit_unavailable, lock_name() + ": " + store_is_gone + " while this one waited"}));
        }
        {
            // A store that does not answer is waited for inside the library.
            const ending_signals_allowed meanwhile;
            if (const auto bad = own_.enter(by)) return ended_with(complain(*bad));
        }
        if (again) {
            say(lock_name() +
                ": the place in its queue was lost, because this process was stopped or the store "
                "away for longer than the TTL; it queues anew");
        }
        const step over = wait();
        if (over == step::granted) return std::nullopt;
        if (over == step::ended) return end_;
    }
}

lock_run::step lock_run::wait() {
    const bool soon = options_.verbose || !outer_lease_.empty();
    next_report_ = soon ? boot_clock::now() + first_report : next_report();
    for (;;) {
        std::array<::pollfd, 2> fds{::pollfd{desk_.descriptor(), POLLIN, 0},
                                    ::pollfd{own_.descriptor(), POLLIN, 0}};
        ::poll(fds.data(), fds.size(), until_report());
        if (look_for_signal() == step::ended) return step::ended;
        if (const auto now = look_for_answer(); now != step::waits) return now;
        if (boot_clock::now() >= next_report_) report();
    }
}

lock_run::step lock_run::look_for_answer() {
    const auto answer = own_.news().answer;
    if (!answer) return step::waits;
    if (!*answer) {
        granted_ = boot_clock::now();
        report_granted();
        return step::granted;
    }
    if (*answer == errc::lost) return step::again;
    end_.code = not_acquired(*answer);
    end_.left = own_.leave(answer_patience);
    return step::ended;
}

lock_run::step lock_run::look_for_signal() {
    while (const auto number = desk_.next()) {
        if (is_ending_signal(*number)) {
            end_ = interrupted(*number);
            return step::ended;
        }
        if (*number == SIGTSTP) ::raise(SIGSTOP);
        // The others are for a command, and there is none yet.
    }
    return step::waits;
}

lock_end lock_run::interrupted(int number) {
    const ending_signals_allowed meanwhile;
    lock_end end;
    end.code = exit_signal + number;
    end.interrupted = number;
    end.by_key = desk_.came_from_terminal();
    end.left = own_.leave(interrupted_patience);
    say(lock_name() + ": interrupted while waiting" +
        (end.left ? ""
                  : "; the store does not answer, so the place in its queue ends with this "
                    "process"));
    return end;
}

int lock_run::not_acquired(const std::error_code& error) {
    const auto waited = duration_words(whole(boot_clock::now() - began_));
    if (error == errc::conflict || error == errc::not_acquired) {
        if (options_.quiet) return static_cast<int>(options_.code_not_acquired);
        const auto holders = holders_words(own_.queue(), own_);
        return complain({static_cast<int>(options_.code_not_acquired),
                         lock_name() +
                             (error == errc::conflict
                                  ? " is taken"
                                  : " could not be had within " + duration_words(*plan_.wait)) +
                             (holders.empty() ? "" : ": " + holders)});
    }
    if (error == errc::limit_mismatch) {
        std::string others = "another number";
        for (const auto& e : own_.queue()) {
            if (e.kind == detail::claim_kind::permit) others = "-n " + std::to_string(e.n);
        }
        return complain({exit_usage, lock_name() + " is used with " + others + " and not with -n " +
                                         std::to_string(plan_.what.n) +
                                         "; all its users give the same number"});
    }
    return complain({exit_code_of(error), lock_name() + " could not be had from the store " +
                                              std::string(at_.url()) + ": " + error.message() +
                                              ", after " + waited});
}

int lock_run::until_report() const {
    if (next_report_ == never) return -1;
    return static_cast<int>(whole(next_report_ - boot_clock::now()).count()) + 1;
}

// With --verbose again and again; else once, for somebody at a terminal, who wonders what happens.
boot_clock::time_point lock_run::next_report() const {
    const bool wonders = !options_.quiet && reported_.empty() && ::isatty(STDERR_FILENO) == 1;
    return options_.verbose || wonders ? boot_clock::now() + report_every : never;
}

void lock_run::report() {
    const auto queue = own_.queue();
    const bool is_first = !outer_lease_.empty();
    if (is_first) warn_of_itself(queue);
    if (options_.verbose || !is_first) report_place(queue);
    next_report_ = next_report();
}

void lock_run::report_place(const std::vector<detail::entry>& queue) {
    const auto ahead = place_words(queue, own_);
    // Once for each place: how long the holder has had it changes all the time.
    const auto place = ahead.substr(0, ahead.find(';'));
    if (std::exchange(reported_, place) != place) say(lock_name() + ": " + ahead);
}

// The one who holds it ends when its command does, and that waits for this one.
void lock_run::warn_of_itself(const std::vector<detail::entry>& queue) {
    const std::string outer = std::exchange(outer_lease_, {}) + "/";
    const bool holds = std::any_of(queue.begin(), queue.end(), [&](const detail::entry& e) {
        return e.holds && std::string_view(e.handle).starts_with(outer);
    });
    if (!holds) return;
    reported_ = "each waits for the other";
    say(lock_name() + " is held by the command that this one runs in, so that " + reported_ +
        "; interrupt it, and leave out the inner 'trinco lock' or give it --wait");
}

void lock_run::report_granted() const {
    if (!options_.verbose) return;
    const auto token = own_.token();
    tell("granted after " + short_time_words(granted_ - began_) +
         (token == 0 ? "" : ", token " + std::to_string(token)) + ", lease " + own_.lease());
}

// ---- holding ------------------------------------------------------------------------------------

void lock_run::complete(command_spec& what) {
    what.environment.emplace_back("TRINCO_LOCK", plan_.what.name);
    what.environment.emplace_back("TRINCO_LEASE", own_.lease());
    if (const auto token = own_.token(); token != 0) {
        what.environment.emplace_back("TRINCO_TOKEN", std::to_string(token));
    }
    what.keep_open = own_.live_descriptor();
    what.at_act = plan_.at_act;
    what.until = until();
}

deadlines lock_run::until() {
    const auto why = own_.news().loss;
    if (why && why != loss_ && plan_.at_act == on_deadline::ignore) {
        say(lock_name() + (why == errc::evicted ? " is asked back by an operator" : " was lost") +
            "; the command runs on, as --on-lost ignore says");
    }
    if (why) loss_ = why;
    return keeps_.until(own_.look());
}

supervision lock_run::manners() {
    supervision how;
    how.until = [this] { return until(); };
    how.every = std::chrono::duration_cast<milliseconds>(plan_.ttl) / 15;
    how.wake = own_.descriptor();
    how.before_stop = [this] {
        const auto left = keeps_.believed() - boot_clock::now();
        say(lock_name() + " is kept for " + duration_words(whole(left)) +
            " more while the command is stopped");
    };
    how.still_good = [this] {
        static_cast<void>(until());
        return keeps_.allows(boot_clock::now());
    };
    how.on_event = [this](const guardian_event& e) { tell_of(e); };
    return how;
}

void lock_run::tell_of(const guardian_event& e) {
    using kind = guardian_event::kind_t;
    if (e.kind == kind::started) {
        tell("the command runs as process " + std::to_string(e.pid));
    } else if (e.kind == kind::acted) {
        std::string why = "is about to be lost, because its renewal was not acknowledged in time";
        if (loss_ == errc::evicted) why = "is asked back by an operator";
        if (loss_ == errc::lost) why = "was lost" + loss_words();
        const bool term = plan_.at_act == on_deadline::term;
        say(lock_name() + " " + why + ": the command gets " +
            (term ? "TERM, and KILL in " + duration_words(plan_.grace) : "KILL"));
    } else if (e.kind == kind::killed) {
        say(lock_name() + ": the command was killed");
    }
}

std::string lock_run::loss_words() const {
    return is_store_gone() ? std::string("; ") + store_is_gone : "";
}

lock_end lock_run::result(const command_end& end, const std::string& evicted) const {
    const bool asked_back = loss_ == errc::evicted && end.acted;
    // ETIME: there was no time left for it, whatever the lock says now.
    const bool too_late = end.how == command_end::how_t::not_started && end.number == ETIME;
    const bool lost = (loss_ && loss_ != errc::evicted) || too_late;
    if (!asked_back && !lost && !end.acted) {
        lock_end own;
        own.command = end;
        return own;
    }
    std::string sentence = lock_name();
    if (asked_back) {
        sentence += " was given back: " + evicted;
    } else if (lost) {
        const bool began = end.how != command_end::how_t::not_started;
        sentence +=
            began ? " was lost while the command ran" : " was lost before the command began";
        if (plan_.at_act == on_deadline::ignore) sentence += ", which went on without it";
        sentence += loss_words();
    } else {
        sentence += " was about to be lost, and the command was stopped before that";
    }
    return ended_with(complain({static_cast<int>(options_.code_lost), sentence}));
}

lock_end lock_run::run(command_spec what) {
    if (auto end = acquire()) return *end;
    complete(what);
    const auto end = supervise(over_, what, desk_, manners());
    const auto done = boot_clock::now();
    static_cast<void>(until());
    const bool held = own_.look().held;
    if (!held && (!loss_ || loss_ == errc::evicted)) loss_ = errc::lost;
    const auto evicted =
        loss_ == errc::evicted ? eviction_words(own_.queue(), own_) : std::string();
    // What has run out need not be given back.
    const auto kept = whole(keeps_.believed() - boot_clock::now());
    const bool left =
        own_.leave(held ? std::clamp(kept, lost_patience, answer_patience) : lost_patience);
    const auto took = boot_clock::now() - done;
    if (!left && is_store_gone()) {
        // Somebody else may have been granted it in another file meanwhile.
        loss_ = errc::lost;
    } else if (!left && held) {
        say(lock_name() +
            " could not be given back: the store does not answer; it is free at the latest in " +
            duration_words(plan_.ttl));
    }
    tell("held for " + short_time_words(done - granted_) + ", given back in " +
         short_time_words(took));
    auto all = result(end, evicted);
    all.left = left;
    return all;
}

}  // namespace

void run_under_lock(const lock_options& options, const lock_plan& plan, const store& at,
                    guardian over, signal_desk& desk, const command_spec& what) {
    lock_run all(options, plan, at, over, desk);
    const lock_end end = all.run(what);
    // The store has taken everything back, or does not answer. Either way threads, memory and
    // descriptors go with the process, faster than one by one; nothing of them is to be flushed.
    if (end.left) detail::store_access::state(at)->locks()->before_exit();
    // Not so the guardian: no process of ours is left for somebody else to reap.
    { const guardian last = std::move(over); }
    if (end.command) std::_Exit(finish(*end.command, what));
    // As the user's key would have ended it, so that a shell script around it ends, too.
    if (end.by_key) die_of(end.interrupted);
    std::_Exit(end.code);
}

}  // namespace trinco::program
