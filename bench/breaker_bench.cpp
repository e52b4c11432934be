// The breaker's hot path, next to what it consists of at least, in one run.
//
//     make bench
//
// The rows of one thread are medians of five repetitions, interleaved at random, in CPU time, so
// that other load of the machine counts less. The row of two threads is throughput by the wall
// clock while both run, against one thread's, next to the bare pattern's (bench/scaling.hpp):
// median of five rounds during which every thread had a core. The absolute targets are for a
// current server core; a slower machine shows in the yardsticks.
//
// Exit: 0 when every target is met or missed by no more than noise, else 1. Noise is 10 %. The row
// of two threads is also within noise when the bare pattern itself does not reach 1.77, the least
// that two cores give it, and the breaker reaches nine tenths of what it does: then the machine had
// no two cores to give.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/scaling.hpp"
#include "breaker/clock.hpp"
#include "core/breaker/shard.hpp"
#include "trinco/circuit_breaker.hpp"

namespace {

using namespace std::chrono_literals;
namespace bench = trinco::bench;
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
void do_the_bare_pattern() {
    const breaker_clock clock;
    if (gate.load(std::memory_order_acquire) != 0) std::abort();
    benchmark::DoNotOptimize(clock.coarse());
    counters[this_thread_shard() & 63].n.fetch_add(1, std::memory_order_relaxed);
}

void bare_pattern(benchmark::State& state) {
    for (auto _ : state) do_the_bare_pattern();
}
BENCHMARK(bare_pattern);

void two_clock_reads(benchmark::State& state) {
    const breaker_clock clock;
    for (auto _ : state) {
        benchmark::DoNotOptimize(clock.precise());
        benchmark::DoNotOptimize(clock.precise());
    }
}
BENCHMARK(two_clock_reads);

// ---- the breaker -------------------------------------------------------------------------------

void acquire_and_succeed(circuit_breaker& b) {
    auto p = b.try_acquire();
    p.success();
}
void acquire_and_succeed(circuit_breaker& b, benchmark::State& state) {
    for (auto _ : state) acquire_and_succeed(b);
}

void closed(benchmark::State& state) {
    static circuit_breaker b("closed");
    acquire_and_succeed(b, state);
}
BENCHMARK(closed);

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

    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override {
        for (const auto& run : runs) {
            if (has_failed(run)) failed_ = true;
            if (run.run_type != Run::RT_Iteration) continue;
            times_[run.run_name.function_name].push_back(run.GetAdjustedCPUTime());
        }
    }
    [[nodiscard]] double ns(const std::string& name) const {
        auto v = times_.at(name);
        std::sort(v.begin(), v.end());
        return v[v.size() / 2];
    }
    [[nodiscard]] bool complete() const { return !failed_ && times_.size() == 7; }

private:
    std::map<std::string, std::vector<double>> times_;
    bool failed_ = false;
};

enum class verdict { met, within_noise, missed };

verdict judge(double measured, double target, bool at_least) {
    const double off = at_least ? target / measured : measured / target;
    return off <= 1 ? verdict::met : off <= 1 + noise ? verdict::within_noise : verdict::missed;
}

// One line of the table; true unless the target is missed.
bool line(const char* what, const char* unit, double measured, bool at_least, double target,
          verdict v, const std::string& beside) {
    static constexpr const char* words[] = {"met", "within noise", "MISSED"};
    std::printf("%-32s %2s %7.2f %-2s  %7.2f %-2s  %6.2f   %-13s %s\n", what,
                at_least ? ">=" : "<=", target, unit, measured, unit, measured / target,
                words[static_cast<int>(v)], beside.c_str());
    return v != verdict::missed;
}

bool line(const char* what, double measured, double target, const std::string& beside) {
    return line(what, "ns", measured, false, target, judge(measured, target, false), beside);
}

std::string beside(const char* what, double value, const char* unit) {
    char text[80];
    std::snprintf(text, sizeof text, "%s %.2f %s", what, value, unit);
    return text;
}

bool two_threads_line() {
    constexpr double target = 1.7;
    constexpr double two_cores = 1.77;  // the bare pattern's on two idle cores, at least
    static circuit_breaker b("two-threads");
    const auto s = bench::measure_scaling(
        5, 50, [] { acquire_and_succeed(b); }, [] { do_the_bare_pattern(); });
    auto v = judge(s.subject, target, true);
    if (v == verdict::missed && s.yardstick < two_cores && s.subject >= 0.9 * s.yardstick) {
        v = verdict::within_noise;
    }
    auto text = beside("bare pattern", s.yardstick, "x");
    text += "; " + std::to_string(s.clean) + " of " + std::to_string(s.counted) +
            " rounds clean, out of " + std::to_string(s.rounds);
    return line("closed, two threads against one", "x", s.subject, true, target, v, text);
}

bool compare(const medians& m) {
    const double reads = m.ns("two_clock_reads");
    std::printf("%-32s %13s  %10s  %6s   %-13s %s\n", "medians of 5", "target    ", "measured  ",
                "ratio", "verdict", "beside");
    bool ok = line("closed, one thread", m.ns("closed"), 10,
                   beside("bare pattern", m.ns("bare_pattern"), "ns"));
    ok &= two_threads_line();
    ok &= line("with duration", m.ns("with_duration"), 1.25 * (reads + 10),
               beside("two clock reads", reads, "ns"));
    ok &= line("count window", m.ns("count_window"), 30, "");
    ok &= line("rejected while open", m.ns("rejected_while_open"), 50, "");
    std::printf("%-32s %13s  %7.2f ns\n", "failing every second time", "",
                m.ns("failing_below_the_rate"));
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
