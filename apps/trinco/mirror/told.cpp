#include "apps/trinco/mirror/told.hpp"

#include <algorithm>

namespace trinco::program {
namespace {

// An operator's override or options lift the rev to the server's time in microseconds; without one
// it counts changes. Between them are ages.
constexpr std::uint64_t a_time = std::uint64_t{1} << 48;  // 1978, or as many changes

std::uint64_t operated_at(const detail::view& v) {
    return v.rev >= a_time ? v.rev : 0;
}

// The last word was `set`, which says nothing about overrides.
bool was_of_options(const detail::view& v) {
    const bool is_set = v.options_stamp % 2 == 1;
    return is_set && v.options_stamp + 2 >= v.rev;
}

}  // namespace

detail::view believed(const detail::view& before, const detail::view& now) {
    if (!before.newer_than(now)) return now;
    detail::view v = before;
    const auto spoken = operated_at(now);
    const bool is_later = spoken > std::max(before.era, operated_at(before));
    const bool speaks_of_override = now.over != override_kind::none || !was_of_options(now);
    if (!is_later || !speaks_of_override) return v;
    if (before.over != override_kind::none || now.over != override_kind::none) {
        v.reason = now.reason;
    }
    v.over = now.over;
    v.over_remaining = now.over_remaining;
    v.rev = spoken;
    return v;
}

detail::news again(const std::string& breaker, const detail::view& fleet,
                   const told_options& options) {
    detail::news n;
    n.breaker = breaker;
    n.mine = fleet;
    n.mine.options_stamp = 0;
    if (options.text.empty() || options.stamp == 0) return n;
    n.mine.options_stamp = options.stamp;
    n.options = options.text;
    // As one who has been told them; its own were never stamped.
    n.own_stamp = std::max<std::uint64_t>(options.stamp / 2 * 2, 2);
    return n;
}

}  // namespace trinco::program
