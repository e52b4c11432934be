// What guarded_http tells, as text or as JSON lines: a line a second, a line for each change, a
// summary.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "guarded_http_args.hpp"
#include "trinco/circuit_breaker.hpp"

namespace guarded_http {

using std::chrono::nanoseconds;

// Many durations in little memory: exact number and maximum, quantiles to 2 %.
class durations {
public:
    void add(nanoseconds took);
    [[nodiscard]] nanoseconds quantile(double q) const;
    [[nodiscard]] nanoseconds max() const noexcept { return max_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

private:
    static constexpr int steps_an_octave = 32;
    std::array<std::uint32_t, 48 * steps_an_octave> buckets_{};
    std::uint64_t size_ = 0;
    nanoseconds max_{0};
};

enum class fate : std::uint8_t {
    ok,
    failed,
    refused,  // by the breaker: nothing was sent
    stopped   // given up by us, at the end of the run
};

// Every member may be called from any thread.
class report {
public:
    explicit report(const settings& s);

    void introduce(std::string_view url, const trinco::breaker_options& options);
    void call_begins();
    // `why` says why it failed.
    void call_ended(fate how, nanoseconds took, bool probe, std::string_view why);
    // Not even tried: all callers were waiting for answers.
    void call_skipped();
    void breaker_changed(const trinco::event& change);
    void server_changed(std::string_view mood);  // of the demonstration
    void second_ended(trinco::breaker_state state, std::size_t waiting);
    void finish(trinco::breaker_state state);

private:
    struct tally {
        std::uint64_t calls = 0;
        std::uint64_t ok = 0;
        std::uint64_t failed = 0;
        std::uint64_t refused = 0;
        std::uint64_t stopped = 0;
        std::uint64_t skipped = 0;
        std::uint64_t probes = 0;
        durations sent;  // ok and failed
    };

    [[nodiscard]] nanoseconds age() const { return std::chrono::steady_clock::now() - start_; }
    void finish_as_text(trinco::breaker_state state) const;
    void finish_as_json(trinco::breaker_state state) const;

    const bool json_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    std::mutex m_;
    tally second_;
    tally all_;
    durations ok_;
    durations failed_;
    durations refused_;
    std::map<std::string, std::uint64_t, std::less<>> reasons_;
    std::uint64_t openings_ = 0;
    std::uint64_t closings_ = 0;
};

}  // namespace guarded_http
