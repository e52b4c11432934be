#include "apps/trinco/breakers/why_words.hpp"

#include <algorithm>
#include <cstdint>

#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "core/breaker/policy.hpp"

namespace trinco::program {
namespace {

using trinco::detail::name_of;
using trinco::detail::report;
using trinco::detail::trip_reason;

std::string calls_of(const breaker_options& o) {
    return "at least " + std::to_string(o.minimum_calls) + " calls within " +
           duration_words(o.window);
}

std::string quorum_of(const report& r, const breaker_options& o) {
    const auto needed = std::min<std::uint64_t>(o.quorum, std::max<std::uint64_t>(r.now.live, 1));
    return ", as " + std::to_string(needed) + (needed == 1 ? " voter" : " voters") + " or more saw";
}

}  // namespace

std::string why_text(const report& r) {
    const detail::view& v = r.now.fleet;
    if (v.state == breaker_state::closed || v.over != override_kind::none) return {};
    const breaker_options o = options_of_text(r.options);
    if (v.reason == name_of(trip_reason::failure_rate)) {
        return "at least " + percent_text(o.failure_rate) + " of " + calls_of(o) + " had failed" +
               quorum_of(r, o);
    }
    if (v.reason == name_of(trip_reason::slow_call_rate)) {
        return "at least " + percent_text(o.slow_call_rate) + " of " + calls_of(o) + " were slow" +
               quorum_of(r, o);
    }
    if (v.reason == name_of(trip_reason::failure_count)) {
        return "at least " + std::to_string(o.failure_count) + " calls within " +
               duration_words(o.window) + " had failed" + quorum_of(r, o);
    }
    if (v.reason == name_of(trip_reason::probes_failed)) {
        return "at least " + percent_text(o.failure_rate) + " of its " +
               std::to_string(o.half_open_probes) + " probes failed";
    }
    if (v.reason == name_of(trip_reason::probes_vanished)) {
        return std::to_string(o.half_open_probes) +
               " probes were never settled: their processes ended";
    }
    return {};
}

}  // namespace trinco::program
