#include "core/breaker/headroom.hpp"

#include <algorithm>
#include <cmath>

namespace trinco::detail {
namespace {

// One threshold: `hits` of `judged` calls, at least `rate` of them and with `minimum` calls in all.
struct threshold {
    std::uint64_t hits;
    std::uint64_t judged;
    std::uint64_t minimum;
    double rate;

    // Whether it can be reached with `bad` more hits and as many other calls as suit it best: those
    // that are missing to the minimum. Grows with `bad`, because hits <= judged.
    [[nodiscard]] bool reached(std::uint64_t bad) const noexcept {
        const auto calls = std::max(judged + bad, minimum);
        return static_cast<double>(hits + bad) / static_cast<double>(calls) >= rate;
    }
};

// Counts beyond this are not reached by any window; it bounds the search and keeps doubles exact.
constexpr std::uint64_t horizon = std::uint64_t{1} << 50;

std::uint64_t at_least_zero(double x) noexcept {
    if (!(x > 0)) return 0;
    return x < static_cast<double>(horizon) ? static_cast<std::uint64_t>(x) : horizon;
}

// The least `bad` with t.reached(bad).
std::uint64_t least(const threshold& t) noexcept {
    if (t.reached(0)) return 0;
    if (!t.reached(horizon)) return headroom::unreachable;
    // The solution of the inequality, usually exact; what rounding spoils is searched for.
    const auto hits = static_cast<double>(t.hits);
    std::uint64_t guess = at_least_zero(std::ceil(t.rate * static_cast<double>(t.minimum) - hits));
    if (t.judged + guess > t.minimum) {
        guess = at_least_zero(
            std::ceil((t.rate * static_cast<double>(t.judged) - hits) / (1.0 - t.rate)));
    }
    if (guess > 0 && t.reached(guess) && !t.reached(guess - 1)) return guess;
    std::uint64_t no = 0;
    std::uint64_t yes = horizon;
    while (yes - no > 1) {
        const auto middle = no + (yes - no) / 2;
        (t.reached(middle) ? yes : no) = middle;
    }
    return yes;
}

}  // namespace

headroom headroom_of(const counts& window, const policy& p) noexcept {
    std::uint64_t bad = least({window.failure, window.judged(), p.minimum_calls, p.failure_rate});
    if (p.slow_calls) {
        bad = std::min(bad,
                       least({window.slow(), window.judged(), p.minimum_calls, p.slow_call_rate}));
    }
    if (p.failure_count != 0) {
        const std::uint64_t limit = p.failure_count;
        bad = std::min(bad, limit - std::min(limit, window.failure));
    }
    return {.bad = std::max<std::uint64_t>(bad, 1), .judge_successes = bad == 0};
}

}  // namespace trinco::detail
