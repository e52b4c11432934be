#include "apps/trinco/demo/breaker_story.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

// "2.00 s", "15.2 ms", "4.1 us".
std::string span_text(nanoseconds span) {
    std::array<char, 32> text{};
    const auto ns = static_cast<double>(span.count());
    if (span < 1ms) {
        std::snprintf(text.data(), text.size(), "%.1f us", ns / 1e3);
    } else if (span < 100ms) {
        std::snprintf(text.data(), text.size(), "%.1f ms", ns / 1e6);
    } else {
        std::snprintf(text.data(), text.size(), "%.2f s", ns / 1e9);
    }
    return text.data();
}

nanoseconds median_of(const std::vector<nanoseconds>& sorted) {
    return sorted.empty() ? 0ns : sorted[sorted.size() / 2];
}

// The earliest and the latest of the services; nothing unless each has one.
struct range {
    microseconds first{0};
    microseconds last{0};
};
template <class Of>
std::optional<range> range_of(const std::vector<caller_story>& services, Of of) {
    std::optional<range> all;
    for (const caller_story& one : services) {
        const std::optional<microseconds> at = of(one);
        if (!at) return std::nullopt;
        all = all ? range{std::min(all->first, *at), std::max(all->last, *at)} : range{*at, *at};
    }
    return all;
}

std::string range_text(const std::optional<range>& what) {
    if (!what) return "never";
    return span_text(what->first) + " to " + span_text(what->last);
}

// Everything that is claimed, from both plays.
struct findings {
    findings(const outage& without, const outage& with)
        : reached_without(without.reached_dead()),
          reached_with(with.reached_dead()),
          time_without(median_of(without.times_while_hanging())),
          time_with(median_of(with.times_while_hanging())),
          stopped(range_of(with.services,
                           [&](const auto& s) { return s.stopped_after(with.hanging().from); })),
          recovered(
              range_of(with.services,
                       [&](const auto& s) { return s.recovered_after(with.well_again().from); })),
          first_return(with.first_return()),
          probes(with.hanging().probes + with.failing().probes),
          most_probes(with.failing().most_probes) {
        for (const auto& service : with.services) {
            for (const auto& call : service.calls) {
                if (call.fate == call_fate::refused) ++refused;
            }
        }
    }

    std::uint64_t reached_without;
    std::uint64_t reached_with;
    nanoseconds time_without;
    nanoseconds time_with;
    std::optional<range> stopped;
    std::optional<range> recovered;
    std::optional<microseconds> first_return;
    std::uint64_t probes;
    std::uint64_t most_probes;
    std::uint64_t refused = 0;
};

void claim_all(const findings& f, act_result& to) {
    to.claims.push_back({"stopped_before_the_first_return",
                         f.stopped && f.first_return && f.stopped->last < *f.first_return,
                         "all 5 stopped after " +
                             (f.stopped ? span_text(f.stopped->last) : "no time at all") +
                             "; the first hanging call returned after " +
                             (f.first_return ? span_text(*f.first_return) : "no time at all")});
    to.claims.push_back({"fewer_calls_reached_the_dead_gateway",
                         f.reached_with > 0 && f.reached_with * 2 < f.reached_without,
                         std::to_string(f.reached_with) +
                             " calls reached the dead gateway, without a breaker " +
                             std::to_string(f.reached_without)});
    to.claims.push_back({"refused_at_once", f.time_with < 10ms && f.time_without > 1s,
                         "while it hung a call took " + span_text(f.time_with) +
                             ", without a breaker " + span_text(f.time_without) + " (median)"});
    to.claims.push_back(
        {"few_probes", f.probes > 0 && f.most_probes <= caller_breaker().half_open_probes,
         "while it was dead " + std::to_string(f.probes) + " probes tried it, at most " +
             std::to_string(f.most_probes) + " at a time"});
    to.claims.push_back({"recovered", f.recovered.has_value(),
                         "all 5 call again " +
                             (f.recovered ? span_text(f.recovered->last) : "never") +
                             " after it was well"});
}

std::string row(const std::string& label, const std::string& without, const std::string& with) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "%-34s %15s  %18s", label.c_str(), without.c_str(),
                  with.c_str());
    return text.data();
}

void summarise(const findings& f, act_result& to) {
    to.summary = {
        row("", "without breaker", "with breaker"),
        row("time per call, hanging (median)", span_text(f.time_without), span_text(f.time_with)),
        row("calls that reached it while dead", std::to_string(f.reached_without),
            std::to_string(f.reached_with)),
        row("calls refused at once", "0", std::to_string(f.refused)),
        row("services stopped calling after", "never", range_text(f.stopped)),
        row("probes while dead, most at a time", "-",
            std::to_string(f.probes) + ", " + std::to_string(f.most_probes)),
        row("call again after it was well", "-", range_text(f.recovered))};
}

json_object& add_range(json_object& to, const std::string& name, const std::optional<range>& what) {
    if (!what) return to.add_null("first_" + name).add_null("last_" + name);
    return to.add("first_" + name, what->first.count()).add("last_" + name, what->last.count());
}

std::string json_of(const std::vector<caller_story>& services, microseconds hung,
                    microseconds well) {
    json_array all;
    for (const caller_story& one : services) {
        json_object o;
        const auto stopped = one.stopped_after(hung);
        const auto closed = one.recovered_after(well);
        stopped ? o.add("stopped_after_us", stopped->count()) : o.add_null("stopped_after_us");
        closed ? o.add("recovered_after_us", closed->count()) : o.add_null("recovered_after_us");
        all.add_raw(o.text());
    }
    return all.text();
}

void add_figures(const findings& f, const outage& with, act_result& to) {
    to.figures.add_raw("without_breaker", json_object()
                                              .add("reached_while_dead", f.reached_without)
                                              .add("call_ns_while_hanging", f.time_without.count())
                                              .text());
    json_object guarded;
    guarded.add("reached_while_dead", f.reached_with)
        .add("call_ns_while_hanging", f.time_with.count())
        .add("refused", f.refused)
        .add("probes_while_dead", f.probes)
        .add("most_probes_at_a_time", f.most_probes);
    f.first_return ? guarded.add("first_return_us", f.first_return->count())
                   : guarded.add_null("first_return_us");
    add_range(guarded, "stop_us", f.stopped);
    add_range(guarded, "recovery_us", f.recovered);
    guarded.add_raw("services",
                    json_of(with.services, with.hanging().from, with.well_again().from));
    to.figures.add_raw("with_breaker", guarded.text());
}

}  // namespace

act_result judge_outages(const outage& without, const outage& with) {
    const findings found(without, with);
    act_result all;
    claim_all(found, all);
    summarise(found, all);
    add_figures(found, with, all);
    return all;
}

act_result breaker_story(const stage& on) {
    act_result none;
    on.to.tell("scene", "5 services, 20 calls a second each, 2 s of patience. No breaker.");
    const outage without = play_outage(on, false);
    none.failure = without.failure;
    if (!without.complete()) return none;
    on.to.tell("reached", std::to_string(without.reached_dead()) +
                              " calls reached the gateway while it was dead.");
    if (!on.let_read(500ms)) return none;
    on.to.tell("scene", "The same, with a breaker that all share. Each is a voter of its own.");
    const outage with = play_outage(on, true);
    none.failure = with.failure;
    if (!with.complete()) return none;
    on.to.tell("reached", std::to_string(with.reached_dead()) +
                              " calls reached the gateway while it was dead.");
    return judge_outages(without, with);
}

}  // namespace trinco::program::demo
