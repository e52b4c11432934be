// Sessions and mutexes on the simulator, on one server, on etcd and on Consul: safety while
// everything fails, then liveness, then nothing left.
//
//   TRINCO_SEEDS=N   so many seeds instead of 2,500, and of 300 on etcd and Consul
//   TRINCO_SEED=N    this one alone, with its history
#include "sim/lock_sim.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

using trinco::sim::lock_sim_result;
using trinco::sim::run_lock_sim;
using ground = trinco::sim::lock_sim_ground;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string explain(std::uint64_t seed, const lock_sim_result& r) {
    std::string text = "seed " + std::to_string(seed) + " (" + r.parameters + ")";
    for (const auto& v : r.violations) text += "\n  " + v;
    return text + "\n  replay it with TRINCO_SEED=" + std::to_string(seed);
}

void replay(std::uint64_t seed, ground where) {
    const auto r = run_lock_sim(seed, true, where);
    for (const auto& line : r.history) std::cout << line << '\n';
    std::cout << r.parameters << "\ndigest " << std::hex << r.digest << std::dec << ", " << r.events
              << " events\n";
    EXPECT_TRUE(r.violations.empty()) << explain(seed, r);
}

void run_seeds(std::uint64_t otherwise, ground where) {
    if (std::getenv("TRINCO_SEED") != nullptr) return replay(number_of("TRINCO_SEED", 0), where);
    const auto seeds = number_of("TRINCO_SEEDS", otherwise);
    trinco::sim::lock_judge::evidence all;
    std::uint64_t lost = 0;
    std::uint64_t faults = 0;
    std::uint64_t events = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const auto r = run_lock_sim(seed, false, where);
        ASSERT_TRUE(r.violations.empty()) << explain(seed, r);
        all.attempts += r.seen.attempts;
        all.grants += r.seen.grants;
        all.contended += r.seen.contended;
        all.writes += r.seen.writes;
        all.stale_writes += r.seen.stale_writes;
        all.beliefs += r.seen.beliefs;
        all.losses += r.seen.losses;
        lost += r.sessions_lost;
        faults += r.faults;
        events += r.events;
    }
    std::cout << seeds << " seeds: " << events << " events, " << faults << " faults, "
              << all.attempts << " attempts, " << all.grants << " grants (" << all.contended
              << " contended), " << lost << " sessions lost, " << all.beliefs
              << " beliefs checked, " << all.losses << " locks told lost alone, " << all.writes
              << " writes, of which the token kept out " << all.stale_writes << '\n';
    // A checker that saw nothing proves nothing.
    EXPECT_GT(all.grants, seeds * 10);
    EXPECT_GT(all.contended, seeds);
    EXPECT_GT(all.beliefs, seeds * 10);
    EXPECT_GT(lost, seeds / 4);
    EXPECT_GT(all.stale_writes, seeds / 100) << "no pause ever let a stale write through";
}

TEST(LockSim, NoTwoBelieversTokensGrowNothingIsLeftAndItGoesOn) {
    run_seeds(2'500, ground::memory);
}

TEST(LockSim, OnEtcdNoTwoBelieversTokensGrowNothingIsLeftAndItGoesOn) {
    run_seeds(300, ground::etcd);
}

TEST(LockSim, OnConsulNoTwoBelieversTokensGrowNothingIsLeftAndItGoesOn) {
    run_seeds(300, ground::consul);
}

TEST(LockSim, OneSeedReplaysToTheIdenticalHistory) {
    for (const auto where : {ground::memory, ground::etcd, ground::consul}) {
        for (const std::uint64_t seed : {3U, 77U, 1'234U}) {
            const auto first = run_lock_sim(seed, false, where);
            const auto second = run_lock_sim(seed, false, where);
            EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
            EXPECT_EQ(first.events, second.events) << "seed " << seed;
        }
        EXPECT_NE(run_lock_sim(3, false, where).digest, run_lock_sim(4, false, where).digest);
    }
}

}  // namespace
