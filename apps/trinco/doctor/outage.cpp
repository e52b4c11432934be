#include "apps/trinco/doctor/outage.hpp"

#include <algorithm>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/lock/lock_options.hpp"
#include "core/lock/lease.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;
using trinco::detail::lease_timing;

constexpr auto long_take_over = 10s;

}  // namespace

milliseconds survived_outage(seconds ttl) {
    // It may begin when a renewal is just due, and what was lost on the way is sent once more.
    const auto told = lease_timing::believed(ttl) - default_grace(ttl);
    const auto left = told - lease_timing::renew_after(ttl) - lease_timing::retry_after(ttl);
    return std::max(std::chrono::floor<milliseconds>(left), 0ms);
}

void judge_outage(seconds least_ttl, const leader_change& change, examination& to) {
    std::string text;
    json_object figures;
    for (const seconds asked : {15s, 60s}) {
        const seconds ttl = std::max(asked, least_ttl);
        const auto survived = survived_outage(ttl);
        text += (text.empty() ? "with a TTL of " : ", of ") + duration_words(ttl) + " at least " +
                duration_words(survived);
        figures.add("ttl_" + std::to_string(asked.count()) + "s_survives_ms", survived.count());
    }
    const std::string sentence =
        "a command under a lock does not notice when the store is away: " + text;
    if (change.takes >= std::min<milliseconds>(survived_outage(15s), long_take_over)) {
        finding one{level::warn, "outage",
                    sentence + "; a new leader may take " + duration_words(change.takes),
                    change.advice, std::move(figures)};
        return to.add(std::move(one));
    }
    to.good("outage", sentence + change.remark, std::move(figures));
}

}  // namespace trinco::program::doctor
