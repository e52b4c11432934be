#include "apps/trinco/lock/lock_hold.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/lock/lock_words.hpp"
#include "apps/trinco/lock/session_words.hpp"
#include "store/open.hpp"
#include "store/shown_url.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::boot_clock;
using std::chrono::milliseconds;

// A command that has ended by then needs nobody who renews its lock.
constexpr milliseconds brief = 20ms;
constexpr milliseconds lost_patience = 300ms;  // for giving back when nothing is left to give

// ETIME: there was no time left for it, whatever the lock says now.
bool is_too_late(const command_end& end) {
    return end.how == command_end::how_t::not_started && end.number == ETIME;
}

}  // namespace

lock_hold::lock_hold(const lock_options& options, const lock_plan& plan, const store& at,
                     guardian& over, signal_desk& desk, contender& own)
    : plan_(plan),
      at_(at),
      over_(over),
      desk_(desk),
      own_(own),
      voice_(plan, options.verbose),
      keeps_(plan.grace, plan.at_act == on_deadline::ignore) {}

bool lock_hold::is_store_gone() const {
    return detail::store_access::state(at_)->locks()->is_gone();
}

void lock_hold::complete(command_spec& what) {
    what.environment.emplace_back("TRINCO_LOCK", plan_.what.name);
    what.environment.emplace_back("TRINCO_LEASE", own_.lease());
    if (const auto token = own_.token(); token != 0) {
        what.environment.emplace_back("TRINCO_TOKEN", std::to_string(token));
    }
    what.keep_open = own_.live_descriptor();
    what.at_act = plan_.at_act;
    what.until = until();
}

deadlines lock_hold::until() {
    // Without a thread it is not renewed, and the command ends when it must; until then it is tried
    // again.
    if (boot_clock::now() >= serve_at_ && own_.serve()) serve_at_ = boot_clock::time_point::max();
    const auto why = own_.news().loss;
    if (why && why != loss_ && plan_.at_act == on_deadline::ignore) {
        say(voice_.name() + (why == errc::evicted ? " is asked back by an operator" : " was lost") +
            "; the command runs on, as --on-lost ignore says");
    }
    if (why) loss_ = why;
    const auto look = own_.look();
    if (voice_.is_verbose()) {
        const auto news = notice_.look(look, [this] { return renewal_trouble(at_); });
        if (!news.empty()) voice_.tell(news);
    }
    return keeps_.until(look);
}

supervision lock_hold::manners() {
    supervision how;
    how.until = [this] { return until(); };
    how.soon = brief;
    how.every = std::chrono::duration_cast<milliseconds>(plan_.ttl) / 15;
    how.wake = own_.descriptor();
    how.meanwhile = [this] { own_.get_ready(); };
    how.before_stop = [this] {
        const auto left = keeps_.believed() - boot_clock::now();
        say(voice_.name() + " is kept for " + duration_words(whole(left)) +
            " more while the command is stopped");
    };
    how.still_good = [this] {
        static_cast<void>(until());
        return keeps_.allows(boot_clock::now());
    };
    how.on_event = [this](const guardian_event& e) { tell_of(e); };
    return how;
}

void lock_hold::tell_of(const guardian_event& e) {
    using kind = guardian_event::kind_t;
    if (e.kind == kind::started) {
        voice_.tell("the command runs as process " + std::to_string(e.pid));
    } else if (e.kind == kind::acted) {
        const auto trouble = renewal_trouble(at_);
        std::string why = "is about to be lost, because its renewal was not acknowledged in time" +
                          (trouble.empty() ? std::string() : " (" + trouble + ")");
        if (loss_ == errc::evicted) why = "is asked back by an operator";
        if (loss_ == errc::lost) why = "was lost" + loss_words();
        const bool term = plan_.at_act == on_deadline::term;
        say(voice_.name() + " " + why + ": the command gets " +
            (term ? "TERM, and KILL in " + duration_words(plan_.grace) : "KILL"));
    } else if (e.kind == kind::killed) {
        say(voice_.name() + ": the command was killed");
    } else if (e.kind == kind::gone) {
        is_guardian_gone_ = true;
    }
}

std::string lock_hold::loss_words() const {
    return is_store_gone() ? std::string("; ") + store_is_gone : "";
}

std::string lock_hold::loss_of(const command_end& end, const std::string& evicted) const {
    const bool asked_back = loss_ == errc::evicted && end.acted;
    const bool lost = (loss_ && loss_ != errc::evicted) || is_too_late(end);
    if (asked_back) return voice_.name() + " was given back: " + evicted;
    if (lost) {
        const bool began = end.how != command_end::how_t::not_started;
        const char* const when = found_gone_ ? " was lost before it was given back"
                                 : began     ? " was lost while the command ran"
                                             : " was lost before the command began";
        return voice_.name() + when +
               (plan_.at_act == on_deadline::ignore ? ", which went on without it" : "") +
               loss_words();
    }
    if (!end.acted) return {};
    return voice_.name() + " was about to be lost, and the command was stopped before that";
}

bool lock_hold::give_back(bool held) {
    // What has run out need not be given back.
    const auto kept = whole(keeps_.believed() - boot_clock::now());
    const bool left =
        own_.leave(held ? std::clamp(kept, lost_patience, answer_patience) : lost_patience);
    const bool was_lost = held && left && own_.was_gone();
    found_gone_ = was_lost && !loss_;
    if (was_lost || (!left && is_store_gone())) {
        // Of the store: somebody else may have been granted it in another file meanwhile.
        loss_ = errc::lost;
    } else if (!left && held) {
        const auto ttl = duration_words(plan_.ttl);
        const bool ends_late = detail::scheme_of(at_.url()).starts_with("consul");
        say(voice_.name() +
            " could not be given back: the store does not answer; it is free when its lease has "
            "ended, " +
            (ends_late ? "one to two times " + ttl + " and a lock-delay" : "about " + ttl) +
            " after the store is back");
    }
    return left;
}

// Of what was lost it is not known when: at the latest when it was believed no more.
void lock_hold::tell_how_long(boot_clock::time_point granted, boot_clock::time_point done,
                              bool left) const {
    if (loss_ && loss_ != errc::evicted) {
        const auto end = std::max(granted, std::min(done, keeps_.believed()));
        return voice_.tell("held for " + short_time_words(end - granted) + " at most, and lost");
    }
    voice_.tell("held for " + short_time_words(done - granted) +
                (left ? ", given back in " + short_time_words(boot_clock::now() - done) : ""));
}

hold_end lock_hold::run(command_spec what, boot_clock::time_point granted) {
    serve_at_ = boot_clock::now() + brief;
    complete(what);
    hold_end all;
    all.command = supervise(over_, what, desk_, manners());
    const auto done = boot_clock::now();
    static_cast<void>(until());
    const bool held = own_.look().held;
    if (!held && (!loss_ || loss_ == errc::evicted)) loss_ = errc::lost;
    const auto evicted =
        loss_ == errc::evicted
            ? eviction_words(own_.queue().value_or(std::vector<detail::entry>()), own_)
            : std::string();
    all.left = give_back(held);
    tell_how_long(granted, done, all.left);
    all.loss = loss_of(all.command, evicted);
    all.is_stopped = all.command.acted || is_too_late(all.command);
    all.is_guardian_gone = is_guardian_gone_;
    return all;
}

}  // namespace trinco::program
