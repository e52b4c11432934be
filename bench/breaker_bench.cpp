// The breaker's hot path, next to what it consists of at least, in one run.
//
//     make bench
//
// Everything is repeated five times, interleaved at random, and the medians are compared. Times are
// CPU time of the measuring thread, so that other load of the machine counts less. Scaling is
// therefore what two threads cost each other (lines of cache, siblings of one core), not how many
// cores were free. The absolute targets are for a current server core; a slower machine shows in
// the yardsticks.
//
// Exit: 0 when every target is met or missed by no more than noise (10 %), else 1.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "breaker/clock.hpp"
#include "core/breaker/shard.hpp"
#include "trinco/circuit_breaker.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::breaker_options;
using trinco::circuit_breaker;
using trinco::detail::breaker_clock;
using trinco::detail::this_thread_shard;

constexpr double noise = 0.10;

// ---- yardsticks --------------------------------------------------------------------------------

struct alignas(64) sharded_counter {
    std::atomic<std::uint64_t> n{0};
};
std::atomic<std::uint64_t> gate{0};
sharded_counter counters[64];

// The least that any breaker does: look at a state, at the time, and count.
void bare_pattern(benchmark::State& state) {
    const breaker_clock clock;
    for (auto _ : state) {
        if (gate.load(std::memory_order_acquire) != 0) state.SkipWithError("the gate is shut");
        benchmark::DoNotOptimize(clock.coarse());
        counters[this_thread_shard() & 63].n.fetch_add(1, std::memory_order_relaxed);
    }
}
BENCHMARK(bare_pattern)->Threads(1)->Threads(2);

void two_clock_reads(benchmark::State& state) {
    const breaker_clock clock;
    for (auto _ : state) {
        benchmark::DoNotOptimize(clock.precise());
        benchmark::DoNotOptimize(clock.precise());
    }
}
BENCHMARK(two_clock_reads);

// ---- the breaker -------------------------------------------------------------------------------

void acquire_and_succeed(circuit_breaker& b, benchmark::State& state) {
    for (auto _ : state) {
        auto p = b.try_acquire();
        p.success();
    }
}

void closed(benchmark::State& state) {
    static circuit_breaker b("closed");
    acquire_and_succeed(b, state);
}
BENCHMARK(closed)->Threads(1)->Threads(2);

void with_duration(benchmark::State& state) {
    static circuit_breaker b("slow", breaker_options{.slow_call_after = 1s});
    acquire_and_succeed(b, state);
}
BENCHMARK(with_duration);

void count_window(benchmark::State& state) {
    static circuit_breaker b("count", breaker_options{.count_window = 100});
    acquire_and_succeed(b, state);
}
BENCHMARK(count_window);

void rejected_while_open(benchmark::State& state) {
    static circuit_breaker b("open");
    if (b.trip("bench", 24h)) state.SkipWithError("it did not open");
    for (auto _ : state) {
        auto p = b.try_acquire();
        if (p) state.SkipWithError("it is not open");
        benchmark::DoNotOptimize(p);
    }
}
BENCHMARK(rejected_while_open);

// For information: failures, which have to count down to the next evaluation.
void failing_below_the_rate(benchmark::State& state) {
    static circuit_breaker b("failing", breaker_options{.failure_rate = 0.9});
    bool fail = false;
    for (auto _ : state) {
        auto p = b.try_acquire();
        fail = !fail;
        fail ? p.failure() : p.success();
    }
}
BENCHMARK(failing_below_the_rate);

// ---- the comparison ----------------------------------------------------------------------------

// Version 1.8 of the benchmark library renamed the member.
template <class Run>
bool has_failed(const Run& run) {
    if constexpr (requires { run.error_occurred; }) {
        return run.error_occurred;
    } else {
        return run.skipped == decltype(run.skipped)::SkippedWithError;
    }
}

class medians final : public benchmark::ConsoleReporter {
public:
    medians() : ConsoleReporter(OO_None) {}

    void ReportRuns(const std::vector<Run>& runs) override {
        for (const auto& run : runs) {
            if (has_failed(run)) failed_ = true;
            if (run.run_type != Run::RT_Iteration) continue;
            auto& mine = times_[run.run_name.str()];
            mine.cpu.push_back(run.GetAdjustedCPUTime());
            mine.wall.push_back(run.GetAdjustedRealTime());
        }
    }
    [[nodiscard]] double cpu(const std::string& name) const { return median(times_.at(name).cpu); }
    [[nodiscard]] double wall(const std::string& name) const {
        return median(times_.at(name).wall);
    }
    [[nodiscard]] bool complete() const { return !failed_ && times_.size() == 9; }

private:
    struct times {
        std::vector<double> cpu;
        std::vector<double> wall;
    };
    static double median(std::vector<double> v) {
        std::sort(v.begin(), v.end());
        return v[v.size() / 2];
    }
    std::map<std::string, times> times_;
    bool failed_ = false;
};

// One line of the table; true when the target is met but for noise.
bool line(std::string_view what, double measured, double target, bool at_least,
          std::string_view unit, const std::string& beside) {
    const double ratio = measured / target;
    const bool met = at_least ? ratio >= 1 : ratio <= 1;
    const bool near = at_least ? ratio >= 1 - noise : ratio <= 1 + noise;
    std::printf("%-34.*s %8.2f %-2.*s %s %7.2f %-2.*s %6.2f  %-12s %s\n",
                static_cast<int>(what.size()), what.data(), measured, static_cast<int>(unit.size()),
                unit.data(), at_least ? ">=" : "<=", target, static_cast<int>(unit.size()),
                unit.data(), ratio,
                met    ? "met"
                : near ? "within noise"
                       : "MISSED",
                beside.c_str());
    return near;
}

std::string beside(const char* what, double value, const char* unit) {
    char text[80];
    std::snprintf(text, sizeof text, "%s %.2f %s", what, value, unit);
    return text;
}

bool compare(const medians& m) {
    const auto one = [](const char* name) { return std::string(name) + "/threads:1"; };
    const auto two = [](const char* name) { return std::string(name) + "/threads:2"; };
    const double closed_one = m.cpu(one("closed"));
    const double bare_one = m.cpu(one("bare_pattern"));
    const double reads = m.cpu("two_clock_reads");
    const double scaling = 2 * closed_one / m.cpu(two("closed"));
    const double bare_scaling = 2 * bare_one / m.cpu(two("bare_pattern"));
    std::printf("medians, CPU time\n%-34s %11s    %10s %6s\n", "", "measured", "target", "ratio");
    bool ok = line("closed, one thread", closed_one, 10, false, "ns",
                   beside("bare pattern", bare_one, "ns"));
    ok &= line("closed, two threads against one", scaling, 1.7, true, "x",
               beside("bare pattern", bare_scaling, "x"));
    // What other load leaves of it; meaningful on a machine that has two cores to itself.
    std::printf("%-34s %8.2f x  (bare pattern %.2f x)\n", "  the same by the wall clock",
                m.wall(one("closed")) / m.wall(two("closed")),
                m.wall(one("bare_pattern")) / m.wall(two("bare_pattern")));
    ok &= line("with duration", m.cpu("with_duration"), 1.25 * (reads + 10), false, "ns",
               beside("two clock reads", reads, "ns"));
    ok &= line("count window", m.cpu("count_window"), 30, false, "ns", "");
    ok &= line("rejected while open", m.cpu("rejected_while_open"), 50, false, "ns", "");
    std::printf("%-34s %8.2f ns\n", "failing every second time", m.cpu("failing_below_the_rate"));
    return ok;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> words{argv[0], "--benchmark_repetitions=5",
                                   "--benchmark_enable_random_interleaving=true",
                                   "--benchmark_min_time=0.2"};
    words.insert(words.end(), argv + 1, argv + argc);
    std::vector<char*> args;
    for (auto& w : words) args.push_back(w.data());
    int count = static_cast<int>(args.size());
    benchmark::Initialize(&count, args.data());
    if (benchmark::ReportUnrecognizedArguments(count, args.data())) return 1;
    medians reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    if (!reporter.complete()) {
        std::fputs("not everything was measured: no comparison\n", stderr);
        return 1;
    }
    return compare(reporter) ? 0 : 1;
}
