#include "trinco/breaker_options.hpp"

#include "core/breaker_options_table.hpp"

namespace trinco {
namespace {

using detail::duration_text;
using detail::option_row;
using std::chrono::milliseconds;

bool in_range(const option_row& option, double x) {
    if (x == 0 && option.zero_is_off) return true;
    const bool above =
        option.unit == detail::option_unit::share ? x > option.lowest : x >= option.lowest;
    return above && x <= option.highest;  // NaN is not
}

option_error error_of(std::string_view key, const breaker_options& options, std::string allowed) {
    const auto& option = *detail::find_option(key);
    return {std::string(key), detail::value_text(option, option.value(options).value_or(0)),
            std::move(allowed)};
}

// What must fit between two options that are each within their own range.
std::optional<option_error> contradiction(const breaker_options& o) {
    const auto slices_most = o.window / milliseconds(10);
    if (o.window_slices > slices_most) {
        return error_of("window_slices", o,
                        "2 to " + std::to_string(slices_most) + ", so that each slice of window (" +
                            duration_text(o.window) + ") is at least 10 ms long");
    }
    if (o.count_window != 0 && o.minimum_calls > o.count_window) {
        return error_of("minimum_calls", o,
                        "1 to count_window (" + std::to_string(o.count_window) +
                            "), since more calls than that are never in the window");
    }
    const auto overdue = o.overdue_after.value_or(milliseconds(0));
    if (o.call_timeout.count() != 0 && overdue >= o.call_timeout) {
        return error_of("overdue_after", o,
                        "less than call_timeout (" + duration_text(o.call_timeout) + ")");
    }
    if (o.open_max < o.open_for) {
        return error_of("open_max", o, "open_for (" + duration_text(o.open_for) + ") to 24 h");
    }
    if (o.degraded_after < o.store_timeout) {
        return error_of("degraded_after", o,
                        "store_timeout (" + duration_text(o.store_timeout) + ") to 1 min");
    }
    if (o.key_ttl < o.live_for) {
        return error_of("key_ttl", o, "live_for (" + duration_text(o.live_for) + ") to 30 days");
    }
    return std::nullopt;
}

}  // namespace

std::string option_error::message() const {
    return key + " is " + value + ", but must be " + allowed;
}

std::optional<option_error> validate(const breaker_options& options) {
    for (const auto& option : detail::breaker_option_table()) {
        const auto x = option.value(options);
        if (x && !in_range(option, *x)) {
            return error_of(option.key, options, detail::range_text(option));
        }
    }
    return contradiction(options);
}

}  // namespace trinco
