// One play of act (b): five services call a payment gateway that is well, hangs, fails and is well
// again; with the breaker that they share, or without.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/trinco/demo/gateway_caller.hpp"
#include "apps/trinco/demo/gateway_server.hpp"
#include "apps/trinco/demo/stage.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program::demo {

inline constexpr std::size_t callers = 5;

// A time of one mood, as the gateway saw it.
struct gateway_phase {
    mood how = mood::healthy;
    std::chrono::microseconds from{0};
    std::uint64_t came = 0;         // calls that reached it
    std::uint64_t probes = 0;       // among them, those of a breaker that is half open
    std::uint64_t most_probes = 0;  // at a time, since the gateway began
};

// One of the services, as it saw itself.
struct caller_story {
    std::vector<made_call> calls;       // in the order of their ends
    std::vector<state_change> changes;  // of its breaker
    // When it began to refuse after that moment, and when it was closed for good.
    [[nodiscard]] std::optional<std::chrono::microseconds> stopped_after(
        std::chrono::microseconds moment) const;
    [[nodiscard]] std::optional<std::chrono::microseconds> recovered_after(
        std::chrono::microseconds moment) const;
};

struct outage {
    std::vector<gateway_phase> phases;  // healthy, hanging, failing, healthy: when all came
    std::vector<caller_story> services;
    std::optional<problem> failure;

    // Whether it was played to its end.
    [[nodiscard]] bool complete() const { return !failure && finished; }
    bool finished = false;

    [[nodiscard]] const gateway_phase& hanging() const { return phases.at(1); }
    [[nodiscard]] const gateway_phase& failing() const { return phases.at(2); }
    [[nodiscard]] const gateway_phase& well_again() const { return phases.at(3); }
    // Calls that reached it while it hung or failed.
    [[nodiscard]] std::uint64_t reached_dead() const;
    // The first end of a call that hung, after the gateway began to hang.
    [[nodiscard]] std::optional<std::chrono::microseconds> first_return() const;
    // How long the calls took that began while it hung, sorted.
    [[nodiscard]] std::vector<std::chrono::nanoseconds> times_while_hanging() const;
};

// About 8 s without, 10 s with.
[[nodiscard]] outage play_outage(const stage& on, bool guarded);

}  // namespace trinco::program::demo
