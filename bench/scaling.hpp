// How much more two threads get done than one, by the wall clock: each works for the same stretch
// of time, both at once, and what they have done is counted.
//
// Other load spoils that: a thread that waits for a core does nothing. So each thread's time on a
// core is measured as well. A round in which one had less than 97 % of its stretch is noisy and is
// repeated.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

namespace trinco::bench {

constexpr double clean_share = 0.97;
constexpr std::chrono::milliseconds stretch{50};

struct throughput {
    double per_second = 0;
    double share = 1;  // of the stretch that the worst-off thread had a core
};

// What some threads get done, each calling `operation` again and again.
template <class Operation>
throughput measure(int threads, Operation operation) {
    struct alignas(64) result {
        double per_second = 0;
        double share = 0;
    };
    const auto seconds_of = [](clockid_t clock) {
        timespec t{};
        ::clock_gettime(clock, &t);
        return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    };
    std::vector<result> results(static_cast<std::size_t>(threads));
    std::latch ready(threads + 1);
    std::atomic<bool> stop{false};
    std::vector<std::thread> workers;
    for (auto& mine : results) {
        workers.emplace_back([&] {
            ready.arrive_and_wait();
            const double wall = seconds_of(CLOCK_MONOTONIC);
            const double core = seconds_of(CLOCK_THREAD_CPUTIME_ID);
            std::uint64_t done = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                for (int i = 0; i < 1'000; ++i) operation();
                done += 1'000;
            }
            const double lasted = seconds_of(CLOCK_MONOTONIC) - wall;
            mine.share = (seconds_of(CLOCK_THREAD_CPUTIME_ID) - core) / lasted;
            mine.per_second = static_cast<double>(done) / lasted;
        });
    }
    ready.arrive_and_wait();
    std::this_thread::sleep_for(stretch);
    stop = true;
    for (auto& w : workers) w.join();
    throughput all;
    for (const auto& r : results) {
        all.per_second += r.per_second;
        all.share = std::min(all.share, r.share);
    }
    return all;
}

// One comparison of the subject and, at the same time as far as possible, of a yardstick.
struct scaling_round {
    double subject = 0;  // what two threads do, by what one does
    double yardstick = 0;
    double share = 1;  // the least of all measurements
};

struct scaling {
    double subject = 0;  // medians
    double yardstick = 0;
    int clean = 0;    // rounds of those that count
    int counted = 0;  // rounds that count
    int rounds = 0;   // rounds there were
};

// `wanted` clean rounds; when `most` rounds do not bring that many, the least noisy count.
template <class Subject, class Yardstick>
scaling measure_scaling(int wanted, int most, Subject subject, Yardstick yardstick) {
    std::vector<scaling_round> all;
    const auto clean = [](const scaling_round& r) { return r.share >= clean_share; };
    while (std::count_if(all.begin(), all.end(), clean) < wanted &&
           static_cast<int>(all.size()) < most) {
        scaling_round r;
        const auto compare = [&r](auto operation) {
            const auto one = measure(1, operation);
            const auto two = measure(2, operation);
            r.share = std::min({r.share, one.share, two.share});
            return two.per_second / one.per_second;
        };
        r.yardstick = compare(yardstick);
        r.subject = compare(subject);
        all.push_back(r);
    }
    scaling out;
    out.rounds = static_cast<int>(all.size());
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.share > b.share; });
    all.resize(std::min(all.size(), static_cast<std::size_t>(wanted)));
    out.counted = static_cast<int>(all.size());
    out.clean = static_cast<int>(std::count_if(all.begin(), all.end(), clean));
    const auto median = [&all](double scaling_round::*what) {
        std::vector<double> values;
        for (const auto& r : all) values.push_back(r.*what);
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
    };
    out.subject = median(&scaling_round::subject);
    out.yardstick = median(&scaling_round::yardstick);
    return out;
}

}  // namespace trinco::bench
