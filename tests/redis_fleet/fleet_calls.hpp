// The calls of one instance through one breaker: made at a given rate by a thread, or several, with
// outcomes drawn inside or asked of the driver's dependency, and everything that can be noticed
// about the decisions.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "trinco/circuit_breaker.hpp"

namespace trinco::fleet_test {

// Microseconds of the boot clock, as the driver's.
[[nodiscard]] std::int64_t now_us();

struct load {
    double rate = 0;          // calls a second; 0: none
    double failing = 0;       // share of them that fail
    bool is_outside = false;  // the driver's dependency is called, and says what came of it
};

// How long decisions took: bucket b has those of less than 2^b microseconds.
class durations {
public:
    void add(std::int64_t us) noexcept;
    durations& operator+=(const durations& o) noexcept;
    [[nodiscard]] std::uint64_t count() const noexcept;
    // The bucket's upper end, or the longest itself.
    [[nodiscard]] std::int64_t percentile(double p) const noexcept;
    [[nodiscard]] std::int64_t longest() const noexcept { return longest_; }
    // Those of a millisecond and more (1,024 us).
    [[nodiscard]] std::uint64_t long_ones() const noexcept;

private:
    std::array<std::uint64_t, 32> buckets_{};
    std::int64_t longest_ = 0;
};

// What was noticed, since the beginning or since somebody took it.
struct tally {
    std::uint64_t admitted = 0;  // probes, too
    std::uint64_t probes = 0;
    std::uint64_t open = 0;     // refused: open, forced open or recovering
    std::uint64_t waiting = 0;  // refused: a probe was wanted
    // Decisions that need no answer of the store, and those that asked it for a probe.
    durations cached;
    durations asked;
    // Cached ones of over a millisecond in which the thread gave up its processor by itself: it
    // waited for something, and did not just lose the processor to somebody.
    std::uint64_t waited = 0;

    tally& operator+=(const tally& o) noexcept;
};

class fleet_calls {
public:
    // `dependency`: the socket of the driver's, or empty. The breaker outlives it.
    fleet_calls(circuit_breaker& through, std::string instance, std::string dependency,
                int threads);
    ~fleet_calls();
    fleet_calls(const fleet_calls&) = delete;
    fleet_calls& operator=(const fleet_calls&) = delete;

    void set(const load& what);
    // And begins anew.
    [[nodiscard]] tally take();
    // Outcomes that were given to the breaker, since the beginning.
    [[nodiscard]] std::uint64_t settled() const noexcept { return settled_; }
    // No more calls; those under way end.
    void stop();

private:
    void run(int number);
    void inside(const load& l, std::uint64_t calls, std::uint64_t& random);
    void outside(class dependency_client& to);

    circuit_breaker& through_;
    std::string instance_;
    std::string dependency_;
    std::mutex m_;
    std::condition_variable changed_;
    load load_;
    bool over_ = false;
    tally tally_;
    std::atomic<std::uint64_t> settled_{0};
    std::vector<std::thread> threads_;
};

}  // namespace trinco::fleet_test
