#include "breaker/sync_meter.hpp"

#include <algorithm>
#include <utility>

#include "trinco/error.hpp"

namespace trinco::detail {

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

std::uint64_t nanoseconds_of(boot_clock::time_point t) noexcept {
    return static_cast<std::uint64_t>(t.time_since_epoch().count());
}

}  // namespace

void sync_meter::cost_of_exchange(microseconds d) noexcept {
    if (d.count() > 0) exchange_cost_.record(d);
}

void sync_meter::cost_of_look(microseconds d) noexcept {
    if (d.count() > 0) look_cost_.record(d);
}

void sync_meter::dropped(const counts& n) noexcept {
    const std::uint64_t all[] = {n.success,      n.failure, n.slow_success,
                                 n.slow_failure, n.ignored, n.rejected};
    for (std::size_t i = 0; i < dropped_.size(); ++i) dropped_[i].add(all[i]);
}

void sync_meter::failed(std::error_code why) noexcept {
    if (why == errc::unavailable) {
        ++errors_.unavailable;
    } else if (kind_of(why) == error_kind::unknown) {
        ++errors_.unanswered;
    } else if (why == errc::busy) {
        ++errors_.busy;
    } else if (why == errc::denied) {
        ++errors_.denied;
    } else {
        ++errors_.other;
    }
}

void sync_meter::degraded(boot_clock::time_point now) noexcept {
    ++times_degraded_;
    degraded_since_.set(std::max<std::uint64_t>(nanoseconds_of(now), 1));
}

void sync_meter::recovered(boot_clock::time_point now) noexcept {
    degraded_time_.add(nanoseconds_of(now) - degraded_since_.get());
    degraded_since_.set(0);
}

void sync_meter::wire(const store_traffic& t) noexcept {
    wire_.requests.set(t.requests);
    wire_.bytes_out.set(t.bytes_out);
    wire_.bytes_in.set(t.bytes_in);
    wire_.reconnects.set(t.reconnects);
    wire_.redirections.set(t.redirections);
}

void sync_meter::trouble(std::string why) {
    if (why == trouble_) return;
    trouble_ = std::move(why);
    const std::lock_guard hold(trouble_mutex_);
    trouble_told_ = trouble_;
}

store_report sync_meter::report(boot_clock::time_point now) const {
    store_report r;
    r.measured_for = std::chrono::floor<std::chrono::milliseconds>(now - since_);
    r.exchanges = exchanges.get();
    r.urgent_exchanges = urgent_exchanges.get();
    r.exchanges_failed = exchanges_failed.get();
    r.batches = batches.get();
    r.batches_retried = batches_retried.get();
    r.dropped = {dropped_[0].get(), dropped_[1].get(), dropped_[2].get(),
                 dropped_[3].get(), dropped_[4].get(), dropped_[5].get()};
    r.looks = looks.get();
    r.looks_failed = looks_failed.get();
    r.strict_exchanges = strict_exchanges.get();
    r.probes_asked = probes_asked.get();
    r.probes_granted = probes_granted.get();
    r.probes_overdue = probes_overdue.get();
    r.settlements = settlements.get();
    r.errors = {errors_.unavailable.get(), errors_.unanswered.get(), errors_.busy.get(),
                errors_.denied.get(), errors_.other.get()};
    r.gaps = gaps.get();
    r.new_servers = new_servers.get();
    {
        // Held by nobody who could let it go, perhaps, in a child after fork.
        const std::unique_lock hold(trouble_mutex_, std::try_to_lock);
        if (hold) r.trouble = trouble_told_;
    }
    const std::uint64_t since = degraded_since_.get();
    r.degraded = since != 0;
    r.times_degraded = times_degraded_.get();
    const std::uint64_t running = nanoseconds_of(now);
    const std::uint64_t stretch = r.degraded && running > since ? running - since : 0;
    r.degraded_for = std::chrono::floor<std::chrono::milliseconds>(nanoseconds(stretch));
    r.degraded_time = std::chrono::floor<microseconds>(nanoseconds(degraded_time_.get() + stretch));
    r.exchange_round_trips = exchange_round_trips.shape();
    r.look_round_trips = look_round_trips.shape();
    r.probe_round_trips = probe_round_trips.shape();
    r.exchange_cost = exchange_cost_.shape();
    r.look_cost = look_cost_.shape();
    r.wire = {wire_.requests.get(), wire_.bytes_out.get(), wire_.bytes_in.get(),
              wire_.reconnects.get(), wire_.redirections.get()};
    return r;
}

}  // namespace trinco::detail
