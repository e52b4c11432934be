// `trinco breakers watch`: the state of each breaker, and then every change of it; also when the
// store is gone, and when it is back.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/breakers/breakers_commands.hpp"
#include "apps/trinco/breakers/pulse.hpp"
#include "apps/trinco/breakers/report_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/utc_time.hpp"
#include "apps/trinco/output/visible.hpp"
#include "apps/trinco/stores/store_password.hpp"
#include "apps/trinco/watching/listening.hpp"
#include "apps/trinco/watching/waiting_room.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using trinco::detail::notice;
using trinco::detail::view;
using reports = std::vector<report>;
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::seconds longest_sleep{60};
constexpr milliseconds read_again{1'000};

// Notices on their way from the store's thread to ours.
class mailbox {
public:
    explicit mailbox(std::shared_ptr<bell> door) : door_(std::move(door)) {}

    void put(const notice& n) {
        {
            const std::lock_guard hold(m_);
            all_.push_back(n);
        }
        door_->ring();
    }
    [[nodiscard]] std::vector<notice> take() {
        const std::lock_guard hold(m_);
        return std::exchange(all_, {});
    }

private:
    const std::shared_ptr<bell> door_;
    std::mutex m_;
    std::vector<notice> all_;
};

// What differs between two views of a breaker, as one word; empty: nothing that is worth a line.
// A probe that is granted or settled changes the view as well.
std::string_view difference(const view& before, const view& after) {
    if (before.over != after.over) return "override";
    if (before.over != override_kind::none && before.reason != after.reason) return "override";
    if (before.era != after.era) return "state";
    if (before.options_stamp != after.options_stamp) return "options";
    return "";
}

class watch_command final : public command {
public:
    void declare(arguments& to) override {
        to.positionals("NAME", names_, "only these; NAME* is all that begin so",
                       arguments::need::optional);
        to.output_option(format_);
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "NAME", where_);
    }

    int run(std::span<const std::string>) override {
        ending_wish end;
        const auto opened = open_breakers(where_, names_);
        if (const auto* why = std::get_if<problem>(&opened)) return complain(*why);
        const auto& in = std::get<breakers_place>(opened);
        waiting_room room(end, waiting_room::reader::needed);
        const auto box = std::make_shared<mailbox>(room.door());
        const listening to_changes(
            in.at, [box](detail::lock_store*, detail::breaker_store* breakers) {
                return breakers->subscribe([box](const notice& n) { box->put(n); });
            });
        const auto read = read_reports(in, names_, "watch breakers");
        if (const auto* why = std::get_if<problem>(&read)) return complain(*why);
        if (const int code = tell(in.at, std::get<reports>(read)); code != exit_ok) return code;
        say_what_is_missing(in.at);
        pulse health(in.at, room.door());
        while (true) {
            const auto asleep = std::min(health.ask(std::exchange(doubts_, false)), next_end());
            switch (room.wait(asleep)) {
                case waiting_room::reason::signal: return exit_ok;
                case waiting_room::reason::unread: return exit_output;
                case waiting_room::reason::time:
                case waiting_room::reason::change: break;
            }
            for (const notice& n : box->take()) {
                if (const int code = hear(in.at, n); code != exit_ok) return code;
            }
            if (const auto felt = health.take()) {
                if (const int code = feel(in, *felt); code != exit_ok) return code;
            }
            if (next_end().count() == 0) {
                if (const int code = see_ends(in); code != exit_ok) return code;
            }
        }
    }

private:
    [[nodiscard]] bool is_watched(const std::string& name) const {
        return names_.empty() || std::any_of(names_.begin(), names_.end(),
                                             [&](const auto& word) { return fits(name, word); });
    }

    static bool fits(const std::string& name, const std::string& word) {
        return word.ends_with('*') ? name.starts_with(word.substr(0, word.size() - 1))
                                   : name == word;
    }

    int tell(const store& at, const reports& all) {
        for (const report& r : all) {
            if (r.now.error) continue;
            if (const int code = tell(at, r.breaker, r.now.fleet); code != exit_ok) return code;
        }
        return exit_ok;
    }

    void say_what_is_missing(const store& at) const {
        const std::string there = "the store " + std::string(at.url()) + " has no ";
        if (names_.empty() && known_.empty()) {
            say(there + "breakers yet in the namespace " + std::string(at.name_space()) +
                "; waiting");
        }
        for (const std::string& word : names_) {
            const bool is_there = std::any_of(known_.begin(), known_.end(), [&](const auto& one) {
                return fits(one.first, word);
            });
            if (is_there) continue;
            say(there + "breaker " + detail::quoted(word) + " yet in the namespace " +
                std::string(at.name_space()) + "; waiting");
        }
    }

    // Until the first override runs out by itself, of which no store sends word: it is gone there,
    // but nothing is written until somebody calls.
    [[nodiscard]] milliseconds next_end() const {
        auto first = clock::now() + longest_sleep;
        for (const auto& [name, ends] : ends_) first = std::min(first, ends);
        return std::max(milliseconds(0), ceil<milliseconds>(first - clock::now()));
    }

    int see_ends(const breakers_place& in) {
        const auto read = read_reports(in, names_, "watch breakers");
        const auto* const all = std::get_if<reports>(&read);
        if (all != nullptr) {
            drop_those_gone(*all);
            if (const int code = tell(in.at, *all); code != exit_ok) return code;
        }
        // A breaker whose end cannot be read now is asked for again.
        for (auto& [name, ends] : ends_) {
            if (ends <= clock::now()) ends = clock::now() + read_again;
        }
        return exit_ok;
    }

    // Of those with an override: somebody took the record away.
    void drop_those_gone(const reports& all) {
        for (auto one = ends_.begin(); one != ends_.end();) {
            const bool is_there = std::any_of(
                all.begin(), all.end(), [&](const report& r) { return r.breaker == one->first; });
            if (!is_there) {
                say("the breaker " + detail::quoted(one->first) + " is not there any more");
                known_.erase(one->first);
            }
            one = is_there ? std::next(one) : ends_.erase(one);
        }
    }

    int hear(const store& at, const notice& n) {
        switch (n.kind) {
            case notice::kind_t::changed:
                answered_ = std::chrono::system_clock::now();
                return is_watched(n.breaker) ? tell(at, n.breaker, n.fleet) : exit_ok;
            case notice::kind_t::flush: return exit_ok;  // a question to those who count
            case notice::kind_t::new_server: restarted_ = is_redis(at.url()); break;
            case notice::kind_t::gap: break;
        }
        missed_ = doubts_ = true;
        return exit_ok;
    }

    // What the store answered when it was asked whether it is there.
    int feel(const breakers_place& in, const pulse::beat& felt) {
        if (!felt.is_well) return lose(in.at, felt.why);
        // What it knows now is older than what it said before, and true.
        if (restarted_) known_.clear();
        if (lost_ || restarted_) {
            if (const int code = tell_return(in.at, felt.asked); code != exit_ok) return code;
            missed_ = true;
        }
        lost_ = restarted_ = false;
        answered_ = std::max(answered_, felt.asked);
        if (felt.is_empty && !known_.empty()) {
            if (const int code = tell_emptied(in.at); code != exit_ok) return code;
        }
        if (!missed_) return exit_ok;
        const auto read = read_reports(in, names_, "watch breakers");
        if (std::holds_alternative<problem>(read)) return exit_ok;  // the next answer says why
        missed_ = false;
        return tell(in.at, std::get<reports>(read));
    }

    int lose(const store& at, const std::string& why) {
        if (std::exchange(lost_, true)) return exit_ok;
        const std::string since = utc_text(answered_);
        if (format_ == "json") {
            return print(json_of_change(at, "store_lost")
                             .add("reason", why)
                             .add("since", since)
                             .add_null("breaker")
                             .text() +
                         "\n");
        }
        return tell_of_store("the store " + std::string(at.url()) + " does not answer: " + why +
                             "; its last answer was at " + since);
    }

    // `restarted_` without `lost_`: it was away so shortly that nobody noticed.
    int tell_return(const store& at, std::chrono::system_clock::time_point now) {
        const auto away = std::max(milliseconds(0), floor<milliseconds>(now - answered_));
        if (format_ == "json") {
            return print(json_of_change(at, "store_back")
                             .add("since", utc_text(answered_))
                             .add("away_ms", away.count())
                             .add("restarted", restarted_)
                             .add_null("breaker")
                             .text() +
                         "\n");
        }
        const std::string life =
            "was restarted or replaced by another one, which may have lost its last writes; "
            "running "
            "processes bring states back";
        std::string text = "the store " + std::string(at.url());
        if (lost_) {
            text += " answers again, after " + duration_words(away);
            if (restarted_) text += "; it " + life;
        } else {
            text += " " + life;
        }
        return tell_of_store(text);
    }

    // Also when the time of all its breakers has run out.
    int tell_emptied(const store& at) {
        known_.clear();
        ends_.clear();
        if (format_ == "json") {
            return print(json_of_change(at, "store_emptied").add_null("breaker").text() + "\n");
        }
        return tell_of_store("the store " + std::string(at.url()) +
                             " has no breakers any more in the namespace " +
                             std::string(at.name_space()) +
                             ": it was emptied, or nobody has used them for long; processes that "
                             "use them bring them back");
    }

    int tell_of_store(const std::string& sentence) {
        if (format_ == "table") return print(utc_now() + "  " + visible(sentence) + "\n");
        say(sentence);  // -o name: names and nothing else
        return exit_ok;
    }

    int tell(const store& at, const std::string& name, const view& v) {
        const auto known = known_.find(name);
        std::string_view what = "begin";
        if (known != known_.end()) {
            const bool has_run_out = is_same_word(v, known->second) &&
                                     v.over == override_kind::none &&
                                     known->second.over != override_kind::none;
            if (!has_run_out && !v.newer_than(known->second)) {
                if (is_same_word(v, known->second)) note_end(name, v);
                return exit_ok;
            }
            what = difference(known->second, v);
        }
        known_[name] = v;
        note_end(name, v);
        if (what.empty()) return exit_ok;
        if (format_ == "name") return print(name + "\n");
        if (format_ == "json") {
            return print(
                json_of_change(at, what).add_raw("breaker", json_of(name, v).text()).text() + "\n");
        }
        const std::string of = what == "options" ? "other options govern; " : "";
        return print(utc_now() + "  " + of + sentence_of(name, v) + "\n");
    }

    static bool is_same_word(const view& a, const view& b) {
        return a.era == b.era && a.rev == b.rev;
    }

    void note_end(const std::string& name, const view& v) {
        if (v.over == override_kind::none) {
            ends_.erase(name);
        } else {
            ends_[name] = clock::now() + v.over_remaining;
        }
    }

    static json_object json_of_change(const store& at, std::string_view what) {
        return json_head(at).add("at", utc_now()).add("change", what);
    }

    std::vector<std::string> names_;
    std::string format_ = "table";
    store_flags where_;
    std::map<std::string, view> known_;
    std::map<std::string, clock::time_point> ends_;  // of overrides, by our clock
    bool lost_ = false;                              // the store does not answer, and that was told
    bool restarted_ = false;  // another life of it answers, and that was not told yet
    bool missed_ = false;     // changes, perhaps: all is to be read again
    bool doubts_ = false;     // it is to be asked at once whether it is there
    std::chrono::system_clock::time_point answered_ = std::chrono::system_clock::now();
};

}  // namespace

std::unique_ptr<command> make_breakers_watch() {
    return std::make_unique<watch_command>();
}

}  // namespace trinco::program
