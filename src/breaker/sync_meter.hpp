// What one fleet_sync has done and met. Its loop's thread counts, any thread reads, numbers without
// a lock.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <system_error>

#include "core/histogram.hpp"
#include "core/loop.hpp"
#include "core/tally.hpp"
#include "store/breaker_store.hpp"
#include "trinco/store_report.hpp"

namespace trinco::detail {

class sync_meter {
public:
    explicit sync_meter(boot_clock::time_point now) : since_(now) {}

    tally exchanges;
    tally urgent_exchanges;
    tally exchanges_failed;
    tally batches;
    tally batches_retried;
    tally looks;
    tally looks_failed;
    tally strict_exchanges;
    tally probes_asked;
    tally probes_granted;
    tally probes_overdue;
    tally settlements;
    tally gaps;
    tally new_servers;
    histogram exchange_round_trips;
    histogram look_round_trips;
    histogram probe_round_trips;

    // A cost of 0 was not measured.
    void cost_of_exchange(std::chrono::microseconds d) noexcept;
    void cost_of_look(std::chrono::microseconds d) noexcept;
    void dropped(const counts& n) noexcept;
    void failed(std::error_code why) noexcept;
    void degraded(boot_clock::time_point now) noexcept;
    void recovered(boot_clock::time_point now) noexcept;
    void wire(const store_traffic& t) noexcept;
    void trouble(std::string why);
    // What was said last is that there is some; the loop's thread.
    [[nodiscard]] bool in_trouble() const noexcept { return !trouble_.empty(); }

    // Any thread. All but the name of the store.
    [[nodiscard]] store_report report(boot_clock::time_point now) const;

private:
    const boot_clock::time_point since_;
    std::array<tally, 6> dropped_;
    struct {
        tally unavailable, unanswered, busy, denied, other;
    } errors_;
    tally times_degraded_;
    tally degraded_time_;   // nanoseconds, of stretches that are over
    tally degraded_since_;  // nanoseconds of the clock; 0: not degraded
    histogram exchange_cost_;
    histogram look_cost_;
    struct {
        tally requests, bytes_out, bytes_in, reconnects, redirections;
    } wire_;
    std::string trouble_;  // the loop's thread
    mutable std::mutex trouble_mutex_;
    std::string trouble_told_;  // the same, under the mutex
};

}  // namespace trinco::detail
