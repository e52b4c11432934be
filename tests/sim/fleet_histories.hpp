// Runs one history of a fleet over many seeds.
//
//   TRINCO_SEEDS=N   so many seeds instead of the usual number
//   TRINCO_SEED=N    this one alone, with its history
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "sim/fleet_runs.hpp"

namespace trinco::sim {

struct fleet_totals {
    std::uint64_t seeds = 0;
    std::uint64_t events = 0;
    std::uint64_t messages = 0;
    std::uint64_t faults = 0;
    std::uint64_t openings = 0;
    fleet_judge::evidence seen;
};

using fleet_history = std::function<fleet_result(std::uint64_t seed, bool keep_history)>;

// Stops at the first seed with a violation.
inline fleet_totals run_seeds(const fleet_history& history, std::uint64_t usual = 2'000) {
    fleet_totals all;
    const char* const one = std::getenv("TRINCO_SEED");
    const char* const many = std::getenv("TRINCO_SEEDS");
    const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
    const std::uint64_t count = one != nullptr    ? 1
                                : many != nullptr ? std::strtoull(many, nullptr, 10)
                                                  : usual;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const auto r = history(seed, one != nullptr);
        for (const auto& line : r.history) std::cout << line << '\n';
        ++all.seeds;
        all.events += r.events;
        all.messages += r.messages;
        all.faults += r.faults;
        all.openings += r.openings;
        all.seen.grants += r.seen.grants;
        all.seen.most_at_once = std::max(all.seen.most_at_once, r.seen.most_at_once);
        all.seen.batches += r.seen.batches;
        all.seen.retries += r.seen.retries;
        all.seen.outcomes += r.seen.outcomes;
        std::string text;
        for (const auto& v : r.violations) text += "\n  " + v;
        EXPECT_TRUE(r.violations.empty()) << "seed " << seed << " (" << r.parameters << ")" << text
                                          << "\n  replay it with TRINCO_SEED=" << seed;
        if (!r.violations.empty()) break;
    }
    std::cout << all.seeds << " seeds: " << all.events << " events, " << all.messages
              << " messages, " << all.faults << " faults, " << all.seen.grants
              << " probes granted (at most " << all.seen.most_at_once << " at once), "
              << all.seen.batches << " batches, " << all.seen.retries << " sent again, "
              << all.seen.outcomes << " outcomes, " << all.openings << " openings\n";
    return all;
}

// Whether the run was meant to prove something by its numbers.
inline bool is_full(const fleet_totals& all) {
    return all.seeds >= 500;
}

}  // namespace trinco::sim
