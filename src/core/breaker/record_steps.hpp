// What the parts of the record (record_*.cpp) share. Not for others: record.hpp is the way in.
//
// `t` is always the record's own time, as given by tick().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/breaker/record.hpp"

namespace trinco::detail::steps {

inline constexpr std::size_t max_voters = 512;
inline constexpr std::size_t max_instances = 4096;
inline constexpr std::size_t max_settled = 256;
inline constexpr std::size_t max_controls = 64;
inline constexpr std::size_t max_shares = 256;
inline constexpr std::uint8_t max_backoff = 32;
// Of a reason as it is kept: who, what and why.
inline constexpr std::size_t max_attribution = 320;
inline constexpr std::chrono::milliseconds shortest_retry{10};
inline constexpr std::chrono::milliseconds longest_retry{1000};  // of those that end by others
inline constexpr std::chrono::hours longest_time{24 * 31};
inline constexpr std::chrono::hours default_override{24};
inline constexpr std::chrono::hours default_set{24 * 30};
inline constexpr std::chrono::hours control_memory{1};
// How long the answers to a flush are waited for.
inline constexpr std::chrono::milliseconds flush_wait{20};

using milliseconds = std::chrono::milliseconds;

// Whole milliseconds, rounded up, so that nobody comes back too early.
[[nodiscard]] inline milliseconds left(store_time until, store_time t) noexcept {
    return until > t ? std::chrono::ceil<milliseconds>(until - t) : milliseconds(0);
}

// ---- time, views, transitions: record_views.cpp ------------------------------------------------
[[nodiscard]] store_time time_of(const fleet_record& r, store_time now) noexcept;
[[nodiscard]] store_time tick(fleet_record& r, store_time now) noexcept;
// Removes an override and set options that have run out.
void expire(fleet_record& r, store_time t, effects& out);
void take_over(fleet_record& r, const view& theirs, store_time t, effects& out);
[[nodiscard]] view view_at(const fleet_record& r, store_time t);
inline void bump(fleet_record& r, effects& out) noexcept {
    ++r.rev;
    out.changed = true;
}
void bump_by_operator(fleet_record& r, store_time t, effects& out) noexcept;
// forced_open and disabled.
[[nodiscard]] bool is_frozen(const fleet_record& r) noexcept;
void enter_open(fleet_record& r, store_time t, milliseconds length, std::string_view reason,
                effects& out);
void enter_half_open(fleet_record& r, store_time t, effects& out);
void enter_closed(fleet_record& r, store_time t, milliseconds ramp, std::string_view reason,
                  effects& out);
// The opening that probes decide upon: the next backoff level.
void reopen(fleet_record& r, store_time t, trip_reason why, effects& out);
[[nodiscard]] milliseconds opening_length(const fleet_record& r, store_time t) noexcept;

// ---- parties: record_parties.cpp ---------------------------------------------------------------
// Finds or registers; the least recently heard one goes when there are too many. References are
// valid until the next registration.
fleet_record::voter& voter_of(fleet_record& r, std::string_view name, store_time t);
fleet_record::instance& instance_of(fleet_record& r, const breaker_identity& who, store_time t);
[[nodiscard]] const fleet_record::voter* find_voter(const fleet_record& r,
                                                    std::string_view name) noexcept;
[[nodiscard]] inline bool is_live(const fleet_record& r, const fleet_record::voter& v,
                                  store_time t) noexcept {
    return v.heard.count() != 0 && t - v.heard <= r.rules.live_for;
}
[[nodiscard]] std::uint32_t live_voters(const fleet_record& r, store_time t) noexcept;
// min(quorum, live), at least 1.
[[nodiscard]] const fleet_record::instance* find_instance(const fleet_record& r,
                                                          std::string_view name) noexcept;
[[nodiscard]] std::uint32_t quorum_of(const fleet_record& r, std::uint32_t live,
                                      store_time t) noexcept;
void sweep(fleet_record& r, store_time t);
// The time over which the live instances share the budget of one exchange each.
[[nodiscard]] milliseconds spread_of(const fleet_record& r) noexcept;
[[nodiscard]] milliseconds pace(const fleet_record& r) noexcept;

// ---- the window: record_window.cpp -------------------------------------------------------------
// A live voter whose share is at or above a threshold.
[[nodiscard]] inline bool is_failing(const fleet_record& r, const counts& n,
                                     std::uint32_t live) noexcept {
    return n.failure + n.slow() != 0 && voter_is_failing(n, r.rules, live);
}
struct census {
    std::uint32_t live = 0;
    std::uint32_t failing = 0;
};
[[nodiscard]] inline std::int64_t slice_number(const fleet_record& r, store_time t) noexcept {
    return t / r.rules.slice_length();
}
// Adds to the record what a batch counted, and to the totals what the window cannot take.
void book(fleet_record& r, fleet_record::voter& v, fleet_record::instance& i, const news& n,
          store_time t);
[[nodiscard]] census take_census(fleet_record& r, store_time t) noexcept;
void decide_opening(fleet_record& r, const census& c, store_time t, effects& out);
void clear_windows(fleet_record& r) noexcept;

// ---- options: record_options.cpp ---------------------------------------------------------------
// The news' options, parsed: nothing when there are none or they are known already. An error when
// they do not parse.
struct offered_options {
    std::optional<policy> rules;
    bool is_bad = false;
};
[[nodiscard]] offered_options parse_offered(const fleet_record& r, const news& n);
// Stamps, adopts; answers the sender's own stamp.
std::uint64_t accept_options(fleet_record& r, fleet_record::instance& i, const news& n,
                             const offered_options& offered, bool repeated, store_time t,
                             effects& out);
// What governs when an operator sets these pairs as well; nothing when they do not parse.
[[nodiscard]] std::optional<policy> parse_set(const fleet_record& r, std::string_view pairs);
void set_options(fleet_record& r, std::string_view pairs, const policy& rules, milliseconds expires,
                 store_time t, effects& out);
void unset_options(fleet_record& r, store_time t, effects& out);

// ---- probes: record_probes.cpp -----------------------------------------------------------------
// Slots that are free, whoever asks.
[[nodiscard]] std::uint32_t free_slots(const fleet_record& r) noexcept;
// The same as a verdict tells it: 0 while closed.
[[nodiscard]] std::uint16_t probes_left(const fleet_record& r) noexcept;

}  // namespace trinco::detail::steps
