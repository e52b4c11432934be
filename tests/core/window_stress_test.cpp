// The window under real threads: nothing counted is ever lost, whatever slices begin and whoever
// looks on. Time is the tests' own, so that slices change thousands of times.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "core/breaker/window.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr int threads = 8;
constexpr int calls = 60'000;

struct shared_clock {
    std::atomic<std::int64_t> ns{0};
    [[nodiscard]] coarse_time now() const {
        return coarse_time(ns.load(std::memory_order_relaxed));
    }
};

counts expected_of(int rounds) {
    counts n;
    for (int i = 0; i < rounds; ++i) n += counts_of(static_cast<counter>(i % 6));
    counts all;
    for (int t = 0; t < threads; ++t) all += n;
    return all;
}

// Runs `work(i)` calls times in each of the threads, and `watch` meanwhile.
template <class Work, class Watch>
void run(Work work, Watch watch) {
    std::atomic<int> running{threads};
    std::latch start(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            start.arrive_and_wait();
            for (int i = 0; i < calls; ++i) work(i);
            --running;
        });
    }
    do {
        watch();
    } while (running.load() != 0);
    for (auto& t : all) t.join();
}

class WindowStress : public testing::TestWithParam<std::size_t> {};

TEST_P(WindowStress, TotalsAreExactWhileSlicesRunOut) {
    time_window w(10ms, 10, GetParam());
    shared_clock clock;
    counts seen;
    run(
        [&](int i) {
            if (i % 16 == 0) clock.ns += 200'000;
            w.add(0, clock.now(), static_cast<counter>(i % 6));
        },
        [&] {
            // Never more than there is, and no member below zero (which would be huge).
            seen = w.sum(0, clock.now());
            const auto most = expected_of(calls);
            EXPECT_LE(seen.success, most.success);
            EXPECT_LE(seen.slow_failure, most.slow_failure);
            EXPECT_LE(seen.slow_success, seen.success);
            EXPECT_LE(seen.rejected, most.rejected);
        });
    EXPECT_EQ(w.totals(), expected_of(calls));
}

TEST_P(WindowStress, TheSumIsExactWhileTheSliceLasts) {
    time_window w(10ms, 10, GetParam());
    run([&](int i) { w.add(1, 5ms, static_cast<counter>(i % 6)); },
        [&] { EXPECT_LE(w.sum(1, 5ms).success, expected_of(calls).success); });
    // A thread that enters the slice keeps the others waiting only so long: none may be missing but
    // those which gave up waiting, and that the first entry of an empty cell cannot cost anything.
    EXPECT_EQ(w.totals(), expected_of(calls));
    const auto sum = w.sum(1, 5ms);
    EXPECT_LE(expected_of(calls).judged() - sum.judged(), std::uint64_t{threads});
}

TEST_P(WindowStress, HarvestsAddUpToTheTotals) {
    time_window w(10ms, 10, GetParam());
    shared_clock clock;
    counts harvested;
    std::atomic<unsigned> generation{0};
    const auto take = [&](unsigned bank) {
        const auto h = w.harvest(bank, clock.now());
        for (const auto& s : h.slices) harvested += s.n;
        harvested += h.expired;
    };
    int turns = 0;
    run(
        [&](int i) {
            if (i % 16 == 0) clock.ns += 200'000;
            w.add(generation.load(std::memory_order_relaxed), clock.now(),
                  static_cast<counter>(i % 6));
        },
        [&] {
            take(0);
            take(1);
            if (++turns % 8 == 0) {
                harvested += w.clear(generation.load() + 1);
                ++generation;
            }
        });
    take(0);
    take(1);
    EXPECT_EQ(harvested, expected_of(calls));
    EXPECT_EQ(w.totals(), expected_of(calls));
}

INSTANTIATE_TEST_SUITE_P(Shards, WindowStress, testing::Values(1, 2, 8));

}  // namespace
}  // namespace trinco::detail
