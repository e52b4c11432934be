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
#include <vector>

#include "sim/fleet_runs.hpp"

namespace trinco::sim {

struct fleet_totals {
    std::uint64_t seeds = 0;
    std::uint64_t events = 0;
    std::uint64_t messages = 0;
    std::uint64_t faults = 0;
    std::uint64_t openings = 0;
    std::uint64_t requests = 0;
    fleet_judge::evidence seen;
};

using fleet_history = std::function<fleet_result(std::uint64_t seed, bool keep_history)>;

// Of a long test's seeds, those of one of several tests that can run beside each other.
struct seed_share {
    std::uint64_t number = 0;
    std::uint64_t of = 1;
};

inline std::vector<seed_share> shares(std::uint64_t of) {
    std::vector<seed_share> all;
    for (std::uint64_t number = 0; number < of; ++number) all.push_back({number, of});
    return all;
}

inline std::string name_of_share(const testing::TestParamInfo<seed_share>& info) {
    return std::to_string(info.param.number + 1) + "Of" + std::to_string(info.param.of);
}

struct seed_range {
    std::uint64_t first;
    std::uint64_t end;
};

// A seed that is asked for alone is in the first share.
inline seed_range seeds_of(const seed_share& share, std::uint64_t usual) {
    if (const char* const one = std::getenv("TRINCO_SEED")) {
        const std::uint64_t seed = std::strtoull(one, nullptr, 10);
        return {seed, seed + (share.number == 0 ? 1 : 0)};
    }
    const char* const many = std::getenv("TRINCO_SEEDS");
    const std::uint64_t all = many != nullptr ? std::strtoull(many, nullptr, 10) : usual;
    return {1 + all * share.number / share.of, 1 + all * (share.number + 1) / share.of};
}

// Stops at the first seed with a violation.
inline fleet_totals run_seeds(const fleet_history& history, const seed_share& share = {},
                              std::uint64_t usual = 2'000) {
    fleet_totals all;
    const bool replays = std::getenv("TRINCO_SEED") != nullptr;
    const auto range = seeds_of(share, usual);
    for (std::uint64_t seed = range.first; seed < range.end; ++seed) {
        const auto r = history(seed, replays);
        for (const auto& line : r.history) std::cout << line << '\n';
        ++all.seeds;
        all.events += r.events;
        all.messages += r.messages;
        all.faults += r.faults;
        all.openings += r.openings;
        all.requests += r.requests;
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
