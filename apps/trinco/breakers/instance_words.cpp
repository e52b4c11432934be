#include "apps/trinco/breakers/instance_words.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/output/table.hpp"
#include "apps/trinco/output/visible.hpp"

namespace trinco::program {
namespace {

using trinco::detail::report;
using trinco::detail::share;

// A machine's id says as much by its beginning.
std::string voter_cell(const std::string& voter) {
    constexpr std::size_t machine_id = 32;
    constexpr std::size_t enough = 8;
    const bool is_id = voter.size() == machine_id &&
                       voter.find_first_not_of("0123456789abcdef") == std::string::npos;
    return is_id ? voter.substr(0, enough) : voter;
}

constexpr std::size_t most_told = 256;  // by a store

bool is_idle(const share& s) {
    return s.window.judged() + s.window.ignored + s.window.rejected == 0;
}

bool runs_others(const share& s, std::uint64_t latest) {
    return s.options_stamp != 0 && s.options_stamp != latest;
}

// By our clock; stamps are times of the store's.
std::string age_of(std::uint64_t stamp) {
    using namespace std::chrono;
    const auto now = system_clock::now().time_since_epoch();
    const auto age = floor<milliseconds>(now - microseconds(static_cast<std::int64_t>(stamp)));
    return duration_words(std::max(age, milliseconds(0)));
}

std::string counted(std::size_t n) {
    return std::to_string(n) + (n == 1 ? " instance" : " instances");
}

}  // namespace

std::uint64_t latest_options(const report& r) noexcept {
    std::uint64_t latest = 0;
    for (const share& s : r.shares) latest = std::max(latest, s.options_stamp);
    return latest;
}

std::string whose_options(const report& r) {
    if (r.options_set) {
        if (r.set_remaining.count() == 0) {
            return "set by an operator until a moment ago; the next call ends that";
        }
        return "set by an operator, for " + duration_words(r.set_remaining) +
               " more; 'trinco breakers unset' ends that";
    }
    if (r.options.empty() && r.now.fleet.options_stamp != 0) {
        return "none until the next call tells its own";
    }
    const std::uint64_t stamp = r.now.fleet.options_stamp;
    std::size_t all = 0;
    std::string first;
    for (const share& s : r.shares) {
        if (s.options_stamp != stamp) continue;
        if (all++ == 0) first = s.instance;
    }
    if (all == 0) return "of a process that is gone, or kept by the fleet";
    return "of " + visible(first) + (all == 1 ? "" : " and " + std::to_string(all - 1) + " more") +
           ", since " + age_of(stamp);
}

std::string instances_text(const report& r) {
    table t({"INSTANCE", "VOTER", "CALLS", "FAILED", "REFUSED", "HEARD", "OPTIONS"});
    const std::uint64_t latest = latest_options(r);
    std::size_t others = 0;
    std::vector<const share*> all;
    for (const share& s : r.shares) all.push_back(&s);
    std::stable_partition(all.begin(), all.end(), [](const share* s) { return !is_idle(*s); });
    for (const share* const one : all) {
        const share& s = *one;
        const bool is_other = runs_others(s, latest);
        others += is_other ? 1 : 0;
        t.row({s.instance, voter_cell(s.voter), std::to_string(s.window.judged()),
               std::to_string(s.window.failure), std::to_string(s.window.rejected),
               duration_words(s.heard) + " ago",
               is_other               ? "other"
               : s.options_stamp == 0 ? "-"
                                      : "latest"});
    }
    std::string text = t.text();
    if (all.size() >= most_told) {
        text += "those heard last, " + std::to_string(most_told) + " at most\n";
    }
    if (others > 0) {
        text += counted(others) + (others == 1 ? " is" : " are") +
                " configured with other options than the latest; those of the latest govern" +
                (r.options_set ? " once an operator's are unset\n" : " for all\n");
    }
    return text;
}

json_object json_of(const share& s, std::uint64_t latest) {
    json_object one;
    one.add("instance", s.instance).add("voter", s.voter).add("heard_ms", s.heard.count());
    if (s.options_stamp == 0) {
        one.add_null("options");
    } else {
        one.add("options", runs_others(s, latest) ? "other" : "latest");
    }
    one.add_raw("window", json_of(s.window).text());
    return one;
}

}  // namespace trinco::program
