#include "apps/trinco/demo/gateway_outage.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "trinco/breaker_events.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using steady = std::chrono::steady_clock;

constexpr auto start_limit = 5s;
constexpr auto healthy_for = 1'500ms;
constexpr auto hanging_for = 3'500ms;
constexpr auto failing_for = 2'000ms;
constexpr auto well_for = 1'000ms;        // without a breaker nothing has to recover
constexpr auto recovery_limit = 8'000ms;  // longest wait for all breakers to close
constexpr auto shown_after = 600ms;       // closed breakers are watched a moment longer

std::string seconds_text(microseconds span) {
    const auto hundredths = (span.count() + 5'000) / 10'000;
    const auto rest = std::to_string(hundredths % 100);
    return std::to_string(hundredths / 100) + "." + (rest.size() < 2 ? "0" : "") + rest + " s";
}

std::string time_text(nanoseconds took) {
    if (took < 1ms) return std::to_string(took.count() / 1'000) + " us";
    return std::to_string(took / 1ms) + " ms";
}

// What a service is doing, for the live view.
struct shown_caller {
    breaker_state state = breaker_state::closed;
    std::optional<made_call> last;
};

class stage_of_outage {
public:
    stage_of_outage(const stage& on, bool guarded) : on_(on), guarded_(guarded), random_(on.seed) {}

    outage play() {
        seen_.failure = begin();
        if (!seen_.failure) seen_.failure = play_moods();
        return std::move(seen_);
    }

private:
    // ---- processes ------------------------------------------------------------------------

    std::optional<problem> begin() {
        auto gateway = cast::start(gateway_role(on_.scratch / "errors"));
        if (auto* why = std::get_if<problem>(&gateway)) return std::move(*why);
        gateway_.emplace(std::move(std::get<cast>(gateway)));
        const auto listens = first_line(*gateway_, "listens ");
        if (!listens) return did_not_start("the gateway");
        std::uniform_int_distribution<std::uint32_t> seed;
        for (std::size_t i = 0; i < callers; ++i) {
            caller_settings of{"service-" + std::to_string(i + 1),
                               static_cast<std::uint16_t>(std::stoi(*listens)), seed(random_)};
            if (guarded_) of.store = on_.breakers_url;
            of.name_space = on_.name_space;
            of.errors = on_.scratch / "errors";
            auto started = cast::start(caller_role(of));
            if (auto* why = std::get_if<problem>(&started)) return std::move(*why);
            processes_.push_back(std::move(std::get<cast>(started)));
        }
        seen_.services.resize(callers);
        shown_.resize(callers);
        for (cast& one : processes_) {
            if (!first_line(one, "ready")) return did_not_start("a service");
        }
        for (cast& one : processes_) one.say("go");
        seen_.phases.push_back({mood::healthy, moment_now()});
        return std::nullopt;
    }

    // What follows the words in its first line; nothing when it says something else.
    std::optional<std::string> first_line(cast& from, std::string_view words) const {
        const auto limit = steady::now() + start_limit;
        while (!on_.over() && steady::now() < limit && !from.silent()) {
            const auto line = from.next_line(on_.moment());
            if (!line) continue;
            if (!line->starts_with(words)) return std::nullopt;
            return line->substr(words.size());
        }
        return std::nullopt;
    }

    std::optional<problem> did_not_start(const std::string& who) const {
        if (on_.over()) return std::nullopt;
        return problem{exit_unavailable, who + " of the demonstration did not start"};
    }

    // ---- the play ---------------------------------------------------------------------------

    std::optional<problem> play_moods() {
        const std::array<std::pair<mood, milliseconds>, 3> changes = {
            {{mood::hanging, healthy_for},
             {mood::failing, hanging_for},
             {mood::healthy, failing_for}}};
        for (const auto& [next, length] : changes) {
            if (auto why = watch(steady::now() + length, [] { return false; })) return why;
            if (on_.over() || seen_.services.empty()) return std::nullopt;
            gateway_->say(word_of(next));
        }
        const auto limit = steady::now() + (guarded_ ? milliseconds(recovery_limit) : well_for);
        if (auto why = watch(limit, [this] { return guarded_ && all_call_again(); })) return why;
        if (auto why =
                watch(steady::now() + (guarded_ ? shown_after : 0ms), [] { return false; })) {
            return why;
        }
        seen_.finished = !on_.over() && seen_.phases.size() == changes.size() + 1;
        return std::nullopt;
    }

    // Hears what all say until then, or until it is so.
    template <class Condition>
    std::optional<problem> watch(steady::time_point until, Condition is_so) {
        while (!on_.over() && steady::now() < until && !is_so()) {
            std::vector<::pollfd> all = {{on_.interruption, POLLIN, 0},
                                         {gateway_->descriptor(), POLLIN, 0}};
            for (const cast& one : processes_) all.push_back({one.descriptor(), POLLIN, 0});
            const auto left = std::chrono::ceil<milliseconds>(until - steady::now());
            ::poll(all.data(), all.size(),
                   static_cast<int>(std::clamp(left, 0ms, on_.moment()).count()));
            while (const auto line = gateway_->next_line()) hear_gateway(*line);
            for (std::size_t i = 0; i < processes_.size(); ++i) {
                while (const auto line = processes_[i].next_line()) hear(i, *line);
                if (processes_[i].silent()) return ended("a service");
            }
            if (gateway_->silent()) return ended("the gateway");
            show();
        }
        return std::nullopt;
    }

    std::optional<problem> ended(const std::string& who) const {
        if (on_.over()) return std::nullopt;
        return problem{exit_unavailable, who + " of the demonstration ended before its time"};
    }

    void hear_gateway(const std::string& line) {
        std::istringstream words(line);
        std::string kind;
        std::string how;
        words >> kind >> how;
        const auto of = mood_of(how);
        if (!of) return;
        if (kind == "mood") {
            std::int64_t at = 0;
            words >> at;
            gateway_phase next{*of, microseconds(at)};
            next.most_probes = seen_.phases.back().most_probes;
            seen_.phases.push_back(next);
            told_return_ = false;
            tell_mood(*of);
        } else if (kind == "calls" && *of == seen_.phases.back().how) {
            auto& now = seen_.phases.back();
            words >> now.came >> waiting_ >> now.probes >> now.most_probes;
        }
    }

    void hear(std::size_t who, const std::string& line) {
        if (const auto call = call_in(line)) {
            seen_.services[who].calls.push_back(*call);
            shown_[who].last = *call;
            if (call->fate == call_fate::timeout) tell_return(*call);
        } else if (const auto change = state_in(line)) {
            seen_.services[who].changes.push_back(*change);
            shown_[who].state = change->to;
            if (change->to == breaker_state::open) tell_stop(who);
            if (change->to == breaker_state::closed) tell_recovery(who);
        }
    }

    [[nodiscard]] bool all_call_again() const {
        if (seen_.phases.size() < 4) return false;
        const auto well = seen_.phases[3].from;
        return std::all_of(seen_.services.begin(), seen_.services.end(), [&](const auto& one) {
            const auto closed = one.recovered_after(well);
            return closed && !one.calls.empty() && one.calls.back().fate == call_fate::ok &&
                   one.calls.back().at > well + *closed;
        });
    }

    // ---- telling ----------------------------------------------------------------------------

    void tell_mood(mood now) {
        const char* sentence = now == mood::hanging
                                   ? "The gateway hangs: it takes calls and answers none."
                               : now == mood::failing ? "The gateway fails: it answers 503."
                                                      : "The gateway is well again.";
        on_.to.tell("gateway", sentence, json_object().add("mood", word_of(now)));
    }

    [[nodiscard]] microseconds since_hanging(microseconds at) const {
        return at - seen_.phases[1].from;
    }

    void tell_stop(std::size_t who) {
        auto& one = seen_.services[who];
        if (seen_.phases.size() < 2 || std::exchange(stopped_[who], true)) return;
        const auto after = since_hanging(one.changes.back().at);
        on_.to.tell("breaker_open",
                    "Service " + std::to_string(who + 1) + " stops calling, " +
                        seconds_text(after) + " after the gateway began to hang.",
                    json_object().add("service", who + 1).add("after_us", after.count()));
    }

    void tell_return(const made_call& call) {
        if (seen_.phases.size() != 2 || std::exchange(told_return_, true)) return;
        const auto after = since_hanging(call.at + std::chrono::ceil<microseconds>(call.took));
        on_.to.tell("first_return",
                    "The first of the calls that hang returns, " + seconds_text(after) + " after.",
                    json_object().add("after_us", after.count()));
    }

    void tell_recovery(std::size_t who) {
        if (seen_.phases.size() < 4) return;
        const auto after = seen_.services[who].changes.back().at - seen_.phases[3].from;
        on_.to.tell("breaker_closed",
                    "Service " + std::to_string(who + 1) + " calls again, " + seconds_text(after) +
                        " after the gateway was well.",
                    json_object().add("service", who + 1).add("after_us", after.count()));
    }

    void show() {
        const auto& now = seen_.phases.back();
        const bool well = now.how == mood::healthy;
        std::vector<view_row> rows;
        rows.push_back({.label = "gateway",
                        .cells = {{std::string(word_of(now.how)), well ? tone::good : tone::bad},
                                  {"calls " + std::to_string(now.came)},
                                  {"waiting " + std::to_string(waiting_),
                                   waiting_ > 20 ? tone::bad : tone::plain}}});
        const std::string scheme = on_.breakers_url.substr(0, on_.breakers_url.find(':') + 1);
        rows.push_back({.label = "breaker",
                        .cells = {{guarded_ ? "shared by all 5 through " + scheme : "none",
                                   guarded_ ? tone::good : tone::bad}}});
        for (std::size_t i = 0; i < shown_.size(); ++i) {
            rows.push_back({.label = "service " + std::to_string(i + 1), .cells = cells_of(i)});
        }
        on_.to.show(std::move(rows));
    }

    [[nodiscard]] std::vector<cell> cells_of(std::size_t who) const {
        const shown_caller& one = shown_[who];
        std::vector<cell> cells;
        if (guarded_) {
            const bool closed = one.state == breaker_state::closed;
            cells.push_back({std::string(text_of(one.state)), closed ? tone::good : tone::busy});
        }
        if (!one.last) return cells;
        const call_fate fate = one.last->fate;
        const char* word = fate == call_fate::ok        ? "ok"
                           : fate == call_fate::failed  ? "failed"
                           : fate == call_fate::timeout ? "timed out"
                                                        : "refused";
        cells.push_back({std::string("last call ") + word + " in " + time_text(one.last->took),
                         fate == call_fate::ok        ? tone::plain
                         : fate == call_fate::refused ? tone::dim
                                                      : tone::bad});
        return cells;
    }

    const stage& on_;
    const bool guarded_;
    std::mt19937 random_;
    std::optional<cast> gateway_;
    std::vector<cast> processes_;
    outage seen_;
    std::vector<shown_caller> shown_;
    std::array<bool, callers> stopped_{};  // those whose stop was told
    bool told_return_ = false;
    std::uint64_t waiting_ = 0;  // calls at the gateway
};

}  // namespace

std::optional<microseconds> caller_story::stopped_after(microseconds moment) const {
    for (const state_change& one : changes) {
        if (one.at >= moment && one.to == breaker_state::open) return one.at - moment;
    }
    return std::nullopt;
}

std::optional<microseconds> caller_story::recovered_after(microseconds moment) const {
    if (changes.empty() || changes.back().to != breaker_state::closed) return std::nullopt;
    if (changes.back().at < moment) return std::nullopt;
    return changes.back().at - moment;
}

std::uint64_t outage::reached_dead() const {
    return hanging().came + failing().came;
}

std::optional<microseconds> outage::first_return() const {
    std::optional<microseconds> first;
    for (const caller_story& service : services) {
        for (const made_call& call : service.calls) {
            if (call.fate != call_fate::timeout) continue;
            const auto end = call.at + std::chrono::floor<microseconds>(call.took) - hanging().from;
            first = std::min(first.value_or(end), end);
        }
    }
    return first;
}

std::vector<nanoseconds> outage::times_while_hanging() const {
    std::vector<nanoseconds> all;
    for (const caller_story& service : services) {
        for (const made_call& call : service.calls) {
            if (call.at >= hanging().from && call.at < failing().from) all.push_back(call.took);
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

outage play_outage(const stage& on, bool guarded) {
    return stage_of_outage(on, guarded).play();
}

}  // namespace trinco::program::demo
