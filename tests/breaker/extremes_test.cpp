// Every option at both ends of its range: the breaker opens, probes, closes, and says what it does.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "breaker_fixture.hpp"
#include "core/breaker_options_table.hpp"

namespace trinco::test {
namespace {

using detail::option_row;

// What has to follow when one option is at its end, for the options to fit together.
breaker_options fitted(breaker_options o) {
    if (o.count_window != 0) o.minimum_calls = std::min(o.minimum_calls, o.count_window);
    const auto slices_most = static_cast<std::uint32_t>(o.window / 10ms);
    o.window_slices = std::min(o.window_slices, slices_most);
    if (o.call_timeout != 0ms && o.overdue_after.value_or(0ms) >= o.call_timeout) {
        o.overdue_after = 0ms;
    }
    o.open_max = std::max(o.open_max, o.open_for);
    o.degraded_after = std::max(o.degraded_after, o.store_timeout);
    o.key_ttl = std::max(o.key_ttl, o.live_for);
    return o;
}

breaker_options with(const option_row& row, double value) {
    breaker_options o;
    std::visit(
        [&](auto member) {
            using type = std::remove_cvref_t<decltype(o.*member)>;
            if constexpr (std::is_same_v<type, std::chrono::milliseconds> ||
                          std::is_same_v<type, std::optional<std::chrono::milliseconds>>) {
                o.*member = std::chrono::milliseconds(static_cast<std::int64_t>(value));
            } else {
                o.*member = static_cast<type>(value);
            }
        },
        row.field);
    return fitted(o);
}

// Through all states, whatever the options are, as long as calls that are out are not slow.
void drive(const breaker_options& o) {
    ASSERT_EQ(validate(o), std::nullopt) << validate(o)->message();
    timed_breaker b(o);
    std::uint64_t calls = 0;
    while (b->state() == breaker_state::closed) {
        b.fail(1);
        ASSERT_LE(++calls, 1'000'001U) << "it never opens";
    }
    EXPECT_EQ(b->snapshot().totals.failure, calls);
    const auto refused = b->try_acquire();
    ASSERT_FALSE(refused);
    const auto retry = refused.refusal().retry_after;
    EXPECT_GE(retry, 1ms);
    EXPECT_LE(retry, o.open_max * 2);

    b.pass(retry);
    {
        auto probe = b->try_acquire();
        ASSERT_TRUE(probe.is_probe());
        EXPECT_EQ(b->state(), breaker_state::half_open);
        b.pass(o.probe_timeout);  // too late: it has failed
        probe.success();
    }
    for (std::uint32_t failed = 1; b->state() == breaker_state::half_open; ++failed) {
        ASSERT_LE(failed, o.half_open_probes) << "it never opens again";
        b.fail(1);
    }
    ASSERT_EQ(b->state(), breaker_state::open);
    b.pass(b->snapshot().retry_after);
    b.succeed(static_cast<int>(o.half_open_probes));
    EXPECT_EQ(b->state(), breaker_state::closed);
    b.pass(o.recovery_ramp);
    EXPECT_TRUE(b->try_acquire());
    const auto s = b->snapshot();
    EXPECT_EQ(s.probes_in_flight, 0U);
    EXPECT_EQ(s.overdue, 0U);
}

TEST(Extremes, EveryOptionAtItsEnds) {
    for (const auto& row : detail::breaker_option_table()) {
        const double lowest =
            row.unit == detail::option_unit::share && !row.zero_is_off ? 1e-9 : row.lowest;
        for (const double value : {lowest, row.highest}) {
            SCOPED_TRACE(std::string(row.key) + " = " + detail::value_text(row, value));
            drive(with(row, value));
        }
    }
}

// All that count at once, and all that last long or short.
TEST(Extremes, ManyAtOnce) {
    breaker_options most;
    most.failure_rate = 1.0;
    most.minimum_calls = most.count_window = 100'000;
    most.window = most.slow_call_after = most.probe_timeout = most.recovery_ramp = 1h;
    most.window_slices = 60;
    most.open_for = most.open_max = 24h;
    most.open_backoff = 10;
    most.jitter = 1;
    most.half_open_probes = 1'000;
    most.overdue_after = 0ms;
    drive(most);
    breaker_options least;
    least.failure_rate = 5e-324;
    least.minimum_calls = least.failure_count = least.consecutive_failures = 1;
    least.half_open_probes = least.window_slices = 2;
    least.window = 100ms;
    least.open_for = least.open_max = least.probe_timeout = least.recovery_ramp = 10ms;
    least.open_backoff = 1;
    least.jitter = 0;
    least.call_timeout = 1ms;
    drive(fitted(least));
}

}  // namespace
}  // namespace trinco::test
